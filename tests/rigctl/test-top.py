# SPDX-License-Identifier: ISC
"""rigctl on a terminal, which is tmux's: top, and how tables fit.

tmux is the judge: what its screen shows is what a person would see, and a line that were too long would be wrapped
there onto the next. The fake rigd's counts grow by a fixed step whenever they are asked for, so the order of clients
by each rate is known, whatever the time between two frames was.
"""

import re
import signal
import subprocess
import time
import unittest

import stand
import worlds

# By the letter in their command: a is the busiest, b copies most, c runs most, d holds most, e came last.
STEPS = {'a': (500000, 1, 0), 'b': (400000, 2, 1 << 30), 'c': (300000, 90, 1 << 20), 'd': (200000, 4, 1 << 10),
         'e': (100000, 3, 1 << 5)}


def busy_world():
    clients, steps = [], {}
    for i, (letter, (busy, runs, copied)) in enumerate(STEPS.items()):
        number = 10 + i
        clients.append(worlds.client(number, Command='work-' + letter, PID=900 - i,
                                     Unit=f'render-job-{letter}.service',
                                     LiveBytes=(9 << 30 if letter == 'd' else 1 << 20) + i, UID=0))
        steps[('client', number)] = {'BusyUSec': busy, 'RunsReached': runs, 'CopiedBytes': copied}
    steps[('adapter', 'memory')] = {'BusyUSec': 700000, 'RunsReached': 100, 'CopiedBytes': 1 << 30}
    steps['manager'] = {'RunsReached': 100, 'CopiedBytes': 1 << 30}
    return stand.World(worlds.manager(), [worlds.adapter('memory'), worlds.adapter('nv:0', State='lost', Reason='gone')],
                       clients, steps=steps)


def order(screen):
    """The letters of the clients, from top to bottom."""
    return ''.join(re.findall(r'(?m)^.*?\bwork-(\w)\b', screen))


