# SPDX-License-Identifier: ISC
"""Holds the traces that are written to the Trace Event Format, and to what Perfetto does with one.

    check-perfetto.py RECORDS-TO-JSON

Records go in as text, and what comes out is read as Perfetto does (perfetto.py).
"""

import json
import random
import subprocess
import sys

from perfetto import Importer

WRITER = None  # the program that writes


def hexed(text):
    data = text if isinstance(text, bytes) else text.encode()
    return data.hex() or '-'


class Records:
    """Lines for the program, and the trace that they become."""

    def __init__(self):
        self.lines = []

    def device(self, number, pid=100, queues=1, name='memory:M', command='prog', client=1):
        self.lines.append(f'device {number} {client} {pid} {queues} {hexed(name)} {hexed(command)}')

    def run(self, number, value, started, ended, accepted=None, copied=0, filled=0, launches=0, queues=1, error=0,
            name=''):
        accepted = started if accepted is None else accepted
        self.lines.append(f'run {number} {value} {accepted} {started} {ended} {copied} {filled} {launches} {queues} '
                          f'{error} {hexed(name)}')

    def wait(self, number, value, on, on_value):
        self.lines.append(f'wait {number} {value} {on} {on_value}')

    def memory(self, nsec, live, cached, adapter='memory'):
        self.lines.append(f'memory {nsec} {live} {cached} {hexed(adapter)}')

    def span(self, pid, tid, begin, end, name):
        self.lines.append(f'span {pid} {tid} {begin} {end} {hexed(name)}')

    def trace(self, dropped=0):
        text = '\n'.join(self.lines + [f'end {dropped}', ''])
        r = subprocess.run([WRITER], input=text.encode(), capture_output=True, check=False)
        assert r.returncode == 0, r.stderr.decode()
        return Importer(r.stdout)


# ---------------------------------------------------------------- each thing alone


def an_empty_trace_is_one():
    t = Records().trace()
    assert t.events == [] and t.other['dropped'] == 0


def a_client_is_a_process_and_its_queues_are_tracks():
    r = Records()
    r.device(7, pid=4711, queues=3, name='gpu:0', command='train')
    r.device(8, pid=4711, queues=1, name='memory:M', command='train')
    r.device(9, pid=4712, queues=1, name='memory:M', command='infer')
    t = r.trace()
    assert t.processes == {4711: 'train', 4712: 'infer'}, t.processes
    assert sorted(t.threads.values()) == ['gpu:0 queue 0', 'gpu:0 queue 1', 'gpu:0 queue 2', 'memory:M', 'memory:M']
    assert set(t.sort_index) == set(t.threads) and len(set(t.sort_index.values())) == 5
    assert all(tid > 4194304 for tid in t.threads), 'a number that the kernel may give a thread'


def a_run_is_a_slice_on_each_of_its_queues():
    r = Records()
    r.device(1, queues=3)
    r.run(1, 5, 2_000_000_000, 2_000_123_456, accepted=1_999_999_000, copied=4096, filled=64, launches=2, queues=5,
          name='step')
    t = r.trace()
    assert [t.threads[s['tid']] for s in t.slices] == ['memory:M queue 0', 'memory:M queue 2']
    for s in t.slices:
        assert (s['from'], s['end'] - s['start'], s['cat']) == (2_000_000_000, 123_456, 'run')
        args = s['args']
        assert (args['device'], args['number'], args['value']) == ('memory:M', 1, 5)
        assert (args['copied_bytes'], args['filled_bytes'], args['launches']) == (4096, 64, 2)
        assert args['waited_usec'] == 1.0 and 'error' not in args and 'after' not in args


def a_run_without_a_name_is_called_what_it_does():
    r = Records()
    r.device(1)
    cases = [((4096, 0, 0), 'copy 4096 bytes'), ((0, 64, 0), 'fill 64 bytes'), ((0, 0, 1), 'launch'),
             ((0, 0, 3), '3 launches'), ((1, 2, 1), 'copy 1 bytes, fill 2 bytes, launch'), ((0, 0, 0), 'run'),
             ((2**64 - 1, 2**64 - 1, 2**32 - 1),
              'copy 18446744073709551615 bytes, fill 18446744073709551615 bytes, 4294967295 launches')]
    for i, ((copied, filled, launches), _) in enumerate(cases):
        r.run(1, i + 1, 1000 * i + 1000, 1000 * i + 2000, copied=copied, filled=filled, launches=launches)
    assert [s['name'] for s in r.trace().slices] == [name for _, name in cases]


