# SPDX-License-Identifier: ISC
"""rigctl with the real rigd: what known programs hold and do is what it says, and what it sets holds.

The programs are rigctl-holder (holder.c), so what they hold and do is known here: expected numbers come from what
they were told. Where a number is rigd's own affair it is compared with what busctl reads.
"""

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import stand

RIGD, HOLDER = os.environ.get('RIGD', 'rigd'), os.environ.get('HOLDER', 'rigctl-holder')
MIB, COPY_BYTES, FOLLOW_BYTES = 1 << 20, 4096, 65536
MANAGER = ('org.rig.Rig1', '/org/rig/Rig1', 'org.rig.Rig1.Manager')


class Holder:
    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def tell(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


@contextlib.contextmanager
def holder(path, transport='ring'):
    process = subprocess.Popen([HOLDER, f'unix:{path},transport={transport}'], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, env=stand.environment())
    try:
        if process.stdout.readline() != 'holding\n':
            raise AssertionError('the holder did not start')
        yield Holder(process)
    finally:
        process.stdin.close()
        stand.stop(process)
        process.stdout.close()


@contextlib.contextmanager
def rigd(address, folder, *options):
    """The real one. Yields its socket; it must end cleanly."""
    path = os.path.join(folder, 'rigd.sock')
    process = subprocess.Popen([RIGD, '--socket', path, '--bus', address, '--log-level', 'warning', *options],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=stand.environment())
    try:
        stand.await_('rigd on the bus', lambda: stand.rigctl(address, 'log-level')[0] == 0)
        yield path
    finally:
        stand.stop(process)
        said = process.stderr.read().decode()
        process.stderr.close()
        stand.complain_of_sanitizers(said)
        if process.returncode:
            raise AssertionError(f'rigd ended with {process.returncode}: {said}')


class OnRigd(unittest.TestCase):
    OPTIONS = ()

    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.socket = self.enterContext(rigd(self.address, self.folder, *self.options()))

    def options(self):
        return ()

    def hold(self, **how):
        return self.enterContext(holder(self.socket, **how))

    def rigctl(self, *args):
        status, out, err = stand.rigctl(self.address, *args, cwd=self.folder)
        self.assertEqual((err, status), ('', 0), args)
        return out

    def json(self, *args):
        return json.loads(self.rigctl(*args, '-j'))

    def busctl(self, *args):
        said = subprocess.run(['busctl', f'--address={self.address}', '--json=short', *args], check=True, timeout=60,
                              stdout=subprocess.PIPE, env=stand.environment())
        return json.loads(said.stdout)['data']

    def client(self, program):
        found, = [c for c in self.json('clients') if c['PID'] == program.pid]
        return found


class WhatIsThere(OnRigd):
    def test_lists_are_what_busctl_reads(self):
        self.hold()
        self.hold()

        def plain(records):
            return [{k: v['data'] for k, v in r.items()} for r in records[0]]
        self.assertEqual(self.json('list'), plain(self.busctl('call', *MANAGER, 'ListAdapters')))
        # An answer has as many as rigd has time for.
        clients = []
        while some := plain(self.busctl('call', *MANAGER, 'ListClients', 't', str(len(clients) and clients[-1]['Number']))):
            clients += some
        self.assertEqual(self.json('clients'), clients)
        self.assertEqual(len(clients), 2)
        for c in self.json('clients'):
            shown = self.json('show', str(c['Number']))
            self.assertEqual(shown['Client'], c)
            self.assertEqual(shown['Devices'], plain(self.busctl('call', *MANAGER, 'ListDevices', 't', str(c['Number']))))
        stats = self.json('stats')['Manager']
        for key in ('Version', 'StartUSec', 'Settings', 'Clients', 'Devices', 'Adapters', 'Connections', 'RunsReached'):
            self.assertEqual(stats[key], self.busctl('get-property', *MANAGER, key), key)

    def test_known_programs_have_true_numbers(self):
        programs = [self.hold(transport=t) for t in ('ring', 'words', 'socket')]
        for i, p in enumerate(programs):
            self.assertEqual(p.tell(f'copies {i + 5}'), ['done'])
        for i, (p, transport) in enumerate(zip(programs, ('ring', 'words', 'socket'))):
            c = self.client(p)
            self.assertEqual((c['UID'], c['Command'], c['Transport'], c['Devices']),
                             (os.getuid(), 'rigctl-holder', transport, 2))
            self.assertEqual((c['RunsReached'], c['RunsFailed'], c['RunsInFlight'], c['CopiedBytes']),
                             (i + 5, 0, 0, (i + 5) * COPY_BYTES))
            # Three buffers, three works; what memory is rounded up to is rigd's affair, within a tenth.
            self.assertGreaterEqual(c['Objects'], 6)
            self.assertTrue(2 * MIB <= c['LiveBytes'] <= 3.3 * MIB, c)
            devices = {d['Name']: d for d in self.json('show', str(c['Number']))['Devices']}
            self.assertEqual(set(devices), {'memory:M', 'host'})
            self.assertEqual([devices['memory:M'][k] for k in ('Submitted', 'Reached', 'Failed', 'Lost')],
                             [i + 5, i + 5, 0, False])
        stats = self.json('stats')['Manager']
        self.assertEqual((stats['Clients'], stats['Devices'], stats['RunsReached'], stats['CopiedBytes']),
                         (3, 6, 5 + 6 + 7, 18 * COPY_BYTES))
        rows = {line.split()[1]: line for line in self.rigctl('clients', '--no-legend').splitlines()}
        for p in programs:
            self.assertRegex(rows[str(p.pid)], r'\brigctl-holder\b.* 24K |rigctl-holder.* (20K|28K) ')

    def test_work_under_way_is_shown(self):
        p = self.hold()
        self.assertEqual(p.tell('gate'), ['gated', '1', '1'])
        c = stand.await_('both runs', lambda: (lambda c: c if c['RunsInFlight'] == 2 else None)(self.client(p)))
        shown = self.rigctl('show', str(c['Number']))
        self.assertIn('In flight: 2 of ', shown)
        # Time in which work is under way is device time, which top shows as it grows.
        busy = stand.await_('the busy host', lambda: [
            k for k in json.loads(self.rigctl('top', '-j', '-n2', '-d0.2').splitlines()[1])['Clients']
            if k['PID'] == p.pid and k['BusyPercent'] > 50])
        self.assertEqual(busy[0]['RunsPerSecond'], 0)
        self.assertEqual(p.tell('open'), ['opened'])
        self.assertEqual(self.client(p)['RunsInFlight'], 0)

    def test_adapters_are_shown_with_who_uses_them(self):
        p = self.hold()
        number = self.client(p)['Number']
        names = [a['Name'] for a in self.json('list')]
        shown = self.json('show', next(n for n in names if n.startswith('memory')))
        self.assertEqual([(d['Client'], d['Name']) for d in shown['Devices']], [(number, 'memory:M')])
        for name in names:
            self.assertTrue(self.rigctl('show', 'adapter', name).startswith(f'adapter {name}\n'))

    def test_a_program_that_ends_is_gone(self):
        with holder(self.socket) as p:
            number = self.client(p)['Number']
        stand.await_('its end', lambda: self.json('clients') == [])
        self.assertEqual(stand.rigctl(self.address, 'show', str(number)),
                         (1, '', f'rigctl: there is no client {number}, nor any other\n'))
        self.assertEqual(self.rigctl('clients'), 'No clients.\n')

    def test_top_tells_the_busy_from_the_idle(self):
        idle, busy = self.hold(), self.hold()
        watch = subprocess.Popen([stand.RIGCTL, '--address', self.address, 'top', '-j', '-d0.1'], text=True,
                                 stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=stand.environment())
        try:
            json.loads(watch.stdout.readline())
            busy.tell('copies 1000')
            total = 0
            while total < 1000:  # it grows to that, however the runs fall into frames
                frame = {c['PID']: c for c in json.loads(watch.stdout.readline())['Clients']}
                self.assertEqual(frame[idle.pid]['RunsPerSecond'], 0)
                total = frame[busy.pid]['RunsReached']
            self.assertGreater(frame[busy.pid]['RunsPerSecond'], 0)
            self.assertGreater(frame[busy.pid]['CopiedBytesPerSecond'], 0)
        finally:
            stand.stop(watch)
            watch.stdout.close()


class WhatIsSet(OnRigd):
    def options(self):
        self.config = os.path.join(self.folder, 'rigd.conf')
        self.write('[Daemon]\nClientsMax=9\n')
        return '--config', self.config

    def write(self, text):
        with open(self.config, 'w', encoding='utf-8') as f:
            f.write(text)

    def test_limits_hold(self):
        p = self.hold()
        number = str(self.client(p)['Number'])
        out = self.rigctl('limits', number, 'MemoryMax=4M', '--no-legend')
        self.assertEqual({line.split()[0]: line.split()[2] for line in out.splitlines()}['MemoryMax'], '4M')
        self.assertEqual(p.tell(f'more {16 * MIB}'), ['refused', str(errno.EDQUOT)])
        self.rigctl('limits', number, 'MemoryMax=infinity')
        self.assertEqual(p.tell(f'more {16 * MIB}'), ['ok'])

    def test_the_log_level_is_set(self):
        self.assertEqual(self.rigctl('log-level'), 'warning\n')
        self.rigctl('log-level', 'debug')
        self.assertEqual(self.rigctl('log-level'), 'debug\n')
        self.assertEqual(self.busctl('get-property', 'org.rig.Rig1', '/org/freedesktop/LogControl1',
                                     'org.freedesktop.LogControl1', 'LogLevel'), 'debug')

    def test_reload_reads_the_configuration(self):
        self.assertEqual(self.json('stats')['Manager']['Settings']['ClientsMax'], '9')
        self.write('[Daemon]\nClientsMax=7\n')
        self.rigctl('reload')
        self.assertEqual(self.json('stats')['Manager']['Settings']['ClientsMax'], '7')

    def test_what_is_wrong_with_the_configuration_is_named_with_its_line(self):
        self.write('[Daemon]\n\nClientsMx=7\nClientsMax=many\n')
        for line, word in zip(self.rigctl('reload').splitlines(), (r':3: .*\bClientsMx\b', r':4: .*\bmany\b'), strict=True):
            self.assertRegex(line, '^' + re.escape(self.config) + word)


class Traces(OnRigd):
    def record(self, *args):
        process = subprocess.Popen([stand.RIGCTL, '--address', self.address, 'trace', *args], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=stand.environment())
        stand.await_('the trace', lambda: self.json('stats')['Manager']['Traces'] == 1)
        return process

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=stand.DEADLINE)
        stand.complain_of_sanitizers(err.decode())
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(self.json('stats')['Manager']['Traces'], 0)
        with open(os.path.join(self.folder, 'rig-trace.json'), encoding='utf-8') as f:
            return err.decode(), json.load(f)['traceEvents']

    def test_events_are_what_the_program_did(self):
        p = self.hold()
        p.tell('copies 3')  # before: not in it
        process = self.record()
        p.tell('copies 20')
        self.assertEqual(p.tell('gate'), ['gated', '1', '24'])
        self.assertEqual(p.tell('open'), ['opened'])
        said, events = self.finish(process)
        self.assertEqual(said, '22 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev\n')

        runs = [e for e in events if e['ph'] == 'X']
        self.assertEqual({e['pid'] for e in runs}, {p.pid})
        copies = [e for e in runs if e['name'] == 'copy-it']
        self.assertEqual([e['args']['value'] for e in copies], list(range(4, 24)))
        self.assertEqual({e['args']['copied_bytes'] for e in copies}, {COPY_BYTES})
        follow, = [e for e in runs if e['name'] == 'follow']
        think, = [e for e in runs if e['name'] == 'think']
        self.assertEqual((follow['args']['copied_bytes'], follow['args']['value']), (FOLLOW_BYTES, 24))
        self.assertEqual((think['args']['launches'], think['args']['value']), (1, 1))
        self.assertEqual(len(runs), 22)

        # Each device has a track of its own, and one run of it follows the other.
        self.assertEqual({e['tid'] for e in copies}, {follow['tid']})
        self.assertNotEqual(think['tid'], follow['tid'])
        for a, b in zip(copies, copies[1:]):
            self.assertLessEqual(a['ts'] + a['dur'], b['ts'] + 0.0005)

        # What waited starts behind what it waited for, and an arrow leads from one to the other.
        self.assertGreaterEqual(follow['ts'], think['ts'] + think['dur'] - 0.0005)
        start, = [e for e in events if e['ph'] == 's']
        end, = [e for e in events if e['ph'] == 'f']
        self.assertEqual((start['id'], start['tid'], end['tid']), (end['id'], think['tid'], follow['tid']))
        self.assertTrue(think['ts'] <= start['ts'] <= think['ts'] + think['dur'])
        self.assertTrue(follow['ts'] <= end['ts'] <= follow['ts'] + follow['dur'])

        # Processes and tracks have names.
        names = {(e['name'], e['pid']): e['args']['name'] for e in events if e['ph'] == 'M' and 'name' in e['args']}
        self.assertIn('rigctl-holder', names['process_name', p.pid])

    def test_memory_is_counted(self):
        p = self.hold()
        process = self.record()
        self.assertEqual(p.tell(f'more {8 * MIB}'), ['ok'])
        held = self.client(p)['LiveBytes']
        p.tell('copies 1')
        _, events = self.finish(process)
        counts = [e for e in events if e['ph'] == 'C' and e['name'].startswith('memory')]
        self.assertTrue(any(2 * MIB + 8 * MIB <= e['args']['live'] <= held for e in counts), (held, counts))

    def test_of_one_client_alone(self):
        p, q = self.hold(), self.hold()
        process = self.record(f'--client={self.client(q)["Number"]}')
        p.tell('copies 5')
        q.tell('copies 7')
        said, events = self.finish(process)
        self.assertIn('7 runs, 0 records dropped', said)
        self.assertEqual({e['pid'] for e in events if e['ph'] == 'X'}, {q.pid})

    def test_many_runs_lose_no_record(self):
        p = self.hold()
        process = self.record()
        p.tell('copies 50000')
        said, events = self.finish(process)
        self.assertEqual(said, '50000 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev\n')
        self.assertEqual([e['args']['value'] for e in events if e['ph'] == 'X'], list(range(1, 50001)))


if __name__ == '__main__':
    stand.need('busctl')
    stand.main()