class TopOnATerminal(unittest.TestCase):
    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.rigd = self.enterContext(stand.fake(self.address, busy_world()))
        self.terminal = None

    def open(self, **how):
        self.terminal = self.enterContext(stand.Terminal(TERM='xterm-256color', **how))
        return self.terminal

    def top(self, *args):
        self.terminal.run(f'{stand.RIGCTL} --address={self.address} top', *args)

    def await_order(self, letters):
        return self.terminal.await_screen(f'the order {letters}', lambda screen: order(screen) == letters)

    def test_it_shows_adapters_and_clients_that_grow_busy(self):
        self.open()
        self.top('-d0.2')
        screen = self.terminal.await_screen('rates', stand.has(r'work-a +[1-9]\d*\.\d '))
        self.assertRegex(screen, r'(?m)^rigd 0\.1\.0; clients 5, devices 3; runs/s \d+, copied/s [\d.]+[GT]; by time$')
        self.assertRegex(screen, r'(?m)^memory +ready +\d+\.\d ')
        self.assertRegex(screen, r'(?m)^nv:0 +lost +0\.0 ')
        self.assertRegex(screen, r'(?m)^NUMBER +PID USER +UNIT/COMMAND +COMMAND +TIME% RUNS/S COPIED/S BYTES RUNS$')

    def test_keys_change_the_order(self):
        self.open()
        self.top('-d0.2')
        self.await_order('abcde')
        for key, letters, name in (('r', 'cdeba', 'runs'), ('c', 'bcdea', 'copied'), ('b', 'decba', 'bytes'),
                                   ('p', 'edcba', 'pid'), ('n', 'abcde', 'number'), ('R', 'edcba', 'number, reversed'),
                                   ('R', 'abcde', 'number'), ('r', 'cdeba', 'runs'), ('t', 'abcde', 'time')):
            self.terminal.type(key)
            self.assertRegex(self.await_order(letters), rf'(?m); by {name}$')

    def test_q_gives_the_terminal_back(self):
        self.open()
        self.terminal.run('echo before')
        self.terminal.await_screen('the echo', stand.has('^before$'))
        before = self.terminal.await_prompt()
        self.top()
        self.terminal.await_screen('top', stand.has('^rigd 0.1.0'))
        self.assertNotIn('before', self.terminal.screen())
        self.terminal.type('q')
        self.terminal.await_screen('the old screen', stand.has('^before$'))
        after = self.terminal.await_prompt()
        self.assertTrue(after.startswith(before.rstrip('\n#$ ')))
        # It echoes again, and the cursor is there.
        self.terminal.run('echo "status $?"')
        self.assertIn('echo "status $?"', self.terminal.await_screen('its status', stand.has('^status 0$')))
        self.assertEqual(self.terminal.tmux('display-message', '-p', '#{cursor_flag} #{alternate_on}').strip(), '1 0')

    def ended_by(self, how, status):
        self.open()
        self.terminal.run('echo before')
        self.top()
        self.terminal.await_screen('top', stand.has('^rigd 0.1.0'))
        how()
        self.terminal.await_screen('the old screen', stand.has('^before$'))
        self.terminal.await_prompt()
        self.terminal.run('echo "status $?"')
        self.assertIn('echo "status $?"', self.terminal.await_screen('its status', stand.has(f'^status {status}$')))
        self.assertEqual(self.terminal.tmux('display-message', '-p', '#{cursor_flag} #{alternate_on}').strip(), '1 0')

    def find(self):
        found = subprocess.run(['pgrep', '-f', '-x', f'{stand.RIGCTL} --address={self.address} top'], check=True,
                               stdout=subprocess.PIPE)
        return int(found.stdout)

    def test_interrupted_it_gives_the_terminal_back(self):
        self.ended_by(lambda: self.terminal.key('C-c'), 128 + signal.SIGINT)

    def test_terminated_it_gives_the_terminal_back(self):
        self.ended_by(lambda: subprocess.run(['kill', '-TERM', str(self.find())], check=True), 128 + signal.SIGTERM)

    def test_without_rigd_it_gives_the_terminal_back_and_says_so(self):
        self.ended_by(lambda: stand.stop(self.rigd), 3)
        self.assertIn('rigctl: no rigd is on the bus', self.terminal.screen())

    def test_stopped_and_continued_it_draws_again(self):
        self.open()
        self.top()
        self.terminal.await_screen('top', stand.has('^rigd 0.1.0'))
        self.terminal.key('C-z')
        self.terminal.await_screen('the shell', stand.has('Stopped'))
        self.terminal.await_prompt()
        self.terminal.run('fg')
        self.terminal.await_screen('top again', stand.has('^rigd 0.1.0'))
        self.terminal.type('q')
        self.terminal.await_screen('the shell again', stand.has('Stopped'))

    def test_without_a_keyboard_it_says_what_to_do(self):
        self.open()
        self.top('</dev/null;', 'echo "status $?"')
        screen = self.terminal.await_screen('its status', stand.has('^status 1$'))
        self.assertIn('rigctl: top: the keyboard is no terminal; rigctl top --batch needs none', screen)

    def test_a_trace_ends_with_control_c(self):
        self.open()
        self.terminal.run('cd $(mktemp -d);', f'{stand.RIGCTL} --address={self.address} trace; ls')
        self.terminal.await_screen('the recording', stand.has(r'^recording; \^C ends it'))
        self.terminal.key('C-c')
        self.terminal.await_screen('the file', stand.has('^rig-trace.json$'))
        self.assertIn('0 runs, 0 records dropped: rig-trace.json; open it at ui.perfetto.dev', self.terminal.screen())
        self.terminal.await_prompt()
        self.terminal.run('rm -r "$PWD"; cd /; echo remo""ved')
        self.terminal.await_screen('its removal', stand.has('^removed$'))

    def test_it_ends_after_so_many_frames(self):
        self.open()
        self.top('-d0.1', '-n3;', 'echo "status $?"')
        self.terminal.await_screen('its status', stand.has('^status 0$'))

    def test_a_resized_terminal_is_filled_anew(self):
        self.open()
        self.top('-d30')
        self.terminal.await_screen('top', stand.has('work-e'))
        self.assertNotIn('OBJECTS', self.terminal.screen())
        # The next frame is half a minute away: it is the resize that draws.
        self.terminal.resize(100, 24)
        self.terminal.await_screen('more columns', stand.has(r'^NUMBER .* OBJECTS$'))
        self.terminal.resize(80, 9)
        screen = self.terminal.await_screen('fewer rows', lambda s: len(s.splitlines()) == 9 and 'work-a' in s)
        self.assertTrue(screen.startswith('rigd 0.1.0; clients 5'))
        self.terminal.resize(30, 24)
        screen = self.terminal.await_screen('fewer columns', stand.has('^NUMBER PID USER UNIT/COMMAND T$'))
        self.assertRegex(screen, '(?m)^    14 896 root render-job-…$')

    def test_colours_are_for_terminals_that_want_them(self):
        for variables, coloured in (({}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'dumb'}, False),
                                    ({'NO_COLOR': ''}, True)):
            with stand.Terminal() as self.terminal:
                self.terminal.run(*[f'{k}="{v}"' for k, v in variables.items()],
                                  f'{stand.RIGCTL} --address={self.address} top -d0.2')
                self.terminal.await_screen('top', stand.has('work-e'))
                escapes = self.terminal.screen(escapes=True)
                self.assertEqual('\x1b[31mnv:0' in escapes, coloured, variables)
                self.assertEqual('\x1b[1mADAPTER' in escapes, coloured, variables)


