# SPDX-License-Identifier: ISC
"""What the tests of rigctl stand on: a bus of their own, a rigd on it, rigctl run against both.

The bus is a dbus-daemon without services. On it is tests/rigctl/fake-rigd.c with the records a test gives it, or
the real rigd. Nothing here waits without a deadline, and all that was started ends with its `with`.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

DEADLINE = 60  # seconds for what takes milliseconds, on a machine that does other things
RIGCTL = os.environ.get('RIGCTL', 'rigctl')
FAKE = os.environ.get('FAKE_RIGD', 'fake-rigd')

# The types that the interface (daemon/bus/org.rig.Rig1.xml) gives numbers which are no t.
UNSIGNED = {
    'manager': {'Clients', 'Devices', 'Adapters', 'Traces'},
    'adapter': {'Devices'},
    'client': {'PID', 'UID', 'Devices'},
    'device': {'Number', 'Id', 'Queues'},
}

BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={path}</listen>
  <servicedir>{services}</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
    {policy}
  </policy>
</busconfig>
"""


def skip(why):
    """Ends the whole test where it cannot run."""
    print(why)
    sys.exit(77)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f'skipped: {program} is not installed')


def await_(what, condition):
    """Asks until it is true. Return: what was true."""
    until = time.monotonic() + DEADLINE
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f'waited {DEADLINE} seconds for {what}')
        time.sleep(0.01)


def environment(**more):
    """Of programs under test: no bus but the test's, times in UTC, texts in UTF-8."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(('DBUS_', 'LC_')) and k not in ('NO_COLOR', 'LANG', 'XDG_RUNTIME_DIR', 'COLUMNS')}
    return {**clean, 'TZ': 'UTC', 'LC_ALL': 'C.UTF-8', **more}


def stop(process):
    """Ends what was started here."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@contextlib.contextmanager
def bus(policy='', service=''):
    """A bus. Yields its address. `service` is the text of a file that lets it start org.rig.Rig1."""
    with tempfile.TemporaryDirectory() as folder:
        path, services = os.path.join(folder, 'bus'), os.path.join(folder, 'services')
        os.mkdir(services)
        if service:
            with open(os.path.join(services, 'org.rig.Rig1.service'), 'w', encoding='utf-8') as f:
                f.write(service)
        with open(os.path.join(folder, 'bus.conf'), 'w', encoding='utf-8') as f:
            f.write(BUS_CONFIGURATION.format(path=path, services=services, policy=policy))
        daemon = subprocess.Popen(['dbus-daemon', '--nofork', '--nopidfile', '--print-address', '--config-file',
                                   os.path.join(folder, 'bus.conf')], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, env=environment())
        try:
            if not daemon.stdout.readline():
                raise AssertionError('dbus-daemon did not start')
            address = Address('unix:path=' + path)
            address.daemon = daemon
            yield address
        finally:
            stop(daemon)
            daemon.stdout.close()


def escape(text):
    """Text as a line of fake-rigd's file has it."""
    return ''.join(c if ' ' < c < '\x7f' and c != '\\' else ''.join(f'\\x{b:02x}' for b in c.encode()) for c in text)


def lines_of(kind, record, steps=None):
    yield kind
    for key, value in record.items():
        if key == '*':
            yield f'* {value}'
        elif key == 'Settings':
            yield from (f'set {k} {escape(v)}' for k, v in value.items())
        elif isinstance(value, str):
            yield f's {key} {escape(value)}'
        elif isinstance(value, bool):
            yield f'b {key} {int(value)}'
        else:
            yield f'{"u" if key in UNSIGNED[kind] else "t"} {key} {value}'
        if steps and key in steps:
            yield f'step {key} {steps[key]}'


class Address(str):
    """A bus's address, and the process that is the bus."""
    daemon = None


class World:
    """What a fake rigd has."""

    def __init__(self, manager=None, adapters=(), clients=(), devices=(), rules=(), steps=None):
        self.manager, self.adapters = manager, list(adapters)
        self.clients, self.devices, self.rules = list(clients), list(devices), list(rules)
        self.steps = steps or {}  # by (kind, name or number): what grows

    def text(self):
        lines = list(self.rules)
        if self.manager is not None:
            lines += lines_of('manager', self.manager, self.steps.get('manager'))
        for kind, records, key in (('adapter', self.adapters, 'Name'), ('client', self.clients, 'Number'),
                                   ('device', self.devices, 'Number')):
            for record in records:
                lines += lines_of(kind, record, self.steps.get((kind, record[key])))
        return '\n'.join(lines) + '\n'


@contextlib.contextmanager
def fake(address, world):
    """A rigd that has what `world` says, on a bus."""
    with tempfile.NamedTemporaryFile('w', suffix='.rigd') as f:
        f.write(world.text())
        f.flush()
        process = subprocess.Popen([FAKE, address, f.name], stdout=subprocess.PIPE, env=environment())
        try:
            said = process.stdout.readline()
            if said != b'ready\n':
                raise AssertionError(f'the fake rigd did not start: {said}')
            yield process
        finally:
            stop(process)
            process.stdout.close()


def complain_of_sanitizers(text):
    if 'Sanitizer' in text or 'runtime error:' in text:
        raise AssertionError(text)


def rigctl(address, *args, env=None, cwd=None, stdin=subprocess.DEVNULL):
    """Runs rigctl to its end, its output through pipes. Return: status, stdout, stderr."""
    where = ['--address=' + address] if address else []
    ended = subprocess.run([RIGCTL, *where, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=env or environment(), cwd=cwd, timeout=2 * DEADLINE, check=False)
    out, err = ended.stdout.decode(), ended.stderr.decode()
    complain_of_sanitizers(err)
    return ended.returncode, out, err


def interrupt(process, which=signal.SIGINT):
    process.send_signal(which)


class Terminal:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, columns=80, rows=24, **variables):
        self.folder = tempfile.mkdtemp()
        self.socket = os.path.join(self.folder, 'tmux')
        self.size = (columns, rows)
        self.environment = environment(**variables)
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(columns), '-y', str(rows), 'exec sh')
        try:
            self.await_screen('the shell', has('^[#$]'))  # its prompt: who is root has the other
        except AssertionError:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux('kill-server')
        shutil.rmtree(self.folder)

    def tmux(self, *args):
        done = subprocess.run(['tmux', '-S', self.socket, *args], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=DEADLINE, check=True)
        return done.stdout.decode()

    def screen(self, escapes=False):
        """What is on it, its lines without the blanks at their ends."""
        text = self.tmux('capture-pane', '-p', *(['-e'] if escapes else []))
        return '\n'.join(line.rstrip() for line in text.splitlines())

    def type(self, text):
        self.tmux('send-keys', '-l', text)

    def key(self, name):
        self.tmux('send-keys', name)

    def run(self, *args):
        """Types a command line, once the shell reads one."""
        self.await_prompt()
        self.type(' '.join(args))
        self.key('Enter')

    def resize(self, columns, rows):
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))

    def await_prompt(self):
        """Waits until the shell reads again, so that what is typed is its own to echo."""
        return self.await_screen('the prompt', has(r'^[#$%]\s*\Z'))

    def await_screen(self, what, condition):
        shown = ['']

        def look():
            shown[0] = self.screen()
            return condition(shown[0])
        try:
            await_(what, look)
        except AssertionError as e:
            raise AssertionError(f'{e}; the screen:\n{shown[0]}') from None
        return shown[0]


def has(pattern):
    return lambda text: re.search(pattern, text, re.M)


def main():
    need('dbus-daemon')
    unittest.main(verbosity=2)
