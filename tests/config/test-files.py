# SPDX-License-Identifier: ISC
"""Where rigd's configuration comes from, held to systemd.syntax(7) and systemd-system.conf(5) by fixture trees.

    test-files.py RIGD
"""

import os
import sys
import unittest

import rigd

DEFAULTS = {'PollUSec': '50', 'LogLevel': 'info', 'ClientsMax': '1024', 'ClientObjectsMax': '16384',
            'ClientMemoryMax': 'infinity', 'ClientRunsMax': '16384', 'ClientCacheMax': '256M', 'ClientQueueMax': '1M',
            'ClientTraceMax': '16M', 'AdapterMemoryMax': 'infinity'}


class Case(unittest.TestCase):
    def setUp(self):
        self.tree = rigd.Tree()
        self.addCleanup(self.tree.remove)

    def read(self, *more):
        """What --print-config says of the tree, and the complaints with the root taken off."""
        r = rigd.run('--config-root', self.tree.root, '--print-config', *more)
        self.assertEqual(r.returncode, 0, r.stderr)
        return rigd.settings_of(r.stdout), r.stderr.replace(self.tree.root, '').splitlines()

    def expect(self, *more, **values):
        """The settings of the tree are these, and nothing is wrong with it."""
        settings, complaints = self.read(*more)
        self.assertEqual(complaints, [])
        for key, value in values.items():
            self.assertEqual(settings[key][0], value, key)
        return settings

    def expect_complaints(self, *expected):
        _, complaints = self.read()
        self.assertEqual(complaints, list(expected))
        r = rigd.run('--config-root', self.tree.root, '--check-config')
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stderr.replace(self.tree.root, '').splitlines(), list(expected))
        self.assertEqual(r.stdout, '')


class Precedence(Case):
    def test_without_files_everything_is_the_default(self):
        settings = self.expect(**DEFAULTS)
        self.assertEqual(set(settings), set(DEFAULTS))
        self.assertEqual({origin for _, origin in settings.values()}, {'default'})
        r = rigd.run('--config-root', self.tree.root, '--check-config')
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, '', ''))

    def test_the_first_main_file_that_is_found_counts_alone(self):
        for number, folder in reversed(list(enumerate(rigd.FOLDERS, 1))):
            self.tree.write(f'{folder}/rigd.conf', f'[Daemon]\nClientsMax={number}\nClientRunsMax={number}0\n')
            self.expect(ClientsMax=str(number), ClientRunsMax=f'{number}0')
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=9\n')
        settings = self.expect(ClientsMax='9', ClientRunsMax=DEFAULTS['ClientRunsMax'])
        self.assertEqual(settings['ClientsMax'][1], f'from {self.tree.root}/etc/rig/rigd.conf:2')

    def test_an_empty_main_file_hides_those_below(self):
        self.tree.write('usr/lib/rig/rigd.conf', '[Daemon]\nClientsMax=9\n')
        self.tree.link('etc/rig/rigd.conf', '/dev/null')
        self.expect(ClientsMax=DEFAULTS['ClientsMax'])
        self.tree.write('run/rig/rigd.conf', '')
        os.unlink(self.tree.path('etc/rig/rigd.conf'))
        self.expect(ClientsMax=DEFAULTS['ClientsMax'])

    def test_drop_ins_of_any_folder_count_before_the_main_file(self):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=1\nClientRunsMax=1\n')
        self.tree.write('usr/lib/rig/rigd.conf.d/50-a.conf', '[Daemon]\nClientsMax=2\n')
        self.expect(ClientsMax='2', ClientRunsMax='1')

    def test_drop_ins_are_sorted_by_name_whatever_their_folder(self):
        self.tree.write('etc/rig/rigd.conf.d/10-a.conf', '[Daemon]\nClientsMax=10\n')
        self.tree.write('usr/lib/rig/rigd.conf.d/20-b.conf', '[Daemon]\nClientsMax=20\n')
        settings = self.expect(ClientsMax='20')
        self.assertEqual(settings['ClientsMax'][1], f'from {self.tree.root}/usr/lib/rig/rigd.conf.d/20-b.conf:2')
        self.tree.write('run/rig/rigd.conf.d/9-c.conf', '[Daemon]\nClientsMax=9\n')  # by letters, not by numbers
        self.expect(ClientsMax='9')

    def test_of_namesakes_the_folder_named_first_wins(self):
        for number, folder in reversed(list(enumerate(rigd.FOLDERS, 1))):
            self.tree.write(f'{folder}/rigd.conf.d/50-a.conf', f'[Daemon]\nClientsMax={number}\n')
            self.expect(ClientsMax=str(number))

    def test_an_empty_namesake_and_a_link_to_dev_null_mask(self):
        self.tree.write('usr/lib/rig/rigd.conf.d/50-a.conf', '[Daemon]\nClientsMax=2\nNonsense=1\n')
        self.tree.write('usr/local/lib/rig/rigd.conf.d/60-b.conf', '[Daemon]\nClientRunsMax=2\n')
        self.tree.link('etc/rig/rigd.conf.d/50-a.conf', '/dev/null')
        self.tree.write('run/rig/rigd.conf.d/60-b.conf', '')
        self.expect(ClientsMax=DEFAULTS['ClientsMax'], ClientRunsMax=DEFAULTS['ClientRunsMax'])

    def test_only_names_that_end_in_conf_are_drop_ins(self):
        for name in ('50-a.conf~', '50-a.conf.bak', '50-a', '.conf', '.hidden.conf', 'conf'):
            self.tree.write(f'etc/rig/rigd.conf.d/{name}', '[Daemon]\nClientsMax=2\n')
        os.makedirs(self.tree.path('etc/rig/rigd.conf.d/folder.conf'))
        self.expect(ClientsMax=DEFAULTS['ClientsMax'])

    def test_the_command_line_counts_before_every_file(self):
        self.tree.write('etc/rig/rigd.conf.d/99-z.conf', '[Daemon]\nClientsMax=2\nLogLevel=err\n')
        settings = self.expect('--set', 'ClientsMax=7', '--set', 'ClientsMax=8', '--log-level', 'debug',
                               ClientsMax='8', LogLevel='debug')
        self.assertEqual(settings['ClientsMax'][1], 'from the command line')
        self.assertEqual(settings['LogLevel'][1], 'from the command line')

    def test_config_reads_that_file_alone(self):
        self.tree.write('etc/rig/rigd.conf.d/99-z.conf', '[Daemon]\nClientsMax=2\n')
        path = self.tree.write('other', '[Daemon]\nClientRunsMax=5\n')
        r = rigd.run('--config', path, '--print-config')
        self.assertEqual(r.returncode, 0)
        settings = rigd.settings_of(r.stdout)
        self.assertEqual(settings['ClientRunsMax'], ('5', f'from {path}:2'))
        self.assertEqual(settings['ClientsMax'], ('1024', 'default'))
        self.assertEqual(rigd.run('--config', '/dev/null', '--check-config').returncode, 0)


