# SPDX-License-Identifier: ISC
"""rigd's log: the journal's own protocol where standard error is the journal, and which lines are left out.

    test-log.py RIGD

The journal is this test: a datagram socket that RIG_JOURNAL_SOCKET names, and a pipe that JOURNAL_STREAM names as
systemd.exec(5) says, device and inode of standard error. The form of a datagram, and what the fields other than RIG_*
mean, are those of systemd's "Native Journal Protocol" and of systemd.journal-fields(7).
"""

import os
import re
import shutil
import socket
import struct
import sys
import tempfile
import unittest

import rigd

IDS = {}  # by name, from the header
REFUSED = re.compile(r'a connection was refused: there are (\d+) connections, and ClientsMax is (\d+) '
                     r'\(pid (\d+), uid (\d+)\)')
LEFT_OUT = re.compile(r'\((\d+) like this were left out\)|^(?:rigd: )?(\d+) more lines of uid', re.M)


def fields_of(datagram):
    """A datagram of the journal's protocol taken apart: NAME=value, or NAME, a length of 64 bits, and bytes."""
    fields = {}
    while datagram:
        line, _, rest = datagram.partition(b'\n')
        if b'=' in line:
            name, _, value = line.partition(b'=')
            datagram = rest
        else:
            name, (length,) = line, struct.unpack_from('<Q', rest)
            value = rest[8:8 + length]
            assert rest[8 + length:9 + length] == b'\n'
            datagram = rest[9 + length:]
        assert re.fullmatch(b'[A-Z][A-Z0-9_]{0,63}', name), name
        assert name not in fields, name
        fields[name.decode()] = value.decode()
    return fields


class Journal:
    """A journal's socket, and the stream that a service has as its standard error."""

    def __init__(self, room=None):
        self.folder = tempfile.mkdtemp(prefix='rig-journal-')
        self.path = os.path.join(self.folder, 'socket')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(rigd.WAIT_SEC)
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.bind(self.path)
        self.reader, self.writer = os.pipe()
        st = os.fstat(self.writer)
        self.environment = {'RIG_JOURNAL_SOCKET': self.path, 'JOURNAL_STREAM': f'{st.st_dev}:{st.st_ino}'}

    def receive(self):
        return fields_of(self.socket.recv(65536))

    def received(self):
        """All that has come, once rigd has ended."""
        self.socket.setblocking(False)
        lines = []
        while True:
            try:
                lines.append(self.receive())
            except BlockingIOError:
                return lines

    def stream(self):
        """What rigd wrote to its standard error."""
        os.set_blocking(self.reader, False)
        try:
            return os.read(self.reader, 65536).decode()
        except BlockingIOError:
            return ''

    def close(self):
        os.close(self.reader)
        os.close(self.writer)
        self.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Case(unittest.TestCase):
    def start(self, *arguments, journal=None, **more):
        if journal:
            self.addCleanup(journal.close)
            more = {'environment': journal.environment, 'stderr': journal.writer, **more}
        self.rigd = rigd.Rigd('--config', '/dev/null', *arguments, **more)
        self.addCleanup(self.rigd.forget)

    def sends_nonsense(self):
        """A client that is ended for what it sent; it has seen its end."""
        with self.rigd.connect() as s:
            s.send(b'no message')
            while True:
                try:
                    if not s.recv(65536):
                        return
                except ConnectionResetError:
                    return


