# SPDX-License-Identifier: ISC
"""SetClientLimits sets what it says, for one client, from then on; and says what is wrong where it does not.

Usage: test-limits.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import sys

import harness
from harness import admin, call, eventually, refused

INVALID = 'org.freedesktop.DBus.Error.InvalidArgs'
KIB = 1024


def set_limits(c, number, **limits):
    call(c, 'SetClientLimits', 'ta{st}', (number, limits))


def test_a_lower_limit_refuses_and_a_higher_one_admits(stage):
    c = admin(stage)
    stage.start_rigd()
    p, other = stage.program(), stage.program()
    for q in p, other:
        q.do('device', 'memory:M')
        q.do('buffer', 0, 512 * KIB)
    number = stage.client_of(p)
    set_limits(c, number, MemoryMax=600 * KIB)
    assert stage.client(p)['MemoryMax'] == 600 * KIB
    assert stage.client(other)['MemoryMax'] == 2**64 - 1, 'it is one client\'s'
    answer = p.tell('buffer', 0, 512 * KIB)
    assert answer.startswith('error 122 '), answer  # EDQUOT
    other.do('buffer', 0, 512 * KIB)
    set_limits(c, number, MemoryMax=2**64 - 1)
    p.do('buffer', 0, 512 * KIB)


def test_what_a_client_holds_beyond_a_limit_it_keeps(stage):
    c = admin(stage)
    stage.start_rigd()
    p = stage.program()
    p.do('device', 'memory:M')
    for _ in range(8):
        p.do('buffer', 0, 64 * KIB)
    number, before = stage.client_of(p), stage.client(p)
    set_limits(c, number, ObjectsMax=4, MemoryMax=1)
    after = stage.client(p)
    assert (after['Objects'], after['LiveBytes']) == (before['Objects'], before['LiveBytes'])
    answer = p.tell('buffer', 0, 64 * KIB)
    assert answer.startswith('error 122 '), answer
    set_limits(c, number, MemoryMax=2**64 - 1)
    answer = p.tell('buffer', 0, 64 * KIB)
    assert answer.startswith('error 122 ') and 'ObjectsMax' in answer, answer
    set_limits(c, number, ObjectsMax=100)
    p.do('buffer', 0, 64 * KIB)


def test_more_runs_are_taken_once_more_may_be_in_flight(stage):
    c = admin(stage)
    stage.start_rigd()
    p = stage.program()
    p.do('device', 'host')
    number = stage.client_of(p)
    set_limits(c, number, RunsMax=4)
    p.do('block', 0)
    p.do('queue', 20)
    eventually('as many as may be', lambda: stage.client(p)['RunsInFlight'] == 4)
    set_limits(c, number, RunsMax=15)
    eventually('as many as may be now', lambda: stage.client(p)['RunsInFlight'] == 15)
    set_limits(c, number, RunsMax=1000)
    eventually('all', lambda: stage.client(p)['RunsInFlight'] == 21)
    p.do('release')
    eventually('none', lambda: stage.client(p)['RunsInFlight'] == 0)


def test_a_smaller_cache_gives_back_at_once(stage):
    c = admin(stage)
    stage.start_rigd()
    p = stage.program()
    p.do('device', 'memory:M')
    p.do('buffer', 0, 512 * KIB)
    p.do('drop', 0)
    eventually('it is cached', lambda: stage.client(p)['CachedBytes'] >= 512 * KIB)
    set_limits(c, stage.client_of(p), CacheMax=0, QueueMax=2**20)
    assert stage.client(p)['CachedBytes'] == 0
    assert (stage.client(p)['CacheMax'], stage.client(p)['QueueMax']) == (0, 2**20)


def test_wrong_limits_are_named_and_change_nothing(stage):
    c = admin(stage)
    stage.start_rigd()
    p = stage.program()
    number, before = stage.client_of(p), stage.client(p)
    for limits, texts in (
            ([('Memory', 5)], ['no limit "Memory"', 'ObjectsMax, MemoryMax, RunsMax, CacheMax and QueueMax']),
            ([], ['no limit is given']),
            ([('RunsMax', 9), ('RunsMax', 8)], ['RunsMax is given twice']),
            ([('RunsMax', 9), ('ObjectsMax', 0)], ['ObjectsMax cannot be 0', '1']),
            ([('QueueMax', 10)], ['QueueMax cannot be 10', '65536']),
            ([('RunsMax', 9), ('x' * 100000, 1)], ['no limit "' + 'x' * 64 + '"'])):
        refused(lambda limits=limits: call(c, 'SetClientLimits', 'ta{st}', (number, limits)), INVALID, *texts)
    refused(lambda: set_limits(c, number + 1, RunsMax=9), 'org.rig.Rig1.Error.NoSuchClient', f'client {number + 1}')
    refused(lambda: call(c, 'SetClientLimits', 't', (number,)), INVALID)
    refused(lambda: call(c, 'SetClientLimits', 'ta{ss}', (number, {'RunsMax': '9'})), INVALID)
    after = stage.client(p)
    assert {k: v for k, v in after.items() if k.endswith('Max')} == {
        k: v for k, v in before.items() if k.endswith('Max')}


def test_reload_answers_what_it_cannot_apply(stage):
    c = admin(stage)
    config = f'{stage.folder}/rigd.conf'
    write(config, 'ClientRunsMax=50\n')
    stage.start_rigd('--config', config)
    assert stage.get('Settings')['ClientRunsMax'] == '50'
    write(config, 'ClientRunsMax=60\n')
    remarks, = call(c, 'Reload')
    assert isinstance(remarks, list) and all(isinstance(r, str) for r in remarks)
    assert stage.get('Settings')['ClientRunsMax'] == '60', remarks
    p = stage.program()
    assert stage.client(p)['RunsMax'] == 60


def write(path, settings):
    with open(path, 'w', encoding='utf-8') as f:
        f.write('[Daemon]\n' + settings)


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