class Syntax(Case):
    def main(self, text):
        self.tree.write('etc/rig/rigd.conf', text)

    def test_blanks_and_comments(self):
        self.main('\n  # a comment\n;another\n\t[Daemon]  \n \t ClientsMax \t=\t 7 \t\n#ClientRunsMax=1\n')
        settings = self.expect(ClientsMax='7', ClientRunsMax=DEFAULTS['ClientRunsMax'])
        self.assertTrue(settings['ClientsMax'][1].endswith('rigd.conf:5'))

    def test_a_backslash_continues_and_comments_between_are_skipped(self):
        self.main('[Daemon]\nClientsMax = \\\n# not this\n  ; nor this\n  7\nClientRunsMax=8\n')
        settings = self.expect(ClientsMax='7', ClientRunsMax='8')
        self.assertTrue(settings['ClientsMax'][1].endswith('rigd.conf:2'))
        self.assertTrue(settings['ClientRunsMax'][1].endswith('rigd.conf:6'))

    def test_a_backslash_becomes_a_blank(self):
        self.main('[Daemon]\nClientsMax=1\\\n2\n')
        self.expect_complaints('/etc/rig/rigd.conf:2: ClientsMax: "1 2" is no number')

    def test_two_backslashes_continue_nothing(self):
        self.main('[Daemon]\nClientsMax=1\\\\\nClientRunsMax=5\n')
        self.expect_complaints('/etc/rig/rigd.conf:2: ClientsMax: "1\\\\" is no number')
        self.assertEqual(self.read()[0]['ClientRunsMax'][0], '5')

    def test_a_blank_line_ends_what_is_continued(self):
        self.main('[Daemon]\nClientsMax=5\\\n\nClientRunsMax=6\n')
        self.expect(ClientsMax='5', ClientRunsMax='6')

    def test_the_end_of_the_file_ends_what_is_continued(self):
        self.main('[Daemon]\nClientsMax=5\\')
        self.expect(ClientsMax='5')
        self.main('[Daemon]\nClientsMax=6\\\n')
        self.expect(ClientsMax='6')

    def test_an_empty_value_is_the_default(self):
        self.main('[Daemon]\nClientsMax=5\nClientMemoryMax=3G\n')
        path = self.tree.write('etc/rig/rigd.conf.d/a.conf', '[Daemon]\nClientsMax=\nClientMemoryMax = \n')
        settings = self.expect(ClientsMax=DEFAULTS['ClientsMax'], ClientMemoryMax='infinity')
        self.assertEqual(settings['ClientsMax'][1], f'from {path}:2')

    def test_the_last_assignment_counts(self):
        self.main('[Daemon]\nClientsMax=5\nClientsMax=6\n[Daemon]\nClientsMax=7\n')
        self.expect(ClientsMax='7')

    def test_lines_that_end_as_elsewhere_and_a_mark_of_utf_8(self):
        self.main(b'\xef\xbb\xbf[Daemon]\r\nClientsMax=5\r\nClientRunsMax=\\\r\n6')
        self.expect(ClientsMax='5', ClientRunsMax='6')

    def test_names_that_start_with_x_are_others(self):
        self.main('[X-Mine]\nAnything\nClientsMax=many\n[Daemon]\nX-Note=hello\nClientsMax=5\n')
        self.expect(ClientsMax='5')

    def test_values(self):
        for text, value in (('ClientMemoryMax=1024', '1K'), ('ClientMemoryMax=1536', '1536'),
                            ('ClientMemoryMax=1M', '1M'), ('ClientMemoryMax=3072K', '3M'),
                            ('ClientMemoryMax=2048G', '2T'), ('ClientMemoryMax=infinity', 'infinity'),
                            ('ClientCacheMax=0', '0'), ('PollUSec=7', '7'), ('PollUSec=7us', '7'),
                            ('PollUSec=7 ms', '7000'), ('PollUSec=2s', '2000000'), ('PollUSec=0', '0'),
                            ('PollUSec=infinity', 'infinity'), ('LogLevel=warning', 'warning'),
                            ('ClientRunsMax=infinity', 'infinity')):
            self.main(f'[Daemon]\n{text}\n')
            self.expect(**{text.split('=')[0]: value})