def a_failed_run_says_its_error():
    r = Records()
    r.device(1)
    r.run(1, 1, 10, 20, error=-19)
    r.run(1, 2, 20, 30, error=-5)
    assert [s['args']['error'] for s in r.trace().slices] == ['ENODEV', 'EIO']


def a_run_of_unknown_queues_or_none_is_drawn_on_the_first():
    r = Records()
    r.device(1, queues=2)
    for i, queues in enumerate((0, 4, 2**32 - 4, 2**31)):
        r.run(1, i + 1, 10 * i, 10 * i + 10, queues=queues)
    t = r.trace()
    assert [t.threads[s['tid']] for s in t.slices] == ['memory:M queue 0'] * 4


def waits_are_arrows_from_the_end_to_the_start():
    r = Records()
    r.device(1, name='memory:A')
    r.device(2, name='memory:B', queues=4, pid=101)
    r.run(1, 1, 1000, 2000, name='early')
    r.run(1, 2, 2000, 3000, name='load')
    r.wait(2, 7, 1, 2)
    r.run(2, 7, 3000, 4000, name='use', queues=8)
    t = r.trace()
    assert t.arrows() == [('load', 'use')]
    assert t.named('use')[0]['args']['after'] == ['memory:A 2']
    ends = [e for e in t.events if e['ph'] in 'sf']
    assert [e['from'] for e in ends] == [2999, 3000]
    assert 'after' not in t.named('early')[0]['args']


def what_is_not_known_of_a_wait_is_no_arrow():
    r = Records()
    r.device(1)
    r.run(1, 1, 1000, 2000)
    r.wait(1, 2, 0, 99)  # another program's
    r.wait(1, 2, 77, 3)  # of a device whose record found no room
    r.wait(1, 2, 1, 40)  # of a run that was not seen
    r.wait(1, 3, 1, 2)  # whose own run finds no room
    r.run(1, 2, 2000, 3000, name='two')
    r.run(1, 4, 3000, 4000, name='four')
    t = r.trace()
    assert t.arrows() == []
    assert t.named('two')[0]['args']['after'] == ['work of another program', 'device 77 3', 'memory:M 40']
    assert 'after' not in t.named('four')[0]['args']


def arrows_come_from_the_last_64_runs_of_a_device():
    r = Records()
    r.device(1, name='memory:A')
    r.device(2, name='memory:B')
    for i in range(100):
        r.run(1, i + 1, 1000 * i + 1000, 1000 * i + 2000, name=f'a{i + 1}')
    r.wait(2, 1, 1, 36)
    r.wait(2, 1, 1, 37)
    r.wait(2, 1, 1, 100)
    r.run(2, 1, 200_000, 201_000, name='b')
    assert r.trace().arrows() == [('a100', 'b'), ('a37', 'b')]


def waits_beyond_sixteen_of_a_run_are_left_out():
    r = Records()
    r.device(1)
    r.device(2, name='memory:B')
    for i in range(20):
        r.run(1, i + 1, 1000 * i + 1000, 1000 * i + 2000, name=f'a{i + 1}')
        r.wait(2, 1, 1, i + 1)
    r.run(2, 1, 200_000, 201_000, name='b')
    assert len(r.trace().arrows()) == 16


def a_device_without_a_record_is_named_by_its_number():
    r = Records()
    r.run(12, 1, 1000, 2000)
    r.device(12, pid=55, name='memory:late', command='prog')
    r.run(12, 2, 2000, 3000)
    trace = subprocess.run([WRITER], input='\n'.join(r.lines + ['end 0', '']).encode(), capture_output=True, check=True)
    events = json.loads(trace.stdout)['traceEvents']
    slices = [e for e in events if e['ph'] == 'X']
    assert [s['args']['device'] for s in slices] == ['device 12', 'memory:late']
    assert slices[1]['pid'] == 55 and slices[0]['pid'] > 4194304
    names = [e['args']['name'] for e in events if e['ph'] == 'M' and e['name'] == 'thread_name']
    assert 'device 12 queue 0' in names and 'memory:late' in names


def a_device_that_is_told_of_twice_is_one():
    r = Records()
    r.device(1)
    r.device(1, name='something else')
    t = r.trace()
    assert list(t.threads.values()) == ['memory:M']


def a_program_without_a_pid_or_a_command_has_a_track_too():
    r = Records()
    r.device(1, pid=0, command='', client=42)
    r.run(1, 1, 10, 20)
    t = r.trace()
    assert list(t.processes.values()) == ['client 42'] and t.slices[0]['pid'] > 4194304


