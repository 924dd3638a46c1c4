# SPDX-License-Identifier: ISC
"""rigd under a service manager: what it is passed (sd_listen_fds(3)), its store of descriptors, its watchdog.

    test-service.py RIGD

The manager is this test. Descriptors are passed as systemd does it: from 3 on, with LISTEN_FDS, LISTEN_PID and
LISTEN_FDNAMES; sd_notify(3) and systemd.service(5) have FDSTOREREMOVE=, FDNAME= and WatchdogSec=.
"""

import os
import shutil
import socket
import sys
import tempfile
import unittest

import rigd

NOT_ONE = 'descriptors: it takes one, a listening SOCK_SEQPACKET Unix socket (ListenSequentialPacket=)'


class Passed:
    """Descriptors with names, as a manager passes them to the program that it starts."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='rigd-passed-')
        self.fds, self.names, self.sockets = [], [], 0

    def add(self, name, fd):
        self.fds.append(fd)
        self.names.append(name)

    def listening(self, name='rigd.socket', kind=socket.SOCK_SEQPACKET):
        """Adds a listening socket; its path."""
        self.sockets += 1
        path = os.path.join(self.folder, str(self.sockets))
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(path)
        s.listen(10)
        self.add(name, s.detach())
        return path

    def stored(self, name):
        """Adds what an earlier rigd stored; the other end, which sees when it is closed."""
        r, w = os.pipe()
        self.add(name, w)
        return r

    def environment(self, named=True):
        return {'LISTEN_FDS': str(len(self.fds)), **({'LISTEN_FDNAMES': ':'.join(self.names)} if named else {})}

    def preexec(self):
        """In the child, which then is the program."""
        high = [os.dup2(fd, 100 + i, inheritable=False) for i, fd in enumerate(self.fds)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        shutil.rmtree(self.folder)


# A child that has its own number in its environment: subprocess takes the environment before the fork.
SHELL = ('/bin/sh', '-c', 'LISTEN_PID=$$ exec "$0" "$@"')


class Case(unittest.TestCase):
    def setUp(self):
        self.passed = Passed()
        self.addCleanup(self.passed.close)

    def start(self, *arguments, own_socket=False, named=True):
        """A rigd that was passed all of them."""
        rigd.PROGRAM_PREFIX = SHELL
        self.addCleanup(setattr, rigd, 'PROGRAM_PREFIX', ())
        self.rigd = rigd.Rigd('--config', '/dev/null', *arguments, own_socket=own_socket,
                              environment=self.passed.environment(named), preexec=self.passed.preexec,
                              pass_fds=range(3, 3 + len(self.passed.fds)))
        self.addCleanup(self.rigd.forget)

    def refuses(self, named=True):
        """It does not start with them; what it says."""
        r = rigd.subprocess.run([*SHELL, rigd.PROGRAM, '--config', '/dev/null'], capture_output=True, text=True,
                                env={**os.environ, **self.passed.environment(named)}, preexec_fn=self.passed.preexec,
                                pass_fds=range(3, 3 + len(self.passed.fds)), timeout=rigd.WAIT_SEC, check=False)
        self.assertEqual(r.returncode, 1)
        return r.stderr

    def answers(self, path):
        """Somebody serves the socket: what is no message is answered with a sentence."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(rigd.WAIT_SEC)
            s.connect(path)
            s.send(b'no message')
            self.assertTrue(s.recv(65536))


