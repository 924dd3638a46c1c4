# SPDX-License-Identifier: ISC
"""rigd's command line: every option, called wrongly, says in one sentence what is wrong with it.

    test-options.py RIGD
"""

import os
import re
import socket
import sys
import tempfile
import unittest

import rigd

HINT = '; rigd --help lists the options\n'


class Wrong(unittest.TestCase):
    def expect(self, arguments, sentence, hint=HINT):
        r = rigd.run(*arguments)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (1, '', 'rigd: ' + sentence + hint))

    def test_options_without_their_value(self):
        for option in ('--socket', '--private', '--bus', '--config', '--config-root', '--set', '--log-level'):
            self.expect([option], f'{option} needs a value')

    def test_options_with_a_value_they_do_not_take(self):
        for option in ('--check-config=yes', '--print-config=no', '--version=1', '--help=x'):
            self.expect([option], f'{option}: the option takes no value')

    def test_options_with_an_empty_value(self):
        self.expect(['--socket', ''], '--socket: the path is empty')
        self.expect(['--config', ''], '--config: the path is empty')
        self.expect(['--config-root', ''], '--config-root: the path is empty')
        self.expect(['--bus', ''], "--bus: write system, user, or a bus's address")
        self.expect(['--set', ''], '--set: "" is no setting: write Key=Value')
        self.expect(['--log-level', ''], '--log-level: there is no level ""')
        self.expect(['--private', ''], '--private:  is no open descriptor')

    def test_options_that_there_are_not(self):
        self.expect(['--nonsense'], 'there is no option --nonsense')
        self.expect(['--nonsense=5'], 'there is no option --nonsense=5')
        self.expect(['-v'], 'there is no option -v')
        self.expect(['here'], '"here" is no option')
        self.expect(['--check-config', 'here'], '"here" is no option')

    def test_options_that_exclude_each_other(self):
        self.expect(['--socket', '/tmp/x', '--private', '0'], '--socket and --private exclude each other')
        self.expect(['--config', '/dev/null', '--config-root', '/'], '--config and --config-root exclude each other')
        why = ' exclude each other: a private rigd reads no configuration files'
        self.expect(['--private', '0', '--config', '/dev/null'], '--private and --config' + why)
        self.expect(['--private', '0', '--config-root', '/'], '--private and --config-root' + why)

    def test_private(self):
        for fd in ('-1', '99', 'x', '1x', '99999999999999999999'):
            self.expect(['--private', fd], f'--private: {fd} is no open descriptor')
        self.expect(['--private', '0'], '--private: descriptor 0 is no connected SOCK_SEQPACKET socket', '\n')

    def test_settings(self):
        self.expect(['--set', 'ClientsMax'], '--set: "ClientsMax" is no setting: write Key=Value')
        self.expect(['--set', 'Nonsense=1'], '--set: there is no setting "Nonsense"')
        self.expect(['--set', 'ClientsMax=many'], '--set: ClientsMax: "many" is no number')
        self.expect(['--set', 'PollUSec=1h'],
                    '--set: PollUSec: "1h" is no number of microseconds, nor one with us, ms or s')
        self.expect(['--set', 'LogLevel=loud'],
                    '--set: LogLevel: "loud" is no level: write err, warning, notice, info or debug')
        self.expect(['--log-level', 'loud'], '--log-level: there is no level "loud"')

    def test_config(self):
        self.expect(['--socket', '/tmp/x', '--config', '/nowhere'],
                    '--config: /nowhere: it cannot be read: No such file or directory', '\n')
        r = rigd.run('--config', '/nowhere', '--check-config')
        self.assertEqual((r.returncode, r.stderr), (1, '/nowhere: it cannot be read: No such file or directory\n'))

    def test_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            self.expect(['--socket', folder + '/none/sock', '--config', '/dev/null'],
                        f'cannot listen on {folder}/none/sock: No such file or directory: there is no folder '
                        f'{folder}/none', '\n')
            self.expect(['--socket', folder, '--config', '/dev/null'],
                        f'cannot listen on {folder}: there is a file, and it is no socket', '\n')

    def test_bus(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + '/sock'
            self.expect(['--socket', path, '--config', '/dev/null', '--bus', 'nonsense'],
                        '--bus: there is no bus "nonsense": write system, user, or a bus\'s address', '\n')
            self.assertFalse(os.path.exists(path), 'its socket is left')

    def test_nothing_to_serve(self):
        r = rigd.run('--config', '/dev/null')
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stderr, 'rigd: nothing to serve: give --socket PATH, --private FD, or start it from a '
                         'systemd socket' + HINT)


class Right(unittest.TestCase):
    def test_help_names_every_option_and_setting(self):
        r = rigd.run('--help')
        self.assertEqual((r.returncode, r.stderr), (0, ''))
        for option in ('socket PATH', 'private FD', 'bus WHERE', 'config FILE', 'config-root DIR', 'check-config',
                       'print-config', 'set KEY=VALUE', 'log-level LEVEL', 'version', 'help'):
            self.assertRegex(r.stdout, r'(?m)^  --' + re.escape(option) + ' {2,}')
        for key in rigd.settings_of(rigd.run('--print-config', '--config', '/dev/null').stdout):
            self.assertRegex(r.stdout, rf'(?m)^  {key} +\S')
        self.assertLessEqual(max(map(len, r.stdout.splitlines())), 110)

    def test_version(self):
        r = rigd.run('--version')
        self.assertEqual((r.returncode, r.stderr), (0, ''))
        self.assertRegex(r.stdout, r'^rigd \d+\.\d+\.\d+\n$')

    def test_a_private_rigd_reads_no_files(self):
        """It would log what is wrong in them, and start with their limits."""
        with tempfile.TemporaryDirectory() as folder:
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with a, b:
                r = rigd.run('--private', str(b.fileno()), '--print-config', pass_fds=[b.fileno()], cwd=folder)
        self.assertEqual(r.stderr, '')
        settings = rigd.settings_of(r.stdout)
        self.assertEqual(settings.pop('LogLevel'), ('warning', 'from the command line'))
        self.assertEqual({origin for _, origin in settings.values()}, {'default'})


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
