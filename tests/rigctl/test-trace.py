# SPDX-License-Identifier: ISC
"""rigctl trace: what becomes of records, of the file, and of rigctl when it is interrupted.

The fake rigd writes runs numbered from 1 into the ring it is given; Python's json reads what comes out.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import stand
import worlds

RING_RECORDS = 1 << 18  # tools/rigctl/trace.c: what is written before it reads finds so much room


def runs_of(text):
    """The values of the runs in a trace, in the order of the file."""
    trace = json.loads(text)
    return [e['args']['value'] for e in trace['traceEvents'] if e.get('ph') == 'X' and 'value' in e.get('args', {})]


class Trace(unittest.TestCase):
    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def serve(self, *rules):
        world = worlds.usual()
        world.rules += rules
        return self.enterContext(stand.fake(self.address, world))

    def path(self, name='rig-trace.json'):
        return os.path.join(self.folder, name)

    def read(self, name='rig-trace.json'):
        with open(self.path(name), encoding='utf-8') as f:
            return f.read()

    def trace(self, *args):
        return stand.rigctl(self.address, 'trace', *args, cwd=self.folder)

    def start(self, *args, out=subprocess.DEVNULL):
        return subprocess.Popen([stand.RIGCTL, '--address', self.address, 'trace', *args], cwd=self.folder, stdout=out,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=stand.environment())

    def files(self):
        return sorted(os.listdir(self.folder))

    def test_runs_before_and_at_its_end_are_in_it(self):
        self.serve('flood 20', 'late 5')
        self.assertEqual(self.trace('--time=50ms'),
                         (0, '', '25 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev\n'))
        self.assertEqual(runs_of(self.read()), list(range(1, 26)))
        self.assertEqual(self.files(), ['rig-trace.json'])

    def test_a_trace_of_nothing_is_one(self):
        self.serve()
        self.assertEqual(self.trace('-t', '0.01', '-o', 'x.json'),
                         (0, '', '0 runs, 0 records dropped: x.json; open it at ui.perfetto.dev\n'))
        self.assertEqual(runs_of(self.read('x.json')), [])

    def test_one_run_is_one(self):
        self.serve('late 1')
        self.assertIn('1 run, 0 records dropped', self.trace('-t1ms')[2])

    def test_what_finds_no_room_is_counted(self):
        # The device's record and the runs, all before rigctl reads: the rest is dropped.
        self.serve(f'flood {RING_RECORDS + 99}')
        _, _, err = self.trace('-t1ms')
        self.assertEqual(err, f'{RING_RECORDS - 1} runs, 100 records dropped: rig-trace.json; open it at ui.perfetto.dev\n')
        text = self.read()
        self.assertEqual(len(runs_of(text)), RING_RECORDS - 1)
        self.assertIn('100', re.findall(r'"dropped[^"]*":\s*"?(\d+)', text))

    def ended_by(self, which):
        self.serve('flood 3', 'late 2')
        process = self.start()
        # The file beside its name is there once it records: from then on a signal is how it ends.
        stand.await_('the recording', lambda: any(name.startswith('.rig-trace.json.') for name in self.files()))
        self.assertNotIn('rig-trace.json', self.files())
        process.send_signal(which)
        _, err = process.communicate(timeout=stand.DEADLINE)
        self.assertEqual((err.decode(), process.returncode),
                         ('5 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev\n', 0))
        self.assertEqual(runs_of(self.read()), [1, 2, 3, 4, 5])
        self.assertEqual(self.files(), ['rig-trace.json'])

    def test_interrupted_it_finishes_the_file(self):
        self.ended_by(signal.SIGINT)

    def test_terminated_it_finishes_the_file(self):
        self.ended_by(signal.SIGTERM)

    def test_stdout_gets_it_as_it_is(self):
        self.serve('flood 3')
        status, out, err = self.trace('-t1ms', '--output=-')
        self.assertEqual((status, err), (0, '3 runs, 0 records dropped: stdout; open it at ui.perfetto.dev\n'))
        self.assertEqual(runs_of(out), [1, 2, 3])
        self.assertEqual(self.files(), [])

    def test_stdout_that_nobody_reads_is_quiet(self):
        self.serve('flood 100000')
        read, write = os.pipe()
        os.close(read)
        process = self.start('-o-', out=write)
        os.close(write)
        _, err = process.communicate(timeout=stand.DEADLINE)
        self.assertEqual((err, process.returncode), (b'', -signal.SIGPIPE))

    def test_a_fifo_is_written_in_place(self):
        self.serve('flood 3')
        os.mkfifo(self.path('fifo'))
        process = self.start('-t1ms', '-o', 'fifo')
        with open(self.path('fifo'), encoding='utf-8') as f:
            text = f.read()
        process.communicate(timeout=stand.DEADLINE)
        self.assertEqual((process.returncode, runs_of(text)), (0, [1, 2, 3]))

    def test_a_trace_is_replaced_by_the_next(self):
        self.serve('flood 3', 'late 1')
        self.trace('-t1ms')
        first = self.read()
        self.assertEqual(self.trace('-t1ms')[0], 0)
        self.assertEqual((runs_of(first), runs_of(self.read())), ([1, 2, 3, 4], [5, 6, 7, 8]))

    def test_an_empty_file_is_replaced(self):
        self.serve()
        with open(self.path(), 'w', encoding='utf-8'):
            pass
        self.assertEqual(self.trace('-t1ms')[0], 0)
        self.assertEqual(runs_of(self.read()), [])

    def test_any_other_file_is_kept_unless_forced(self):
        self.serve('flood 2')
        for text in ('int main(void);\n', '{', '{"traceEvent'):
            with open(self.path('main.c'), 'w', encoding='utf-8') as f:
                f.write(text)
            self.assertEqual(self.trace('-t1ms', '-o', 'main.c'), (
                1, '', 'rigctl: main.c is there and is no trace; name another file, or replace it with --force\n'))
            self.assertEqual(self.read('main.c'), text)
        self.assertEqual(self.trace('-t1ms', '-o', 'main.c', '--force')[0], 0)
        self.assertEqual(runs_of(self.read('main.c')), [1, 2])

    def test_a_link_is_replaced_and_not_followed(self):
        self.serve()
        with open(self.path('precious'), 'w', encoding='utf-8') as f:
            f.write('precious')
        os.symlink('precious', self.path('link'))
        self.assertEqual(self.trace('-t1ms', '-o', 'link')[0], 1)
        self.assertEqual(self.trace('-t1ms', '-o', 'link', '-f')[0], 0)
        self.assertEqual((self.read('precious'), os.path.islink(self.path('link'))), ('precious', False))

    def test_the_file_has_the_rights_of_any_new_file(self):
        self.serve()
        old = os.umask(0o027)
        try:
            self.trace('-t1ms')
        finally:
            os.umask(old)
        self.assertEqual(os.stat(self.path()).st_mode & 0o777, 0o640)

    def test_where_it_cannot_write_it_says_so(self):
        self.serve()
        for args, sentence in ((['-o', 'no/where'], 'cannot write no/where: No such file or directory'),
                               (['-o', '.'], '. is a folder; name a file in it'),
                               (['-o', '/proc/rig-trace.json'], 'cannot write /proc/rig-trace.json: No such file or directory'),
                               (['-o', '/dev/full'], 'cannot write /dev/full: No space left on device')):
            self.assertEqual(self.trace('-t1ms', *args), (1, '', f'rigctl: {sentence}\n'))
        self.assertEqual(self.files(), [])

    def test_a_refused_trace_leaves_no_file(self):
        self.serve('fail StartTrace org.freedesktop.DBus.Error.Failed there are 8 traces already')
        self.assertEqual(self.trace(), (1, '', 'rigctl: cannot trace: there are 8 traces already\n'))
        self.assertEqual(self.files(), [])

    def test_a_rigd_that_leaves_ends_it_and_the_file_is_kept(self):
        rigd = self.serve('flood 3')
        process = self.start()
        stand.await_('the recording', lambda: any(name.startswith('.rig-trace.json.') for name in self.files()))
        stand.stop(rigd)
        _, err = process.communicate(timeout=stand.DEADLINE)
        self.assertEqual((err.decode(), process.returncode), (
            'rigctl: rigd left the bus while it was traced; the trace has what it did before\n'
            '3 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev\n', 3))
        self.assertEqual(runs_of(self.read()), [1, 2, 3])

    def test_a_bus_that_ends_ends_it_and_the_file_is_kept(self):
        self.serve('flood 3')
        process = self.start()
        stand.await_('the recording', lambda: any(name.startswith('.rig-trace.json.') for name in self.files()))
        stand.stop(self.address.daemon)
        _, err = process.communicate(timeout=stand.DEADLINE)
        self.assertEqual(process.returncode, 3)
        self.assertIn('3 runs, 0 records dropped: rig-trace.json;', err.decode())
        self.assertEqual(runs_of(self.read()), [1, 2, 3])

    def test_a_stop_that_fails_is_told_and_the_file_is_kept(self):
        self.serve('flood 3', 'fail StopTrace org.freedesktop.DBus.Error.Failed no')
        status, _, err = self.trace('-t1ms')
        self.assertEqual((status, err), (1, 'rigctl: cannot stop the trace: no\n3 runs, 0 records dropped: rig-trace.json; '
                                         'open it at ui.perfetto.dev\n'))
        self.assertEqual(runs_of(self.read()), [1, 2, 3])


if __name__ == '__main__':
    stand.main()
