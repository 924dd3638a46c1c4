# SPDX-License-Identifier: ISC
"""The completions of bash, zsh and fish, by those shells, with a fake rigd to ask for names.

bash and fish are asked for what they would offer; zsh is typed to on a terminal of tmux. A shell that is not installed
is not tested, and said so.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

import stand
import worlds

COMPLETIONS = os.environ.get('COMPLETIONS', '.')
VERBS = ['clients', 'firmware', 'limits', 'list', 'log-level', 'reload', 'show', 'stats', 'top', 'trace']
CLIENT_KEYS = ['bytes', 'command', 'copied', 'devices', 'number', 'objects', 'pid', 'runs', 'time', 'unit', 'user']
LIMITS = ['CacheMax=', 'MemoryMax=', 'ObjectsMax=', 'QueueMax=', 'RunsMax=']


def hostile_world():
    world = worlds.usual()
    world.adapters.append(worlds.adapter('$(touch pwned)'))
    return world


class Completions(unittest.TestCase):
    """What the shells have in common."""
    shell = None

    def setUp(self):
        if not shutil.which(self.shell):
            self.skipTest(f'{self.shell} is not installed')
        self.address = self.enterContext(stand.bus())
        self.enterContext(stand.fake(self.address, hostile_world()))
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        os.symlink(os.path.abspath(stand.RIGCTL), os.path.join(self.folder, 'rigctl'))
        self.environment = stand.environment(
            HOME=self.folder, PATH=self.folder + ':' + os.environ['PATH'], DBUS_SYSTEM_BUS_ADDRESS=self.address,
            DBUS_SESSION_BUS_ADDRESS='unix:path=/nonexistent')

    def ask(self, *command):
        done = subprocess.run(command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=stand.DEADLINE, check=False)
        self.assertEqual(done.stderr.decode(), '')
        self.assertNotIn('pwned', os.listdir(self.folder))
        return done.stdout.decode().splitlines()


class Bash(Completions):
    shell = 'bash'
    # What readline sets before it calls the function: the line, and its words cut where it breaks them.
    ASK = r'''
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
cut=$(sed -E 's/([=:])/ \1 /g' <<<"$2")
read -r -a COMP_WORDS <<<"$cut"
case $2 in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_rigctl
printf '%s\n' "${COMPREPLY[@]}"
'''

    def offers(self, line, expected):
        offered = self.ask('bash', '--norc', '-c', self.ASK, 'bash', os.path.join(COMPLETIONS, 'rigctl'), line)
        self.assertEqual(sorted(x for x in offered if x), sorted(expected), line)

    def test_it_is_bound_to_rigctl(self):
        said = self.ask('bash', '--norc', '-c', 'source "$1"; complete -p rigctl', 'bash', os.path.join(COMPLETIONS, 'rigctl'))
        self.assertEqual(said, ['complete -F _rigctl rigctl'])

    def test_verbs(self):
        self.offers('rigctl ', VERBS)
        self.offers('rigctl --no-legend ', VERBS)
        self.offers('rigctl s', ['show', 'stats'])
        self.offers('rigctl x', [])
        self.offers(f'rigctl --address={self.address} re', ['reload'])

    def test_options_are_those_of_the_verb(self):
        self.offers('rigctl trace --', ['--system', '--user', '--address=', '--no-ask-password', '--help', '--version',
                                        '--client=', '--time=', '--output=', '--force'])
        self.offers('rigctl clients --so', ['--sort='])
        self.offers('rigctl list --so', [])
        self.offers('rigctl top --b', ['--batch'])
        self.offers('rigctl list --json=', ['pretty', 'short'])

    def test_names_are_asked_of_rigd(self):
        # The adapter whose name a shell would run is not offered.
        self.offers('rigctl show ', ['adapter', 'client', 'memory', 'disk', '1', '3'])
        self.offers('rigctl show m', ['memory'])
        self.offers('rigctl show client ', ['1', '3'])
        self.offers('rigctl show adapter d', ['disk'])
        self.offers('rigctl limits ', ['1', '3'])
        self.offers('rigctl trace --client=', ['1', '3'])
        self.offers('rigctl trace --client ', ['1', '3'])

    def test_names_are_asked_of_the_bus_that_is_named(self):
        self.offers('rigctl --user limits ', [])
        self.offers(f'rigctl --user --address={self.address} limits ', ['1', '3'])

    def test_limits_and_levels_and_keys(self):
        self.offers('rigctl limits 3 ', LIMITS)
        self.offers('rigctl limits 3 RunsMax=1 C', ['CacheMax='])
        self.offers('rigctl log-level ', ['err', 'warning', 'notice', 'info', 'debug'])
        self.offers('rigctl clients --sort=', CLIENT_KEYS)
        self.offers('rigctl clients --sort=c', ['command', 'copied'])
        self.offers('rigctl top --sort ', ['time', 'runs', 'copied', 'bytes', 'pid', 'user', 'number'])

    def test_firmware(self):
        self.offers('rigctl firmware ', ['list', 'check', 'fetch'])
        self.offers('rigctl firmware fetch ', ['amd', 'nvidia'])
        self.offers('rigctl firmware --from=x check n', ['nvidia'])
        self.offers('rigctl firmware --i', ['--images='])

    def test_files_for_output(self):
        for name in ('trace-1.json', 'trace-2.json'):
            with open(os.path.join(self.folder, name), 'w', encoding='utf-8'):
                pass
        self.offers('rigctl trace -o tr', ['trace-1.json', 'trace-2.json'])
        self.offers('rigctl trace --output=trace-2', ['trace-2.json'])

    def test_without_rigd_it_is_quiet(self):
        self.environment['DBUS_SYSTEM_BUS_ADDRESS'] = 'unix:path=/nonexistent'
        self.offers('rigctl show ', ['adapter', 'client'])


class Fish(Completions):
    shell = 'fish'

    def offers(self, line, expected, all_of_them=True):
        offered = self.ask('fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]',
                           os.path.join(COMPLETIONS, 'rigctl.fish'), line)
        offered = [x.split('\t')[0].rstrip('=') for x in offered]
        # fish 4 offers besides what has the letters somewhere: what begins with them comes from the completions.
        offered = [x for x in offered if x.startswith(line.rpartition(' ')[2].rstrip('='))]
        expected = [x.rstrip('=') for x in expected]  # fish 4 writes the =
        if all_of_them:
            self.assertEqual(sorted(offered), sorted(expected), line)
        else:
            self.assertLessEqual(set(expected), set(offered), line)

    def test_verbs(self):
        self.offers('rigctl ', VERBS)
        self.offers('rigctl --no-legend sh', ['show'])

    def test_options_are_those_of_the_verb(self):
        self.offers('rigctl trace --', ['--client', '--time', '--output', '--force', '--user'], all_of_them=False)
        self.offers('rigctl trace --so', [])
        self.offers('rigctl clients --so', ['--sort='])
        self.offers('rigctl list --json=', ['--json=pretty', '--json=short', '--json=off'])

    def test_names_are_asked_of_rigd(self):
        self.offers('rigctl show ', ['adapter', 'client', 'memory', 'disk', '1', '3'], all_of_them=False)
        self.offers('rigctl show client ', ['1', '3'])
        self.offers('rigctl limits ', ['1', '3'])
        self.offers('rigctl --user limits ', [])
        self.offers('rigctl limits 3 ', LIMITS)
        self.offers('rigctl log-level d', ['debug'])
        self.offers('rigctl trace --client=', ['--client=1', '--client=3'])

    def test_firmware(self):
        self.offers('rigctl firmware ', ['list', 'check', 'fetch'])
        self.offers('rigctl firmware fetch ', ['amd', 'nvidia'])
        self.offers('rigctl firmware --from', ['--from='])

    def test_keys_are_those_of_the_verb(self):
        self.offers('rigctl clients --sort=c', ['--sort=command', '--sort=copied'])
        self.offers('rigctl top --sort=c', ['--sort=copied'])


class Zsh(Completions):
    shell = 'zsh'

    def setUp(self):
        super().setUp()
        if not shutil.which('tmux'):
            self.skipTest('zsh is typed to in tmux, which is not installed')
        functions = os.path.join(self.folder, 'functions')
        os.mkdir(functions)
        shutil.copy(os.path.join(COMPLETIONS, '_rigctl'), functions)
        self.terminal = self.enterContext(stand.Terminal(100, 40, **self.environment))
        self.terminal.run(f'cd {self.folder}; PS1="%% " exec zsh -f -i')
        self.terminal.run(f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D; "
                          "zstyle ':completion:*' list-prompt ''; LISTMAX=0; echo rea''dy")
        self.terminal.await_screen('zsh', stand.has('^ready$'))

    def completes(self, typed, *shown):
        """Types a line and a tab, waits for what the tab does, and takes the line back."""
        self.terminal.type(typed)
        self.terminal.key('Tab')
        for word in shown:
            self.terminal.await_screen(f'{word} for {typed}', stand.has(word))
        screen = self.terminal.screen()
        self.terminal.key('C-c')
        self.terminal.await_screen('a new line', stand.has(r'^%\s*\Z'))
        self.terminal.run('clear; echo cle""ared')
        self.terminal.await_screen('a clear screen', lambda s: 'cleared' in s and 'Tab' not in s and typed not in s)
        self.assertNotIn('pwned', os.listdir(self.folder))
        return screen

    def test_a_single_candidate_is_typed(self):
        self.completes('rigctl rel', '^% rigctl reload')
        self.completes('rigctl show mem', '^% rigctl show memory')
        self.completes('rigctl log-level d', '^% rigctl log-level debug')
        self.completes('rigctl clients --sort=obj', '^% rigctl clients --sort=objects')
        self.completes('rigctl firmware fetch nv', '^% rigctl firmware fetch nvidia')
        self.completes('rigctl limits 3 Run', '^% rigctl limits 3 RunsMax=')

    def test_candidates_are_listed(self):
        self.completes('rigctl ', *[rf'^{verb} +-- ' for verb in VERBS])
        self.completes('rigctl limits ', r'^1 +3$')
        screen = self.completes('rigctl trace --', '^--client +-- of one client alone', '^--output +-- where to')
        self.assertNotIn('--sort', screen)

    def test_the_bus_that_is_named_is_asked(self):
        self.completes('rigctl --user show cli', '^% rigctl --user show client')
        self.completes(f'rigctl --address={self.address} show cli', 'show client')


if __name__ == '__main__':
    stand.main()