class Complaints(Case):
    def test_each_names_its_file_and_line(self):
        self.tree.write('etc/rig/rigd.conf', '''ClientsMax=1
[Daemon]
Nonsense=1
clientsmax=1
ClientsMax=many
ClientsMax=0
ClientQueueMax=1K
ClientMemoryMax=1X
ClientMemoryMax=99999999999T
PollUSec=5min
LogLevel=loud
no setting
=7
ClientRunsMax=3
[Deamon]
ClientRunsMax=4
[Daemon
ClientRunsMax=5
''')
        self.tree.write('usr/lib/rig/rigd.conf.d/x.conf', '\n\n[Daemon]\nClientObjectsMax=\\\n-5\n')
        main = '/etc/rig/rigd.conf:'
        self.expect_complaints(
            main + '1: ClientsMax is in no section: a line [Daemon] comes before it',
            main + '3: there is no setting "Nonsense"',
            main + '4: there is no setting "clientsmax"',
            main + '5: ClientsMax: "many" is no number',
            main + '6: ClientsMax: 0 is less than 1',
            main + '7: ClientQueueMax: 1K is less than 65536',
            main + '8: ClientMemoryMax: "1X" is no size: write a number of bytes, with K, M, G or T',
            main + '9: ClientMemoryMax: "99999999999T" is too large',
            main + '10: PollUSec: "5min" is no number of microseconds, nor one with us, ms or s',
            main + '11: LogLevel: "loud" is no level: write err, warning, notice, info or debug',
            main + '12: "no setting" is no setting: write Key=Value',
            main + '13: there is no name before the =',
            main + '15: there is no section [Deamon]: what follows is not read',
            main + '17: "[Daemon" starts a section and has no ] at its end: what follows is not read',
            '/usr/lib/rig/rigd.conf.d/x.conf:4: ClientObjectsMax: "-5" is no number')
        settings, _ = self.read()
        self.assertEqual({k: v for k, (v, _) in settings.items()}, {**DEFAULTS, 'ClientRunsMax': '3'})

    def test_what_is_no_text(self):
        self.tree.write('etc/rig/rigd.conf', b'[Daemon]\nClientsMax=5\0\nClientRunsMax=6\nA\x01\x1b[31m=1\n')
        self.expect_complaints('/etc/rig/rigd.conf:2: it has a NUL byte, and is no text',
                               '/etc/rig/rigd.conf:4: there is no setting "A??[31m"')
        self.assertEqual(self.read()[0]['ClientRunsMax'][0], '6')

    def test_a_long_value_is_cut(self):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=' + 'x' * 5000 + '\n' + 'y' * 5000 + '=1\n')
        self.expect_complaints('/etc/rig/rigd.conf:2: ClientsMax: "' + 'x' * 64 + '" is no number',
                               '/etc/rig/rigd.conf:3: there is no setting "' + 'y' * 64 + '"')

    def test_files_that_cannot_be_read(self):
        self.tree.link('etc/rig/rigd.conf', 'rigd.conf')  # a loop
        self.tree.link('etc/rig/rigd.conf.d/a.conf', '/nowhere')
        os.mkfifo(self.tree.path('etc/rig/rigd.conf.d/b.conf'))
        self.tree.link('etc/rig/rigd.conf.d/c.conf', '.')
        self.tree.write('etc/rig/rigd.conf.d/d.conf', b'#' * (1 << 20) + b'#')
        self.tree.write('etc/rig/rigd.conf.d/e.conf', '[Daemon]\nClientsMax=5\n')
        where = '/etc/rig/rigd.conf'
        self.expect_complaints(
            where + ': it cannot be read: Too many levels of symbolic links',
            where + '.d/a.conf: it cannot be read: No such file or directory',
            where + '.d/b.conf: it cannot be read: it is no regular file',
            where + '.d/c.conf: it cannot be read: Is a directory',
            where + '.d/d.conf: it cannot be read: it has more than a megabyte')
        self.assertEqual(self.read()[0]['ClientsMax'][0], '5')

    def test_files_and_folders_that_may_not_be_read(self):
        os.chmod(self.tree.root, 0o755)
        os.chmod(self.tree.write('etc/rig/rigd.conf', '[Daemon]\n'), 0)
        self.tree.write('usr/lib/rig/rigd.conf', '[Daemon]\nClientsMax=5\n')  # hidden all the same
        folder = self.tree.path('run/rig/rigd.conf.d')
        os.makedirs(folder)
        os.chmod(folder, 0)
        more = {'user': 65534} if os.geteuid() == 0 else {}  # root may read everything
        try:
            r = rigd.run('--config-root', self.tree.root, '--check-config', '--print-config', **more)
        except PermissionError:
            self.skipTest('rigd cannot be run by another user here')
        self.assertEqual(r.stderr.replace(self.tree.root, '').splitlines(),
                         ['/etc/rig/rigd.conf: it cannot be read: Permission denied',
                          '/run/rig/rigd.conf.d: it cannot be read: Permission denied'])
        self.assertEqual(rigd.settings_of(r.stdout)['ClientsMax'][0], '1024')

    def test_a_file_of_one_long_line_and_one_of_many_short_ones(self):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=' + '\\\n' * 500000 + '5\n')
        self.expect(ClientsMax='5')
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\n' + 'ClientsMax=1\n' * 80000 + 'ClientsMax=6\n')
        self.expect(ClientsMax='6')


