# SPDX-License-Identifier: ISC
"""What rigd tells of known clients is true: the values come from what the test had its programs do, and from /proc.

Usage: test-values.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import os
import subprocess
import sys
import time

import dbus
import harness
from harness import LOSER, PATH, RIGD, XML, eventually  # noqa: F401 (XML is the harness's own)

KIB = 1024


def test_a_client_is_told_of_as_it_is(stage):
    stage.start_rigd()
    before = time.time_ns() // 1000
    p = stage.program()
    p.do('device', 'memory:M')
    p.do('device', 'host')
    for i in range(3):
        assert p.do('buffer', 0, 100 * KIB) == i
    p.do('fill', 0, 'zero')
    p.do('copy', 1, 0, 'one')
    c = stage.client(p)
    with open(f'/proc/{p.pid}/comm', encoding='utf-8') as f:
        assert c['Command'] == f.read().strip()
    assert (c['UID'], c['Transport'], c['Devices']) == (os.getuid(), 'ring', 2), c
    assert before <= c['ConnectedUSec'] <= time.time_ns() // 1000, c
    assert c['Library'].startswith('librig-client'), c
    assert 300 * KIB <= c['LiveBytes'] < 600 * KIB, c
    assert c['RunsReached'] == 2 and c['RunsFailed'] == 0 and c['RunsInFlight'] == 0, c
    assert c['CopiedBytes'] == 200 * KIB, c
    assert c['Objects'] >= 3 and c['UnreadBytes'] == 0, c
    settings = stage.get('Settings')
    assert c['ObjectsMax'] == int(settings['ClientObjectsMax']) and c['RunsMax'] == int(settings['ClientRunsMax'])
    p.do('drop', 2)
    after = eventually('what is dropped is cached', lambda: (lambda d: d if d['CachedBytes'] else None)(stage.client(p)))
    assert after['LiveBytes'] + after['CachedBytes'] == c['LiveBytes'], (c, after)


def test_the_transport_is_told(stage):
    stage.start_rigd()
    for transport in 'ring', 'words', 'socket':
        assert stage.client(stage.program(transport=transport))['Transport'] == transport


def test_the_unit_is_the_one_of_the_cgroup(stage):
    stage.start_rigd()
    p = stage.program()
    with open(f'/proc/{p.pid}/cgroup', encoding='utf-8') as f:
        path = [line.strip().split(':', 2)[2] for line in f if line.startswith(('0:', '1:name=systemd'))]
    unit = stage.client(p)['Unit']
    assert unit == '' or unit.split('@')[0] in path[0], (unit, path)
    if not any(part.endswith(('.service', '.scope')) for part in path[0].split('/')):
        assert unit == '', (unit, path)


def test_a_process_that_is_gone_has_no_name(stage):
    stage.start_rigd()
    # The connection outlives the process that made it: its child has it.
    code = ('import os, socket, sys\n'
            's = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n'
            's.connect(sys.argv[1])\n'
            'if os.fork() == 0:\n'
            '    sys.stdin.read()\n'
            'else:\n'
            '    os._exit(0)\n')
    with subprocess.Popen([sys.executable, '-c', code, stage.socket], stdin=subprocess.PIPE) as process:
        process.wait(harness.WAIT_S)
        one, = stage.clients()
        assert (one['PID'], one['Command'], one['Unit']) == (process.pid, '', ''), one
        process.stdin.close()
    eventually('it ends with its child', lambda: stage.get('Clients') == 0)


def test_hostile_names_do_not_harm(stage):
    stage.start_rigd()
    # A name that is no UTF-8, for which a bus ends whoever sends it, and one that commands a terminal.
    code = ('import ctypes, socket, sys\n'
            's = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n'
            's.connect(sys.argv[1])\n'
            'for name in b"\\xff\\xfe(x) y)\\xc3", b"\\x1b[2Jred\\x07", "gr\\u00fcn\\u009b".encode():\n'
            '    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)\n'
            '    print(".", flush=True)\n'
            '    sys.stdin.readline()\n')
    with subprocess.Popen([sys.executable, '-c', code, stage.socket], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        for name in '??(x) y)?', '?[2Jred?', 'grün?':
            process.stdout.readline()
            one, = stage.clients()
            assert one['Command'] == name, one
            process.stdin.write(b'\n')
            process.stdin.flush()
    assert stage.log().count('is on the bus') == 1, 'the connection was lost'


def test_the_manager_counts(stage):
    started = time.time_ns() // 1000
    stage.start_rigd('--set', 'ClientsMax=2')
    assert started <= stage.get('StartUSec') <= time.time_ns() // 1000
    done = subprocess.run([RIGD, '--version'], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == stage.get('Version')
    one, two = stage.program(), stage.program()
    one.do('device', 'memory:M')
    two.do('device', 'memory:M')
    two.do('device', 'host')
    refused = subprocess.run([harness.PROGRAM, f'unix:{stage.socket}'], capture_output=True, text=True, check=False)
    assert refused.returncode and 'ClientsMax is 2' in refused.stderr, refused
    for p in one, two:
        p.do('buffer', 0, 64 * KIB)
        p.do('fill', 0, 'zero')
    counts = {name: stage.get(name) for name in (
        'Clients', 'Devices', 'Adapters', 'Connections', 'ConnectionsRefused', 'ConnectionsBroken', 'RunsAccepted',
        'RunsReached', 'RunsFailed', 'RunsLost', 'CopiedBytes', 'Traces', 'LogLinesDropped')}
    assert counts == {'Clients': 2, 'Devices': 3, 'Adapters': 3, 'Connections': 2, 'ConnectionsRefused': 1,
                      'ConnectionsBroken': 0, 'RunsAccepted': 2, 'RunsReached': 2, 'RunsFailed': 0, 'RunsLost': 0,
                      'CopiedBytes': 128 * KIB, 'Traces': 0, 'LogLinesDropped': 0}, counts
    adapters = {a['Name']: a for a in stage.list('ListAdapters')}
    memory = adapters['memory']
    assert (memory['Devices'], memory['RunsReached'], memory['CopiedBytes']) == (2, 2, 128 * KIB), memory
    assert memory['LiveBytes'] == sum(stage.client(p)['LiveBytes'] for p in (one, two)), memory
    assert memory['State'] == 'ready' and memory['Reason'] == '', memory
    assert adapters['host']['Devices'] == 1, adapters
    two.end()
    eventually('what a client leaves is not its adapter\'s', lambda: stage.get(
        'Devices', PATH + '/adapter/memory', 'org.rig.Rig1.Adapter') == 1)
    assert stage.get('RunsReached') == 2 and stage.get('Connections') == 2


def test_whoever_breaks_the_protocol_is_counted(stage):
    import socket
    stage.start_rigd()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(stage.socket)
        s.send(b'nonsense')
        eventually('it is counted', lambda: stage.get('ConnectionsBroken') == 1)


def test_settings_are_the_configuration(stage):
    stage.start_rigd('--set', 'ClientRunsMax=77', '--set', 'ClientCacheMax=3M')
    printed = subprocess.run([RIGD, '--print-config', '--set', 'ClientRunsMax=77', '--set', 'ClientCacheMax=3M'],
                             capture_output=True, text=True, check=True).stdout
    expected = dict(line.split('=', 1) for line in printed.splitlines() if '=' in line and line[0] not in '#;')
    assert stage.get('Settings') == expected and expected['ClientRunsMax'] == '77', (stage.get('Settings'), expected)


def test_devices_are_told_of(stage):
    stage.start_rigd()
    p, q = stage.program(), stage.program()
    p.do('device', 'memory:Mine')
    p.do('device', 'host')
    q.do('device', 'disk')
    p.do('buffer', 0, 4 * KIB)
    p.do('fill', 0, 'zero')
    p.do('block', 1)
    p.do('queue', 4)
    number = stage.client_of(p)
    memory, host = sorted(stage.list('ListDevices', 't', number), key=lambda d: d['Id'])
    assert (memory['Name'], memory['Adapter'], memory['Client'], memory['Id']) == ('memory:Mine', 'memory', number, 1)
    assert (memory['Submitted'], memory['Handed'], memory['Reached'], memory['Failed']) == (1, 1, 1, 0), memory
    assert memory['CopiedBytes'] == 4 * KIB and not memory['Lost'] and memory['Reason'] == '', memory
    host = eventually('all are submitted', lambda: [d for d in stage.list('ListDevices', 't', number) if d['Id'] == 2
                                                    and d['Submitted'] == 5])[0]
    assert host['Reached'] == 0 and host['Arch'] and host['Queues'] >= 1, host
    assert stage.client(p)['RunsInFlight'] == 5
    first = stage.list('ListDevices', 't', number)[1]['BusyUSec']
    eventually('time in which work is under way counts while it is',
               lambda: stage.list('ListDevices', 't', number)[1]['BusyUSec'] > first > 0)
    p.do('release')
    eventually('all is done', lambda: stage.client(p)['RunsInFlight'] == 0)
    every = stage.list('ListDevices', 't', 0)
    assert {(d['Client'], d['Adapter']) for d in every} == {
        (number, 'memory'), (number, 'host'), (stage.client_of(q), 'disk')}, every
    assert len({d['Number'] for d in every}) == 3
    c = stage.connect()
    harness.refused(lambda: harness.call(c, 'ListDevices', 't', (99,)), 'org.rig.Rig1.Error.NoSuchClient', 'client 99')


def test_all_clients_are_listed_page_by_page(stage):
    import socket
    stage.start_rigd()
    connections = []
    for _ in range(150):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(stage.socket)
        connections.append(s)
    eventually('all are clients', lambda: stage.get('Clients') == 150)
    for s in connections[::10]:
        s.close()
    eventually('some are gone', lambda: stage.get('Clients') == 135)
    numbers = [c['Number'] for c in stage.clients()]
    assert numbers == [n for n in range(1, 151) if n % 10 != 1], numbers
    for s in connections:
        s.close()


def test_an_adapter_that_is_lost_says_so(stage):
    stage.start_rigd(program=LOSER)
    path = '/org/rig/Rig1/adapter/steered_3a0'  # "steered:0", as sd_bus_path_encode(3) writes it
    watcher = stage.connect()
    watcher.listen(f"type='signal',interface='org.freedesktop.DBus.Properties',path='{path}'")
    p = stage.program()
    p.do('device', 'steered:0,hang=20000,sticky')  # its work ends by a reset alone
    p.do('hang', 0)
    signal = watcher.take(lambda m: m.member == 'PropertiesChanged')
    interface, changed, invalidated = signal.args
    assert interface == 'org.rig.Rig1.Adapter' and invalidated == [], signal.args
    assert set(changed) == {'State', 'Reason', 'Unavailable'}, changed
    assert changed['State'] == 'lost' and 'stood still' in changed['Reason'], changed
    states = [changed['State']]
    while states[-1] != 'ready':
        states.append(watcher.take(lambda m: m.member == 'PropertiesChanged').args[1]['State'])
    assert states == ['lost', 'resetting', 'ready'], states
    assert stage.get('State', path, 'org.rig.Rig1.Adapter') == 'ready'
    lost, = stage.list('ListDevices', 't', stage.client_of(p))
    assert lost['Lost'] and 'stood still' in lost['Reason'], lost
    try:
        extra = watcher.take(lambda m: m.kind == dbus.SIGNAL and m.member == 'PropertiesChanged', 0.2)
    except TimeoutError:
        return
    raise AssertionError(f'the counts signalled, too: {extra.args}')


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
