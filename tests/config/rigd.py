# SPDX-License-Identifier: ISC
"""What these tests share: a rigd that runs with a tree of configuration files, and what it tells its service manager.

Nothing here sleeps: the manager's socket says when rigd is ready, reloading or stopping, and every wait is bounded.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ''
PROGRAM_PREFIX = ()  # what starts it, where that has to be something
WAIT_SEC = 60
# By precedence: systemd-system.conf(5), "Configuration directories and precedence".
FOLDERS = ('etc/rig', 'run/rig', 'usr/local/lib/rig', 'usr/lib/rig')


def run(*arguments, **more):
    """Runs rigd to its end; for wrong calls, --check-config and --print-config."""
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=WAIT_SEC, check=False, **more)


class Tree:
    """A root directory with configuration files."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix='rig-config-')

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text):
        """Writes a file below the root, as bytes where it is given bytes."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return self.path(name)

    def link(self, name, target):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(target, self.path(name))

    def remove(self):
        shutil.rmtree(self.root)


def settings_of(text):
    """Key to (value, where it comes from) of what --print-config wrote."""
    found, origin = {}, None
    for line in text.splitlines():
        if line.startswith('# '):
            origin = line[2:]
        elif '=' in line:
            key, value = line.split('=', 1)
            found[key] = (value, origin)
    return found


class Manager:
    """A service manager's end of sd_notify(3): datagrams of lines, in order."""

    def __init__(self, folder):
        self.path = os.path.join(folder, 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def receive(self, pidfd=None):
        """The next message, as a dictionary; None where the process ended before it sent one."""
        deadline = time.monotonic() + WAIT_SEC
        ready, _, _ = select.select([self.socket] + ([pidfd] if pidfd is not None else []), [], [],
                                    deadline - time.monotonic())
        if self.socket not in ready:
            assert ready, 'rigd tells its manager nothing in time'
            return None
        return dict(line.split('=', 1) for line in self.socket.recv(65536).decode().splitlines())

    def await_key(self, key, pidfd=None):
        """The next message that has the key; skips others."""
        while True:
            message = self.receive(pidfd)
            assert message is not None, f'rigd ended and did not say {key}'
            if key in message:
                return message

    def close(self):
        self.socket.close()


class Rigd:
    """A rigd that listens in a folder of its own."""

    def __init__(self, *arguments, environment=None, stderr=None, pass_fds=(), own_socket=True, preexec=None):
        self.folder = tempfile.mkdtemp(prefix='rigd-')
        self.socket_path = os.path.join(self.folder, 'sock')
        self.log_path = os.path.join(self.folder, 'log')
        self.manager = Manager(self.folder)
        env = {k: v for k, v in os.environ.items() if k not in ('JOURNAL_STREAM', 'NOTIFY_SOCKET')}
        env.update({'NOTIFY_SOCKET': self.manager.path}, **(environment or {}))
        where = ['--socket', self.socket_path] if own_socket else []
        with open(self.log_path, 'wb') as log:
            self.process = subprocess.Popen([*PROGRAM_PREFIX, PROGRAM, *where, *arguments], env=env,
                                            stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log if stderr is None else stderr,
                                            pass_fds=pass_fds, preexec_fn=preexec)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.before_ready = []
        try:
            self.await_ready()
        except BaseException:
            self.forget()
            raise

    def await_ready(self):
        while True:
            self.ready = self.manager.receive(self.pidfd)
            assert self.ready is not None, 'rigd ended before it was ready: ' + self.log()
            if 'READY' in self.ready:
                return
            self.before_ready.append(self.ready)

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(WAIT_SEC)
        s.connect(self.socket_path)
        return s

    def reload(self):
        """SIGHUP, up to the READY=1 that follows. Returns what it said at both ends."""
        self.process.send_signal(signal.SIGHUP)
        return self.manager.await_key('RELOADING', self.pidfd), self.manager.await_key('READY', self.pidfd)

    def count_descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def await_descriptors(self, most):
        """Waits until it has no more: what it uses for a moment is closed right after."""
        deadline = time.monotonic() + WAIT_SEC
        while self.count_descriptors() > most:
            assert time.monotonic() < deadline, f'rigd has {self.count_descriptors()} descriptors, and had {most}'
            select.select([self.pidfd], [], [], 0.01)

    def stop(self, status=0):
        """SIGTERM and its end."""
        self.process.terminate()
        self.end(status)

    def end(self, status=0):
        got = self.process.wait(WAIT_SEC)
        log = self.log()
        self.forget()
        assert got == status, f'rigd ended with {got}: {log}'
        return log

    def forget(self):
        """Frees all of it, also where the test failed and it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_SEC)
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.manager.close()
            shutil.rmtree(self.folder)
        self.pidfd = -1