class Sockets(Case):
    def test_the_socket_of_its_unit(self):
        path = self.passed.listening()
        self.start()
        self.assertTrue(self.rigd.ready['STATUS'].endswith(f' on {path}'), self.rigd.ready)
        self.answers(path)
        self.rigd.stop()
        self.assertTrue(os.path.exists(path), 'it removed the socket, which is not its own')

    def test_a_socket_of_any_name_and_of_none(self):
        for named, name in ((True, 'mine'), (False, '')):
            path = self.passed.listening(name)
            self.start(named=named)
            self.answers(path)
            self.rigd.stop()
            os.close(self.passed.fds.pop())
            self.passed.names.pop()

    def test_sockets_that_are_wrong(self):
        self.passed.listening('rigd.socket', socket.SOCK_STREAM)
        self.assertEqual(self.refuses(), f'rigd: systemd passed 1 {NOT_ONE}\n')
        self.passed.listening('other.socket')
        self.assertEqual(self.refuses(), f'rigd: systemd passed 2 {NOT_ONE}\n')

    def test_two_sockets(self):
        self.passed.listening('a')
        self.passed.listening('b')
        self.assertEqual(self.refuses(), f'rigd: systemd passed 2 {NOT_ONE}\n')

    def test_something_without_a_name(self):
        self.passed.listening()
        self.passed.stored('unknown')
        self.assertEqual(self.refuses(named=False), f'rigd: systemd passed 2 {NOT_ONE}\n')


class Store(Case):
    def check_dropped(self, *names):
        removed = [m['FDNAME'] for m in self.rigd.before_ready if m.get('FDSTOREREMOVE') == '1']
        self.assertEqual(removed, list(names))
        self.assertIn(f'closed {len(names)} descriptors that systemd passed and this rigd does not know: '
                      + ', '.join(names) + '\n', self.rigd.log())

    def closed(self, r):
        """Its other end was closed everywhere else."""
        self.addCleanup(os.close, r)
        ready, _, _ = rigd.select.select([r], [], [], rigd.WAIT_SEC)
        return bool(ready) and os.read(r, 1) == b''

    def test_what_another_version_stored_is_closed_and_leaves_the_store(self):
        one = self.passed.stored('device-1')
        path = self.passed.listening()
        two = self.passed.stored('device-2')
        self.start()
        self.check_dropped('device-1', 'device-2')
        for fd in (self.passed.fds[0], self.passed.fds[2]):
            os.close(fd)
        self.passed.fds[:] = self.passed.fds[1:2]
        self.assertTrue(self.closed(one) and self.closed(two))
        self.answers(path)
        self.rigd.stop()

    def test_with_a_socket_of_its_own_all_that_is_passed_is_dropped(self):
        self.passed.stored('device-1')
        self.passed.listening('rigd.socket')
        self.start(own_socket=True)
        self.check_dropped('device-1', 'rigd.socket')
        self.answers(self.rigd.socket_path)
        self.rigd.stop()

    def test_the_store_alone_is_no_socket(self):
        self.passed.stored('device-1')
        self.assertEqual(self.refuses(), f'rigd: systemd passed 1 {NOT_ONE}\n')


class Watchdog(unittest.TestCase):
    def test_it_says_that_it_lives_while_it_is_idle_and_while_it_works(self):
        r = rigd.Rigd('--config', '/dev/null', environment={'WATCHDOG_USEC': '200000'})
        self.addCleanup(r.forget)
        for _ in range(3):
            self.assertEqual(r.manager.await_key('WATCHDOG', r.pidfd)['WATCHDOG'], '1')
        with r.connect():
            self.assertEqual(r.manager.await_key('WATCHDOG', r.pidfd)['WATCHDOG'], '1')
        r.stop()

    def test_without_a_watchdog_it_says_nothing(self):
        r = rigd.Rigd('--config', '/dev/null')
        self.addCleanup(r.forget)
        r.process.terminate()
        self.assertIn('STOPPING', r.manager.receive(r.pidfd))
        r.end()


class Private(unittest.TestCase):
    def test_a_private_rigd_tells_the_manager_of_its_program_nothing(self):
        folder = tempfile.mkdtemp(prefix='rigd-')
        self.addCleanup(shutil.rmtree, folder)
        manager = rigd.Manager(folder)
        self.addCleanup(manager.close)
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with a, b, rigd.subprocess.Popen([rigd.PROGRAM, '--private', str(b.fileno())], pass_fds=[b.fileno()],
                                      env={**os.environ, 'NOTIFY_SOCKET': manager.path}) as p:
            b.close()
            a.close()
            self.assertEqual(p.wait(rigd.WAIT_SEC), 0)
        manager.socket.setblocking(False)
        self.assertRaises(BlockingIOError, manager.socket.recv, 1)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
