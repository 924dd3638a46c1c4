# SPDX-License-Identifier: ISC
"""What goes wrong: each wrong call of each verb, no bus, no rigd, no permission. The sentence and the status.

Statuses are those of `rigctl --help`: 1 failed, 2 wrong call, 3 nobody there, 4 not allowed.
"""

import os
import shutil
import signal
import subprocess
import unittest

import stand
import worlds

FAILED, WRONG, NOBODY, DENIED = 1, 2, 3, 4
VERBS = ('list', 'show', 'clients', 'top', 'stats', 'trace', 'limits', 'firmware', 'log-level', 'reload')
# A right call of each verb, and the call to rigd that it makes first.
CALLS = (
    (['list'], 'ListAdapters'), (['show', 'memory'], 'GetAll'), (['show', '1'], 'GetAll'), (['clients'], 'ListClients'),
    (['top', '-n1'], 'GetAll'), (['stats'], 'GetAll'), (['trace', '-t0.05', '-o/dev/null'], 'StartTrace'),
    (['limits', '1'], 'GetAll'), (['limits', '1', 'RunsMax=1'], 'SetClientLimits'), (['log-level'], 'Get'),
    (['log-level', 'info'], 'Set'), (['reload'], 'Reload'))
ACTIONS = {'StartTrace': ('trace', 'trace'), 'SetClientLimits': ('set limits', 'set-limits'),
           'Set': ('set the log level', 'set-log-level'), 'Reload': ('reload the configuration', 'reload')}


class Says(unittest.TestCase):
    maxDiff = None

    def says(self, status, sentence, *args, address=None, **more):
        found, out, err = stand.rigctl(address, *args, **more)
        self.assertEqual((err, found), (f'rigctl: {sentence}\n', status), args)
        self.assertEqual(out, '', args)


