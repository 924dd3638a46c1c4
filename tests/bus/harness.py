# SPDX-License-Identifier: ISC
"""What the bus tests stand on: a bus of their own, a rigd on it, programs, and busctl to ask with.

A test file defines functions whose names are promises and calls main(). Each gets a fresh `Stage`: a folder with a
bus, whose daemon is dbus-daemon, and whatever it starts, all ended afterwards. A rigd has to end with status 0.
"""

import json
import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import dbus

RIGD, PROGRAM, LOSER, XML = sys.argv[1:5]
WAIT_S = dbus.WAIT_S
MANAGER, PATH, LOG = 'org.rig.Rig1.Manager', '/org/rig/Rig1', 'org.freedesktop.LogControl1'
LOG_PATH = '/org/freedesktop/LogControl1'
# Two users that are not root; dbus-daemon takes only those that it can look up.
NOBODY, OTHER = sorted(p.pw_uid for p in pwd.getpwall() if p.pw_uid)[:2]

CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
</policy></busconfig>
'''


class Skipped(Exception):
    """This test cannot run here."""


def eventually(what, condition):
    """Polls until the condition holds, and returns what it gave."""
    deadline = time.monotonic() + WAIT_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f'{what}: not within {WAIT_S} s'
        time.sleep(0.01)


def refused(call, name, *texts):
    """The call is answered with this error, whose sentence has these texts."""
    try:
        given = call()
    except dbus.Failed as e:
        assert e.name == name, f'{e.name} instead of {name}: {e.text}'
        for text in texts:
            assert text in e.text, f'"{text}" is not in: {e.text}'
        return e.text
    raise AssertionError(f'it was not refused, and gave {given}')


class Program:
    """A program with a connection to rigd that does as it is told: tests/bus/program.c."""

    def __init__(self, address, transport='ring'):
        self.process = subprocess.Popen([PROGRAM, f'unix:{address},transport={transport}'], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == 'ready\n'

    def tell(self, *words):
        """Tells it something, and returns what it says."""
        self.process.stdin.write(' '.join(str(w) for w in words) + '\n')
        assert select.select([self.process.stdout], [], [], WAIT_S)[0], f'no answer to: {" ".join(map(str, words))}'
        return self.process.stdout.readline().strip()

    def do(self, *words):
        """Tells it something that works; returns the number that it gives."""
        answer = self.tell(*words)
        assert answer.startswith('ok '), f'{" ".join(map(str, words))}: {answer}'
        return int(answer.split()[1])

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(WAIT_S) == 0
        self.process.stdout.close()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)
        for f in self.process.stdin, self.process.stdout:
            try:
                f.close()
            except BrokenPipeError:
                pass


class Stage:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='rig-bus-')
        os.chmod(self.folder, 0o755)
        self.bus_path, self.socket = f'{self.folder}/bus', f'{self.folder}/rigd.sock'
        self.address = f'unix:path={self.bus_path}'
        self.daemon, self.rigds, self.programs, self.connections = None, [], [], []
        self.log_path = f'{self.folder}/log'
        with open(f'{self.folder}/bus.conf', 'w', encoding='utf-8') as f:
            f.write(CONFIG.format(self.bus_path))

    def start_bus(self):
        with open(f'{self.folder}/bus.log', 'ab') as log:
            self.daemon = subprocess.Popen(
                ['dbus-daemon', f'--config-file={self.folder}/bus.conf', '--nofork', '--print-address=1'],
                stdout=subprocess.PIPE, stderr=log)
        assert self.daemon.stdout.readline(), 'dbus-daemon does not start'

    def kill_bus(self):
        self.daemon.kill()
        self.daemon.wait(WAIT_S)
        self.daemon.stdout.close()
        self.daemon = None

    def start_rigd(self, *options, bus=None, program=RIGD, wait=True, socket=None, **popen):
        """Starts one, and waits until it has its name."""
        with open(self.log_path, 'ab') as log:
            rigd = subprocess.Popen(
                [program, '--socket', socket or self.socket, '--bus', bus or self.address, *options],
                stdin=subprocess.PIPE, stderr=log, **popen)
        self.rigds.append(rigd)
        if wait:
            eventually('rigd has its name', self.has_name)
        return rigd

    def has_name(self):
        c = dbus.Connection(self.bus_path)
        try:
            return c.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's',
                          ('org.rig.Rig1',))[0]
        finally:
            c.close()

    def stop_rigd(self, rigd):
        self.rigds.remove(rigd)
        rigd.terminate()
        status = rigd.wait(WAIT_S)
        rigd.stdin.close()
        assert status == 0, f'rigd ended with {status}'

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def logs(self, text):
        eventually(f'rigd logs "{text}"', lambda: text in self.log())

    def program(self, **kwargs):
        p = Program(self.socket, **kwargs)
        self.programs.append(p)
        return p

    def connect(self, uid=None):
        c = dbus.Connection(self.bus_path, uid)
        self.connections.append(c)
        return c

    def busctl(self, *args):
        """What busctl prints, as JSON; an error is dbus.Failed."""
        done = subprocess.run(['busctl', f'--address={self.address}', '--json=short', *args], capture_output=True,
                              text=True, timeout=WAIT_S, check=False)
        if done.returncode:
            raise dbus.Failed('busctl', done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def paths(self):
        """The objects that busctl finds by walking from the root."""
        done = subprocess.run(['busctl', f'--address={self.address}', 'tree', '--list', 'org.rig.Rig1'],
                              capture_output=True, text=True, timeout=WAIT_S, check=True)
        return set(done.stdout.split())

    def get(self, prop, path=PATH, interface=MANAGER):
        return self.busctl('get-property', 'org.rig.Rig1', path, interface, prop)['data']

    def list(self, method, *args):
        """Plain dictionaries of one of the List methods."""
        given = self.busctl('call', 'org.rig.Rig1', PATH, MANAGER, method, *map(str, args))
        return [{k: v['data'] for k, v in one.items()} for one in given['data'][0]]

    def clients(self):
        """All of them, however many an answer has."""
        every = []
        while page := self.list('ListClients', 't', every[-1]['Number'] if every else 0):
            assert len(page) <= 64
            every += page
        return every

    def client(self, program):
        """The client that a program is."""
        found, = [c for c in self.clients() if c['PID'] == program.pid]
        return found

    def client_of(self, program):
        """Its number."""
        return self.client(program)['Number']

    def end(self):
        for c in self.connections:
            c.close()
        for p in self.programs:
            p.kill()
        try:
            for rigd in list(self.rigds):
                self.stop_rigd(rigd)
        finally:
            for rigd in self.rigds:
                rigd.kill()
            if self.daemon:
                self.kill_bus()

    def remove(self):
        shutil.rmtree(self.folder)


class Polkit:
    """org.freedesktop.PolicyKit1 on the bus: answers each check with what it was made with; None never answers."""

    def __init__(self, stage, answer):
        self.connection = stage.connect()
        self.connection.own('org.freedesktop.PolicyKit1')
        self.answer, self.checks, self.cancelled = answer, [], []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            while True:
                m = self.connection.take(lambda m: m.kind == dbus.METHOD_CALL, 3600)
                if m.member == 'CancelCheckAuthorization':
                    self.cancelled.append(m.args[0])
                    continue
                self.checks.append(m.args)
                if self.answer == 'nonsense':
                    self.connection.reply(m, 's', ('yes',))
                elif self.answer == 'error':
                    self.connection.send(dbus.ERROR, {
                        dbus.ERROR_NAME: 'org.freedesktop.PolicyKit1.Error.Failed', dbus.REPLY_SERIAL: m.serial,
                        dbus.DESTINATION: m.sender}, 's', ('it is broken',))
                elif self.answer:
                    self.connection.reply(m, '(bba{ss})', ((*self.answer, {}),))
        except (OSError, dbus.Closed, ValueError):
            pass  # the test is over

    def leave(self):
        self.connection.socket.shutdown(socket.SHUT_RDWR)


ALLOW, DENY, CHALLENGE = (True, False), (False, False), (False, True)


def admin(stage):
    """A caller that may do everything: root, or else somebody on a bus whose polkit allows all."""
    if os.geteuid() != 0:
        Polkit(stage, ALLOW)
    return stage.connect()


def call(connection, member, signature='', args=(), **kwargs):
    """A method of the manager's."""
    return connection.call('org.rig.Rig1', PATH, MANAGER, member, signature, args, **kwargs)


def ask(connection, member, signature='', args=(), **kwargs):
    return connection.ask('org.rig.Rig1', PATH, MANAGER, member, signature, args, **kwargs)


def run(test):
    """Runs one; returns 'ok', 'skipped' or 'FAILED'."""
    stage, result = Stage(), 'ok'
    try:
        stage.start_bus()
        try:
            test(stage)
        finally:
            stage.end()
    except Skipped as e:
        print(f'{test.__name__}: skipped: {e}')
        result = 'skipped'
    except Exception as e:  # whatever it is, the next test runs
        import traceback
        traceback.print_exc(file=sys.stdout)
        print(f'{test.__name__}: FAILED: {e}')
        print('\n'.join('  log: ' + line for line in stage.log().splitlines()[-40:]) if os.path.exists(
            stage.log_path) else '  no log')
        result = 'FAILED'
    stage.remove()
    print(f'{test.__name__}: {result}', flush=True)
    return result


def main(names):
    for tool in 'dbus-daemon', 'busctl':
        if not shutil.which(tool):
            print(f'skipped: there is no {tool} here')
            return 77
    only = sys.argv[5:]
    tests = [t for n, t in names.items() if n.startswith('test_') and callable(t) and (not only or n in only)]
    results = [run(t) for t in tests]
    if 'FAILED' in results:
        return 1
    return 77 if results and all(r == 'skipped' for r in results) else 0