class Native(Case):
    def test_every_field_of_a_line(self):
        journal = Journal()
        self.start(journal=journal)
        first = journal.receive()
        self.assertEqual(first['MESSAGE'], f'rigd {rigd.run("--version").stdout.split()[1]} started. '
                         + self.rigd.ready['STATUS'])
        self.assertEqual(first['PRIORITY'], '6')
        self.assertEqual(first['SYSLOG_IDENTIFIER'], 'rigd')
        self.assertEqual(first['MESSAGE_ID'], IDS['STARTED'])
        self.assertTrue(first['CODE_FILE'].endswith('daemon/main/main.c'))
        self.assertFalse(first['CODE_FILE'].startswith('.'))
        self.assertGreater(int(first['CODE_LINE']), 0)
        self.assertEqual(first['CODE_FUNC'], 'run')
        self.assertEqual(set(first), {'MESSAGE', 'PRIORITY', 'SYSLOG_IDENTIFIER', 'MESSAGE_ID', 'CODE_FILE',
                                      'CODE_LINE', 'CODE_FUNC'})
        self.rigd.stop()
        self.assertEqual(journal.stream(), '')

    def test_a_client_that_is_ended(self):
        journal = Journal()
        self.start(journal=journal)
        journal.receive()
        self.sends_nonsense()
        line = journal.receive()
        self.assertEqual(line['MESSAGE_ID'], IDS['CLIENT_BROKEN'])
        self.assertEqual(line['PRIORITY'], '4')
        self.assertEqual((line['RIG_CLIENT'], line['RIG_PID'], line['RIG_UID']),
                         ('1', str(os.getpid()), str(os.getuid())))
        self.assertTrue(line['MESSAGE'].startswith(f'client 1 (pid {os.getpid()}, uid {os.getuid()}) is ended: '))
        self.rigd.stop()

    def test_a_connection_that_is_refused(self):
        journal = Journal()
        self.start('--set', 'ClientsMax=1', journal=journal)
        journal.receive()
        with self.rigd.connect(), self.rigd.connect() as refused:
            self.assertTrue(refused.recv(65536))
            line = journal.receive()
        self.assertEqual(line['MESSAGE_ID'], IDS['CONNECTIONS_MAX'])
        self.assertEqual((line['RIG_PID'], line['RIG_UID']), (str(os.getpid()), str(os.getuid())))
        self.assertEqual(line['RIG_SETTING'], 'ClientsMax')
        self.assertNotIn('RIG_CLIENT', line)
        self.assertEqual(REFUSED.fullmatch(line['MESSAGE']).groups(), ('1', '1', str(os.getpid()), str(os.getuid())))
        self.rigd.stop()

    def test_the_configuration_and_the_end(self):
        tree, journal = rigd.Tree(), Journal()
        self.addCleanup(tree.remove)
        self.addCleanup(journal.close)
        tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=x\nAdapterMemoryMax=1G\n')
        self.rigd = rigd.Rigd('--config-root', tree.root, environment=journal.environment, stderr=journal.writer)
        self.addCleanup(self.rigd.forget)
        tree.write('etc/rig/rigd.conf', '[Daemon]\nAdapterMemoryMax=2G\n')
        self.rigd.reload()
        self.rigd.stop()
        lines = journal.received()
        self.assertEqual([line.get('MESSAGE_ID') for line in lines],
                         [IDS[n] for n in ('CONFIG_WRONG', 'STARTED', 'CONFIG_NEEDS_RESTART', 'CONFIG_RELOADED',
                                           'STOPPING')])
        self.assertEqual(lines[2]['RIG_SETTING'], 'AdapterMemoryMax')
        self.assertEqual(lines[4]['MESSAGE'], 'stopping: Terminated')

    def test_a_journal_that_takes_nothing_is_not_waited_for_and_what_it_missed_is_counted(self):
        """It is full from the start: rigd serves its clients, and says how many lines are gone once there is room."""
        journal = Journal()
        while True:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                    s.setblocking(False)
                    s.sendto(b'MESSAGE=other\n', journal.path)
            except BlockingIOError:
                break
        self.start(journal=journal)
        self.sends_nonsense()
        self.sends_nonsense()
        self.assertEqual({line['MESSAGE'] for line in journal.received()}, {'other'})
        self.sends_nonsense()
        self.rigd.stop()
        first = journal.received()[0]['MESSAGE']
        self.assertTrue(first.startswith('(3 lines were dropped) client 3 '), first)
        self.assertEqual(journal.stream(), '')

    def test_a_journal_that_is_gone_leaves_standard_error(self):
        journal = Journal()
        self.start(journal=journal)
        journal.receive()
        os.unlink(journal.path)
        self.sends_nonsense()
        self.rigd.stop()
        lines = journal.stream().splitlines()
        self.assertTrue(lines[0].startswith('<4>client 1 (pid '), lines)  # its priority as sd-daemon(3) writes it
        self.assertEqual(lines[1], '<6>stopping: Terminated')