class WrongCalls(Says):
    """They are told without a bus: there is none here."""

    def wrong(self, sentence, *args):
        self.says(WRONG, sentence, *args, address='unix:path=/nonexistent')

    def test_verbs_that_are_none(self):
        self.wrong('there is no verb "frobnicate"; rigctl --help lists them', 'frobnicate')
        self.wrong('there is no verb "\\x1b[31m"; rigctl --help lists them', '\x1b[31m')
        self.wrong('there is no verb ""; rigctl --help lists them', '')
        for typed, meant in (('lsit', 'list'), ('client', 'clients'), ('tpo', 'top'), ('sho', 'show'), ('Reload', 'reload'),
                             ('loglevel', 'log-level'), ('limit', 'limits'), ('traec', 'trace'), ('stat', 'stats')):
            self.wrong(f'there is no verb "{typed}"; rigctl --help lists them; did you mean {meant}?', typed)

    def test_options_that_are_none(self):
        self.wrong('there is no option --jsno; rigctl --help lists them; did you mean --json?', 'list', '--jsno')
        self.wrong('there is no option --uesr; rigctl --help lists them; did you mean --user?', '--uesr=x', 'list')
        self.wrong('there is no option --frobnicate; rigctl --help lists them', '--frobnicate')
        self.wrong('there is no option -x; rigctl --help lists them', 'list', '-x')
        self.wrong('there is no option -1; rigctl --help lists them', 'show', '-1')
        self.wrong('--user takes no value', '--user=yes')
        self.wrong('--sort needs a value; rigctl --help lists options', 'clients', '--sort')
        self.wrong('-d needs a value; rigctl --help lists options', 'top', '-d')

    def test_options_of_other_verbs(self):
        own = {'sort': ('clients', 'top'), 'reverse': ('clients', 'top'), 'delay': ('top',), 'iterations': ('top',),
               'batch': ('top',), 'client': ('trace',), 'time': ('trace', 'firmware'), 'output': ('trace',), 'force': ('trace',),
               'from': ('firmware',), 'path': ('firmware',), 'images': ('firmware',),
               'json': ('list', 'show', 'clients', 'top', 'stats', 'limits', 'firmware'),
               'no-legend': ('list', 'show', 'clients', 'top', 'stats', 'limits', 'firmware')}
        values = {'sort': '=pid', 'delay': '=1', 'iterations': '=1', 'client': '=1', 'time': '=1', 'output': '=x',
                  'from': '=x', 'path': '=x', 'images': '=x'}
        for option, verbs in own.items():
            for verb in VERBS:
                if verb not in verbs:
                    self.wrong(f'--{option} is no option of {verb}; rigctl {verb} --help lists them', verb,
                               f'--{option}{values.get(option, "")}')

    def test_too_many_or_too_few_words(self):
        for verb in ('list', 'clients', 'top', 'stats', 'trace', 'reload'):
            self.wrong(f'"more" is too much: rigctl {verb}', verb, 'more')
        self.wrong('"more" is too much: rigctl log-level [LEVEL]', 'log-level', 'info', 'more')
        self.wrong('"more" is too much: rigctl show NAME|[client] N', 'show', 'client', '1', 'more')
        self.wrong('show needs more: rigctl show NAME|[client] N', 'show')
        self.wrong('limits needs more: rigctl limits N [KEY=VALUE...]', 'limits')

    def test_wrong_numbers_of_clients(self):
        for word in ('x', '0', '-', '1x', '18446744073709551616', '', '1.0', ' 1', '+1'):
            sentence = f'"{word}" is no number of a client; rigctl clients lists them'
            self.wrong(sentence, 'show', 'client', word)
            self.wrong(sentence, 'limits', word)
            self.wrong(sentence, 'trace', '--client=' + word)
        self.wrong('"0" is no number of a client; rigctl clients lists them', 'show', '0')
        self.wrong('"99999999999999999999" is no number of a client; rigctl clients lists them', 'show',
                   '99999999999999999999')

    def test_show_of_other_kinds(self):
        self.wrong('show: "clint" is neither client nor adapter; did you mean client?', 'show', 'clint', '1')
        self.wrong('show: "device" is neither client nor adapter', 'show', 'device', '1')

    def test_wrong_values(self):
        self.wrong('--json: there is no "prety"; write pretty, short or off; did you mean pretty?', '--json=prety')
        self.wrong('--json: there is no "yaml"; write pretty, short or off', '--json=yaml')
        for word in ('x', '', '1x', '-1', '1.', '.5', '1 s', 'infinity'):
            self.wrong(f'--delay: "{word}" is no time; write seconds, as 0.5, or 500ms, 2min', 'top', '--delay=' + word)
            self.wrong(f'--time: "{word}" is no time; write seconds, as 0.5, or 500ms, 2min', 'trace', '--time=' + word)
        self.wrong('--delay: "0" is not between 100.0ms and 365d', 'top', '-d', '0')
        self.wrong('--delay: "99ms" is not between 100.0ms and 365d', 'top', '-d', '99ms')
        self.wrong('--delay: "366d" is not between 100.0ms and 365d', 'top', '-d', '366d')
        self.wrong('--time: "0" is not between 1.0ms and 365d', 'trace', '-t', '0')
        self.wrong('--time: "99999999999999999999" is not between 1.0ms and 365d', 'trace', '-t', '9' * 20)
        for word in ('0', 'x', '-1', '1.5', '', '99999999999999999999'):
            self.wrong(f'--iterations: "{word}" is no number of frames, from 1', 'top', '-n', word)
        self.wrong('--output: the name of the file is empty', 'trace', '--output=')
        self.wrong('--sort: there is no "name"; there are: number, pid, user, unit, command, devices, objects, bytes, runs, '
                   'time, copied', 'clients', '--sort=name')
        self.wrong('--sort: there is no "name"; there are: time, runs, copied, bytes, pid, user, number', 'top', '-n1',
                   '--sort=name')
        self.wrong('there is no log level "inof"; there are err, warning, notice, info and debug; did you mean info?',
                   'log-level', 'inof')
        self.wrong('there is no log level "7"; there are err, warning, notice, info and debug', 'log-level', '7')

    def test_wrong_limits(self):
        keys = 'there are ObjectsMax, MemoryMax, RunsMax, CacheMax and QueueMax'
        self.wrong('limits: "RunsMax" sets nothing; write KEY=VALUE', 'limits', '1', 'RunsMax')
        self.wrong(f'there is no limit "runsmax"; {keys}; did you mean RunsMax?', 'limits', '1', 'runsmax=1')
        self.wrong(f'there is no limit "MemryMax"; {keys}; did you mean MemoryMax?', 'limits', '1', 'MemryMax=1')
        self.wrong(f'there is no limit "Frobnicate"; {keys}', 'limits', '1', 'Frobnicate=1')
        self.wrong(f'there is no limit ""; {keys}', 'limits', '1', '=1')
        self.wrong('limits: RunsMax is given twice', 'limits', '1', 'RunsMax=1', 'CacheMax=1', 'RunsMax=1')
        for word in ('', 'x', '-1', '1Q', '1KB', '1.5', '0x10', '1,5G', 'Infinity', '1 K', '1.G'):
            self.wrong(f'RunsMax: "{word}" is no size; write a number, with K, M, G or T, or infinity', 'limits', '1',
                       'CacheMax=1', 'RunsMax=' + word)
        for word in ('18446744073709551615', '18446744073709551616', '16E', '99999999T'):
            self.wrong(f'RunsMax: "{word}" is more than 64 bits hold; without a limit is infinity', 'limits', '1',
                       'RunsMax=' + word)

    def test_addresses_that_are_none(self):
        for address in ('x', 'unix', '', 'frob:path=/x', 'unix:frob=1'):
            self.says(WRONG, f'--address: "{address}" is no address of D-Bus; one is '
                      'unix:path=/run/dbus/system_bus_socket', 'list', '--address', address)