def memory_is_a_counter():
    r = Records()
    r.memory(1_000_000, 4096, 0, 'memory')
    r.memory(2_000_000, 0, 4096, 'gpu:0')
    t = r.trace()
    assert [(c['name'], c['from'], c['args']) for c in t.counters] == [
        ('memory memory', 1_000_000, {'live': 4096, 'cached': 0}),
        ('gpu:0 memory', 2_000_000, {'live': 0, 'cached': 4096})]
    assert set(t.processes.values()) == {'memory'}


def spans_are_slices_of_their_threads():
    r = Records()
    r.span(100, 101, 1000, 9000, 'outer')
    r.span(100, 101, 1000, 4000, 'inner')
    r.span(100, 102, 2000, 2000, 'elsewhere')
    t = r.trace()
    assert [(s['tid'], s['name'], s['from'], s['end'] - s['start']) for s in t.slices] == [
        (101, 'outer', 1000, 8000), (101, 'inner', 1000, 3000), (102, 'elsewhere', 2000, 0)]
    assert all(s['cat'] == 'span' for s in t.slices)


def dropped_records_are_told():
    r = Records()
    r.device(1)
    r.run(1, 1, 1000, 2000)
    t = r.trace(dropped=17)
    assert t.other['dropped'] == 17 and [i['name'] for i in t.instants] == ['17 records found no room']
    assert r.trace(dropped=0).instants == []


def kinds_that_are_not_known_are_skipped():
    r = Records()
    r.lines += ['other 0', 'other 5', 'other 4294967295']
    assert r.trace().events == []


def names_are_any_bytes_and_the_file_is_json():
    cases = [
        (b'plain', 'plain'), (b'"quoted" \\ back', '"quoted" \\ back'), (b'a\tb\nc\x01\x1f\x7f', 'a\tb\nc\x01\x1f\x7f'),
        ('Größe ü'.encode(), 'Größe ü'), ('日本'.encode(), '日本'), ('😀'.encode(), '😀'),
        (b'\xff\xfe', '\ufffd\ufffd'), (b'a\xc3', 'a\ufffd'), (b'\xc0\xaf', '\ufffd\ufffd'),
        (b'\xe0\x80\xaf', '\ufffd' * 3), (b'\xed\xa0\x80', '\ufffd' * 3), (b'\xf4\x90\x80\x80', '\ufffd' * 4),
        (b'\xf8\x88\x80\x80\x80', '\ufffd' * 5), (b'\xe2\x82', '\ufffd' * 2), (b'\xe2\x82z', '\ufffd\ufffdz'),
        (b'\xef\xbf\xbf', '\uffff'), (b'\xf4\x8f\xbf\xbf', '\U0010ffff'), (b'\xed\x9f\xbf', '\ud7ff'),
        (b'x' * 46 + b'\xc3\xa9', 'x' * 46 + 'é'), (b'x' * 47 + b'\xc3\xa9', 'x' * 47 + '\ufffd'),
    ]
    r = Records()
    r.device(1, name=b'me"m\x02\xff', command=b'pr\\og\xf0\x9f')
    for i, (name, _) in enumerate(cases):
        r.run(1, i + 1, i * 100 + 100, i * 100 + 200, name=name)
    r.span(1, 2, 10, 20, b'\xe9t\xe9"')
    r.memory(10, 1, 1, b'\x80"')
    t = r.trace()
    assert [s['name'] for s in t.slices if s['cat'] == 'run'] == [name for _, name in cases]
    assert t.threads == {tid: 'me"m\x02\ufffd' for tid in t.threads}
    assert set(t.processes.values()) == {'pr\\og\ufffd\ufffd', 'memory'}
    assert len(t.named('\ufffdt\ufffd"')) == 1 and t.counters[0]['name'] == '\ufffd" memory'
    assert all(b >= ' ' for line in t.lines for b in line), 'a control character'


# ---------------------------------------------------------------- times


def nanoseconds_survive_at_any_uptime():
    rng = random.Random(1)
    day = 86400 * 10**9
    for uptime in (1, 10**9, 3600 * 10**9 - 1, 3600 * 10**9 + 1, day, 100 * day, 1000 * day, 10000 * day):
        r = Records()
        r.device(1)
        at, want = uptime, []
        for i in range(300):
            length = rng.choice((1, 2, 3, 17, 999, 1000, 1001, rng.randrange(1, 10**6), rng.randrange(1, 10**10)))
            want.append((at, length))
            r.run(1, i + 1, at, at + length)
            at += length
        t = r.trace()
        assert [(s['from'], s['end'] - s['start']) for s in t.slices] == want, uptime