class Text(Case):
    def test_a_stream_that_is_not_its_own_is_no_journal(self):
        journal = Journal()
        self.addCleanup(journal.close)
        self.start(environment=journal.environment)  # standard error is the log file
        self.rigd.process.terminate()
        lines = self.rigd.end().splitlines()
        self.assertTrue(lines[0].startswith('rigd: rigd '), lines)
        self.assertEqual(lines[1], 'rigd: stopping: Terminated')
        self.assertEqual(journal.received(), [])

    def test_control_characters_of_others_do_not_get_out(self):
        path = os.path.join(tempfile.mkdtemp(prefix='rig-'), 'a\nb\x1b[31mc')
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        self.start('--socket', path)
        self.rigd.process.terminate()
        self.assertIn('a?b?[31mc\n', self.rigd.end())

    def test_a_full_standard_error_is_not_waited_for(self):
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        os.set_blocking(w, False)
        try:
            while True:
                os.write(w, b'x' * 4096)
        except BlockingIOError:
            os.set_blocking(w, True)
        self.start(stderr=w)
        os.close(w)
        self.sends_nonsense()
        os.read(r, 65536)
        self.sends_nonsense()
        self.rigd.stop()
        said = os.read(r, 65536).decode().lstrip('x')
        self.assertTrue(said.startswith('rigd: (2 lines were dropped) client 2 '), said)


class Limited(Case):
    def lines_and_left_out(self, log, pattern):
        return len(re.findall(pattern, log)), sum(int(a or b) for a, b in LEFT_OUT.findall(log))

    def test_refusals_that_repeat_are_counted_instead_of_written(self):
        self.start('--set', 'ClientsMax=1')
        with self.rigd.connect():
            for _ in range(100):
                with self.rigd.connect() as s:
                    self.assertTrue(s.recv(65536))
        self.rigd.process.terminate()
        log = self.rigd.end()
        lines, left_out = self.lines_and_left_out(log, REFUSED)
        self.assertEqual(lines + left_out, 100)
        self.assertGreaterEqual(lines, 5)
        self.assertLess(lines, 100, log)
        self.assertIn(f'more lines of uid {os.getuid()} with the message id {IDS["CONNECTIONS_MAX"]} were left out\n',
                      log)

    def test_one_kind_of_line_does_not_silence_another(self):
        self.start('--set', 'ClientsMax=1')
        with self.rigd.connect():
            for _ in range(20):
                with self.rigd.connect() as s:
                    self.assertTrue(s.recv(65536))
        for _ in range(2):
            self.sends_nonsense_alone()
        self.rigd.process.terminate()
        self.assertEqual(len(re.findall('is ended: ', self.rigd.end())), 2)

    def sends_nonsense_alone(self):
        """Sends nonsense as the only client: the one before it may not be gone yet, and then it is refused."""
        before = self.rigd.log().count('is ended: ')
        while self.rigd.log().count('is ended: ') == before:
            self.sends_nonsense()

    def test_what_is_not_caused_by_clients_is_never_left_out(self):
        tree = rigd.Tree()
        self.addCleanup(tree.remove)
        tree.write('etc/rig/rigd.conf', '[Daemon]\n' + 'Nonsense=1\n' * 50)
        self.rigd = rigd.Rigd('--config-root', tree.root)
        self.addCleanup(self.rigd.forget)
        self.rigd.process.terminate()
        self.assertEqual(self.rigd.end().count('there is no setting "Nonsense"'), 50)


class Real(Case):
    def test_the_journal_of_this_machine_takes_what_rigd_sends(self):
        """libsystemd's own reader sees the fields, where a journal runs and may be read."""
        if not os.path.exists('/run/systemd/journal/socket'):
            self.skipTest('no journal runs here')
        journal = Journal()
        environment = {k: v for k, v in journal.environment.items() if k != 'RIG_JOURNAL_SOCKET'}
        self.start(journal=journal, environment=environment)
        pid = self.rigd.process.pid
        self.rigd.stop()
        rigd.subprocess.run(['journalctl', '--sync'], capture_output=True, check=False)
        r = rigd.subprocess.run(['journalctl', '-o', 'json', f'_PID={pid}', 'MESSAGE_ID=' + IDS['STARTED']],
                                capture_output=True, text=True, check=False)
        if r.returncode:
            self.skipTest('the journal may not be read here: ' + r.stderr)
        self.assertIn('"SYSLOG_IDENTIFIER":"rigd"', r.stdout)


def main():
    with open(sys.argv[2], encoding='utf-8') as f:
        IDS.update(re.findall(r'#define RIG_LOG_(\w+)\s+"([0-9a-f]{32})"', f.read()))
    unittest.main(argv=sys.argv[:1])


if __name__ == '__main__':
    main()