class Help(unittest.TestCase):
    def test_help_lists_every_verb_and_status(self):
        status, out, err = stand.rigctl(None, '--help')
        self.assertEqual((status, err), (0, ''))
        for verb in VERBS:
            self.assertRegex(out, rf'(?m)^  {verb} ')
        for n in range(5):
            self.assertRegex(out, rf'(?m)^  {n}  ')
        self.assertEqual(stand.rigctl(None, '-h'), (status, out, err))

    def test_help_of_a_verb_says_how_it_is_called(self):
        for verb in VERBS:
            status, out, err = stand.rigctl(None, verb, '--help')
            self.assertEqual((status, err), (0, ''))
            self.assertRegex(out, rf'(?m)^usage: rigctl \[OPTION\.\.\.\] {verb}\b')
            self.assertEqual(stand.rigctl(None, '--help', verb), (status, out, err))

    def test_help_fits_a_terminal(self):
        for verb in [[v] for v in VERBS] + [[]]:
            for line in stand.rigctl(None, *verb, '--help')[1].splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_version_says_which(self):
        status, out, err = stand.rigctl(None, '--version')
        self.assertEqual((status, err), (0, ''))
        self.assertRegex(out, r'^rigctl \d+\.\d+\.\d+\n$')


class NobodyThere(Says):
    def test_no_system_bus(self):
        for args, _ in CALLS:
            self.says(NOBODY, 'cannot reach the system bus: No such file or directory; is D-Bus running? `rigctl --user` '
                      'asks your own', *args,
                      env=stand.environment(DBUS_SYSTEM_BUS_ADDRESS='unix:path=/nonexistent/bus'))

    def test_no_bus_of_the_user(self):
        end = '; log in as that user (XDG_RUNTIME_DIR says where it is), or ask the system\'s rigd, without --user'
        self.says(NOBODY, 'cannot reach the bus of your user: XDG_RUNTIME_DIR is not set' + end, 'list', '--user')
        self.says(NOBODY, 'cannot reach the bus of your user: No such file or directory' + end, 'list', '--user',
                  env=stand.environment(XDG_RUNTIME_DIR='/nonexistent'))

    def test_no_bus_at_the_address(self):
        self.says(NOBODY, 'cannot reach the bus at unix:path=/nonexistent: No such file or directory; is it running?',
                  'list', address='unix:path=/nonexistent')

    def test_no_rigd_on_the_bus(self):
        with stand.bus() as address:
            system = stand.environment(DBUS_SYSTEM_BUS_ADDRESS=address, DBUS_SESSION_BUS_ADDRESS=address)
            for args, _ in CALLS:
                self.says(NOBODY, 'rigd is not running: systemctl start rigd (or, for your own, systemctl --user start '
                          'rigd and rigctl --user)', *args, env=system)
                self.says(NOBODY, 'your own rigd is not running: systemctl --user start rigd (without --user, rigctl '
                          'asks the system\'s)', *args, '--user', env=system)
                self.says(NOBODY, f'no rigd is on the bus at {address}: start one with rigd --bus {address}', *args,
                          address=address)

    def test_a_rigd_that_cannot_be_started(self):
        service = '[D-BUS Service]\nName=org.rig.Rig1\nExec=/bin/false\n'
        with stand.bus(service=service) as address:
            for where, user in (([], ''), (['--user'], '--user ')):
                status, _, err = stand.rigctl(None, 'list', *where, env=stand.environment(
                    DBUS_SYSTEM_BUS_ADDRESS=address, DBUS_SESSION_BUS_ADDRESS=address))
                self.assertEqual(status, NOBODY)
                self.assertRegex(err, '^rigctl: rigd is not running and could not be started: .*; '
                                 f'systemctl {user}status rigd says more\n$')

    def test_a_rigd_that_ends_instead_of_answering(self):
        for args, member in CALLS:
            with stand.bus() as address:
                world = worlds.usual()
                world.rules.append('quit ' + member)
                with stand.fake(address, world):
                    status, out, err = stand.rigctl(address, *args)
                self.assertEqual((status, out), (NOBODY, ''), args)
                self.assertRegex(err, '^rigctl: rigd did not answer: .*; systemctl status rigd says more\n$')

    def test_a_rigd_that_never_answers(self):
        world = worlds.usual()
        world.rules.append('hang ListAdapters')
        with stand.bus() as address, stand.fake(address, world):
            self.says(NOBODY, 'rigd did not answer: Connection timed out; systemctl status rigd says more', 'list',
                      address=address)

    def test_something_else_with_its_name(self):
        with stand.bus() as address, stand.fake(address, stand.World()):
            self.says(FAILED, 'what is on the bus as org.rig.Rig1 is no rigd', 'stats', address=address)