class Print(Case):
    def test_what_it_writes_can_be_read_again(self):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=5\nClientMemoryMax=3000000\nPollUSec=3ms\n'
                        'ClientCacheMax=0\nClientRunsMax=infinity\nLogLevel=notice\n')
        first = rigd.run('--config-root', self.tree.root, '--set', 'ClientQueueMax=70000', '--print-config')
        path = self.tree.write('again.conf', first.stdout)
        check = rigd.run('--config', path, '--check-config')
        self.assertEqual((check.returncode, check.stderr), (0, ''))
        second = rigd.run('--config', path, '--print-config')
        values = [{k: v for k, (v, _) in rigd.settings_of(r.stdout).items()} for r in (first, second)]
        self.assertEqual(values[0], values[1])
        self.assertEqual(values[0]['ClientQueueMax'], '70000')

    def test_both_at_once_write_and_judge(self):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=x\n')
        r = rigd.run('--config-root', self.tree.root, '--print-config', '--check-config')
        self.assertEqual(r.returncode, 1)
        self.assertIn('ClientsMax=1024\n', r.stdout)
        self.assertIn('rigd.conf:2: ', r.stderr)

    def test_output_that_cannot_be_written_is_said(self):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            r = rigd.subprocess.run([rigd.PROGRAM, '--config-root', self.tree.root, '--print-config'], stdout=full,
                                    stderr=rigd.subprocess.PIPE, text=True, check=False)
        self.assertEqual(r.returncode, 1)
        self.assertIn('rigd: the configuration cannot be written: No space left on device', r.stderr)

    def test_the_file_that_is_installed_shows_the_defaults(self):
        path = sys.argv[2]
        with open(path, encoding='utf-8') as f:
            text = f.read()
        r = rigd.run('--config', path, '--print-config')
        self.assertEqual((r.returncode, r.stderr), (0, ''))
        self.assertEqual({origin for _, origin in rigd.settings_of(r.stdout).values()}, {'default'})
        shown = dict(line[1:].split('=', 1) for line in text.splitlines()
                     if line.startswith('#') and line[1:].split('=', 1)[0] in DEFAULTS)
        self.assertEqual(shown, DEFAULTS)
        # and with its # taken away each line is right
        taken = '\n'.join(line[1:] if line[1:].split('=', 1)[0] in DEFAULTS else line for line in text.splitlines())
        r = rigd.run('--config', self.tree.write('taken', taken), '--check-config')
        self.assertEqual((r.returncode, r.stderr), (0, ''))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