class WhatFits(unittest.TestCase):
    """Eighty columns: tmux tells of each of its lines whether it was wrapped (it joins those with -J)."""

    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.terminal = self.enterContext(stand.Terminal(80, 50))

        self.shown_times = 0

    def shown(self, *args):
        self.shown_times += 1
        end = f'end-{self.shown_times}'
        self.terminal.run('clear;', f'{stand.RIGCTL} --address={self.address}', *args, ';', f'echo; echo {end}')
        self.terminal.await_screen('its end', stand.has(f'^{end}$'))
        joined = self.terminal.tmux('capture-pane', '-p', '-J').splitlines()
        return [line.rstrip() for line in joined[:joined.index(end)]]

    def test_no_line_is_longer_than_the_terminal(self):
        for world in (worlds.usual(), worlds.odd(), busy_world()):
            with stand.fake(self.address, world):
                for args in (['list'], ['clients'], ['top', '-b', '-n1'], ['limits', '1']):
                    for line in self.shown(*args):
                        self.assertLessEqual(len(line), 80, (args, line))

    def test_clients_keep_what_they_are_asked_for_most(self):
        with stand.fake(self.address, worlds.usual()):
            lines = self.shown('clients')
            at = next(i for i, line in enumerate(lines) if line.startswith('NUMBER'))
            self.assertEqual(lines[at].split(), ['NUMBER', 'PID', 'USER', 'UNIT/COMMAND', 'OBJECTS', 'BYTES', 'RUNS',
                                                 'COPIED', 'DEVICE-TIME'])
            self.assertIn('render@3.service', lines[at + 2])
            self.terminal.resize(140, 50)
            self.assertIn(' CACHED ', ' '.join(self.shown('clients')))

    def test_long_names_are_cut_with_dots(self):
        with stand.fake(self.address, worlds.odd()):
            shown = '\n'.join(self.shown('list'))
            self.assertRegex(shown, r'(?m)^a-very-[a-z-]*… ')
            self.assertIn('größe:0', shown)

    def test_json_is_pretty_on_a_terminal(self):
        with stand.fake(self.address, worlds.usual()):
            self.assertIn('  {', self.shown('list', '--json'))
            self.assertIn('  {', self.shown('list', '-j', '|', 'cat', ';', stand.RIGCTL, f'--address={self.address}', 'list',
                                            '-j'))


class TopThroughAPipe(unittest.TestCase):
    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.enterContext(stand.fake(self.address, busy_world()))

    def test_frames_follow_one_another(self):
        _, out, err = stand.rigctl(self.address, 'top', '-d0.1', '-n3')
        self.assertEqual(err, '')
        frames = out.split('rigd 0.1.0; ')[1:]
        self.assertEqual([order(f) for f in frames], ['abcde'] * 3)
        self.assertNotIn('\x1b', out)

    def test_sort_is_as_on_the_command_line(self):
        for key, letters in (('time', 'abcde'), ('runs', 'cdeba'), ('copied', 'bcdea'), ('bytes', 'decba'), ('pid', 'edcba'),
                             ('number', 'abcde'), ('user', 'abcde')):
            _, out, _ = stand.rigctl(self.address, 'top', '-d0.1', '-n2', '--sort', key)
            self.assertEqual(order(out.split('rigd 0.1.0; ')[2]), letters, key)

    def test_rates_are_counts_by_time(self):
        """The ratios of the rates of one frame are those of the steps: the time between frames goes out of them."""
        import json
        started = time.monotonic()
        _, out, _ = stand.rigctl(self.address, 'top', '-d0.3', '-n2', '-j')
        took = time.monotonic() - started
        clients = json.loads(out.splitlines()[1])['Clients']
        for client in clients:
            busy, runs, copied = STEPS[client['Command'][-1]]
            seconds = runs / client['RunsPerSecond']
            self.assertAlmostEqual(client['BusyPercent'], busy / 1e6 / seconds * 100, places=3)
            self.assertAlmostEqual(client['CopiedBytesPerSecond'], copied / seconds, delta=copied / 1e6)
            self.assertTrue(0.3 <= seconds <= took, (seconds, took))

    def test_interrupted_it_ends(self):
        process = subprocess.Popen([stand.RIGCTL, '--address', self.address, 'top', '-d0.1'], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, env=stand.environment())
        self.assertTrue(process.stdout.readline().startswith(b'rigd 0.1.0'))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=stand.DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGINT)


if __name__ == '__main__':
    stand.need('tmux', 'pgrep')
    stand.main()