class NotAllowed(Says):
    def test_rigd_refuses(self):
        for name in ('org.freedesktop.DBus.Error.AccessDenied', 'org.freedesktop.DBus.Error.InteractiveAuthorizationRequired',
                     'org.freedesktop.DBus.Error.AuthFailed', 'org.freedesktop.PolicyKit1.Error.NotAuthorized'):
            for args, member in CALLS:
                if member not in ACTIONS:
                    continue
                doing, action = ACTIONS[member]
                world = worlds.usual()
                world.rules.append(f'fail {member} {name} whatever')
                with stand.bus() as address, stand.fake(address, world):
                    self.says(DENIED, f'rigd does not let you {doing} (polkit action org.rig.rig1.{action}); the user it '
                              'runs as may', *args, address=address)

    def test_a_password_may_be_asked_for_unless_refused(self):
        world = worlds.usual()
        world.rules += [f'interactive {member}' for member in ACTIONS]
        for args, member in CALLS:
            if member in ACTIONS:
                with stand.bus() as address, stand.fake(address, world):
                    self.assertEqual(stand.rigctl(address, *args)[0], 0, args)
                    self.assertEqual(stand.rigctl(address, *args, '--no-ask-password')[0], DENIED, args)

    def test_the_way_out_is_the_same_call_as_root(self):
        if os.getuid() != 0:
            self.skipTest('only root can become somebody whom nothing is allowed to')
        world = worlds.usual()
        world.rules += [f'fail {member} org.freedesktop.DBus.Error.AccessDenied no' for member in ACTIONS]
        with stand.bus() as address, stand.fake(address, world):
            folder = os.path.dirname(address.removeprefix('unix:path='))
            os.chmod(folder, 0o755)
            program = shutil.copy(stand.RIGCTL, folder)  # which others may reach, wherever the build is
            ended = subprocess.run(
                [program, '--no-ask-password', 'limits', '1', 'RunsMax=1', 'CacheMax=1K'], stdin=subprocess.DEVNULL,
                env=stand.environment(DBUS_SYSTEM_BUS_ADDRESS=address), user='nobody', group='nogroup', extra_groups=[],
                capture_output=True, text=True, timeout=stand.DEADLINE, check=False)
        self.assertEqual(ended.stderr, 'rigctl: rigd does not let you set limits (polkit action org.rig.rig1.set-limits): '
                         f'as root: sudo {program} --no-ask-password limits 1 RunsMax=1 CacheMax=1K\n')
        self.assertEqual(ended.returncode, DENIED)

    def test_the_buss_policy_refuses(self):
        policy = '<deny send_destination="org.rig.Rig1"/>'
        with stand.bus(policy) as address, stand.fake(address, worlds.usual()):
            for args, member in CALLS:
                if member not in ACTIONS:
                    self.says(DENIED, 'the bus does not let you ask rigd; its policy decides who may', *args, address=address)