def runs_never_overlap_as_drawn():
    r = Records()
    r.device(1, queues=2)
    r.run(1, 1, 1000, 5000, queues=1)
    r.run(1, 2, 3000, 6000, queues=3)  # begins in the one before it
    r.run(1, 3, 2000, 2500, queues=2)  # all of it is before the end of the one before it
    r.run(1, 4, 6001, 6001, queues=2)  # nothing is as short as it
    r.run(1, 5, 5000, 4000, queues=1)  # ends before it starts
    t = r.trace()
    assert [(s['args']['value'], s['from'], s['end'] - s['start']) for s in t.slices] == [
        (1, 1000, 4000), (2, 5000, 1000), (2, 5000, 1000), (3, 6000, 1), (5, 6000, 1), (4, 6001, 1)]


def what_is_older_than_the_first_event_by_an_hour_is_still_there():
    hour = 3600 * 10**9
    r = Records()
    r.device(1)
    r.device(2)
    r.run(1, 1, 10 * hour, 10 * hour + 1000)
    r.run(2, 1, 9 * hour, 10 * hour + 2000)
    r.device(3)
    r.run(3, 1, 8 * hour, 10 * hour + 2000)
    t = r.trace()
    assert [s['from'] for s in t.slices] == [9 * hour, 9 * hour, 10 * hour], [s['from'] for s in t.slices]


# ---------------------------------------------------------------- anything


def random_records(seed):
    rng = random.Random(seed)
    r = Records()
    now, value = rng.randrange(1, 10**17), {}
    for _ in range(rng.randrange(400)):
        now += rng.choice((0, 1, 999, rng.randrange(10**6)))
        what = rng.randrange(10)
        number = rng.randrange(1, 8)
        if what == 0:
            # pids that stay a device's, as the kernel's do
            r.device(number, pid=100 + number % 3, queues=rng.randrange(10))
        elif what < 7:
            value[number] = value.get(number, 0) + rng.choice((1, 1, 1, 2))
            r.run(number, value[number], now - rng.randrange(5000), now + rng.randrange(5000) - 1000,
                  accepted=now - rng.randrange(10000), copied=rng.randrange(3), filled=rng.randrange(3),
                  launches=rng.randrange(3), queues=rng.choice((0, 1, 2, 3, 255, 2**32 - 1)),
                  error=rng.choice((0, 0, -5, -4711)), name=rng.randbytes(rng.randrange(60)).replace(b'\0', b''))
        elif what < 9:
            on = rng.randrange(8)
            r.wait(number, value.get(number, 0) + rng.randrange(3), on, max(0, value.get(on, 0) - rng.randrange(3)))
        else:
            adapter = rng.randbytes(rng.randrange(70)).replace(b'\0', b'')
            r.memory(now, rng.randrange(2**63), rng.randrange(2**63), adapter)
    return r


def any_records_become_a_trace_that_loses_nothing():
    for seed in range(200):
        r = random_records(seed)
        # A device that is told of late moves to its process: devices first keep a thread in one process.
        r.lines.sort(key=lambda line: not line.startswith('device'))
        lines = [line for line in r.lines if line.startswith('run')]
        try:
            t = r.trace(dropped=seed % 3)
        except AssertionError as e:
            raise AssertionError(f'seed {seed}: {e}') from e
        drawn = {(s['args']['number'], s['args']['value']) for s in t.slices}
        assert drawn == {tuple(map(int, line.split()[1:3])) for line in lines}, f'seed {seed}'


def writing_that_fails_is_said():
    r = subprocess.run([WRITER, '/dev/full'], input=b'end 0\n', capture_output=True, check=False)
    assert (r.returncode, r.stderr) == (1, b'ENOSPC\n'), r
    many = b''.join(b'memory %d 1 1 6d\n' % (i + 1) for i in range(5000)) + b'end 0\n'
    r = subprocess.run([WRITER, '/dev/full'], input=many, capture_output=True, check=False)
    assert (r.returncode, r.stderr) == (1, b'ENOSPC\n'), r


def main():
    global WRITER
    WRITER = sys.argv[1]
    tests = [f for name, f in list(globals().items()) if callable(f) and getattr(f, '__module__', '') == '__main__'
             and isinstance(f, type(main)) and f.__code__.co_argcount == 0 and f is not main]
    for test in tests:
        print(test.__name__, flush=True)
        test()
    print(f'{len(tests)} tests hold')
    return 0 if len(tests) > 20 else 1


if __name__ == '__main__':
    sys.exit(main())