class ItFails(Says):
    def test_names_that_are_none_say_which_are(self):
        with stand.bus() as address, stand.fake(address, worlds.usual()):
            self.says(FAILED, 'there is no adapter "nv:0"; there are: memory, disk', 'show', 'nv:0', address=address)
            self.says(FAILED, 'there is no adapter "3"; there are: memory, disk', 'show', 'adapter', '3', address=address)
            self.says(FAILED, 'there is no adapter "\\x07"; there are: memory, disk', 'show', '\x07', address=address)
            for args in (['show', '2'], ['show', 'client', '2'], ['limits', '2'], ['limits', '2', 'RunsMax=1'],
                         ['trace', '--client=2', '-o/dev/null']):
                self.says(FAILED, 'there is no client 2; connected are: 1, 3', *args, address=address)

    def test_names_where_there_are_none(self):
        with stand.bus() as address, stand.fake(address, stand.World(worlds.manager())):
            self.says(FAILED, 'there is no adapter "nv:0", nor any other', 'show', 'nv:0', address=address)
            self.says(FAILED, 'there is no client 2, nor any other', 'show', '2', address=address)

    def test_of_hundreds_some_are_named(self):
        with stand.bus() as address, stand.fake(address, worlds.crowd(300)):
            self.says(FAILED, 'there is no client 2; connected are: ' + ', '.join(str(3 * i + 1) for i in range(16)) +
                      ' and 284 more', 'show', '2', address=address)

    def test_what_rigd_says_is_repeated_without_escapes(self):
        doing = {'ListAdapters': 'list adapters', 'ListClients': 'list clients', 'GetAll': 'read properties',
                 'Get': 'read the log level', **{member: what for member, (what, _) in ACTIONS.items()}}
        for args, member in CALLS:
            world = worlds.usual()
            world.rules.append(f'fail {member} org.freedesktop.DBus.Error.InvalidArgs rigd.conf:7: no \\x1b[2J so')
            with stand.bus() as address, stand.fake(address, world):
                self.says(FAILED, f'cannot {doing[member]}: rigd.conf:7: no \\x1b[2J so', *args, address=address)

    def test_a_list_that_never_ends_is_refused(self):
        world = worlds.usual()
        world.rules.append('stuck')
        with stand.bus() as address, stand.fake(address, world):
            self.says(FAILED, 'cannot read what rigd answered to ListClients: Bad message; are rigd and rigctl of the same '
                      'version?', 'clients', address=address)


class WhereOutputGoes(unittest.TestCase):
    def setUp(self):
        self.address = self.enterContext(stand.bus())
        self.enterContext(stand.fake(self.address, worlds.crowd(300)))

    def start(self, *args, out, **more):
        return subprocess.Popen([stand.RIGCTL, '--address', self.address, *args], stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.PIPE, env=stand.environment(), **more)

    def test_a_pipe_that_is_closed_is_no_error_to_tell(self):
        # As | head does; once as shells start programs, and once as services do, which ignore SIGPIPE.
        for restore in (True, False):
            for args in (['clients'], ['clients', '-j'], ['top', '-d0.1']):
                read, write = os.pipe()
                os.close(read)
                ended = self.start(*args, out=write, restore_signals=restore)
                os.close(write)
                _, err = ended.communicate(timeout=stand.DEADLINE)
                self.assertEqual(err, b'', args)
                self.assertEqual(ended.returncode, -signal.SIGPIPE if restore else FAILED)

    def test_a_full_disk_is_an_error(self):
        for args in (['list'], ['clients'], ['top', '-n1'], ['stats', '-j'], ['--help']):
            with open('/dev/full', 'wb') as full:
                ended = self.start(*args, out=full)
                _, err = ended.communicate(timeout=stand.DEADLINE)
            self.assertEqual((err, ended.returncode), (b'rigctl: cannot write to stdout: No space left on device\n', FAILED))


if __name__ == '__main__':
    stand.main()
