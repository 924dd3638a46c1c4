# SPDX-License-Identifier: ISC
"""What each verb prints through a pipe, against a fake rigd whose records (worlds.py) are known.

Expected texts are worked out by hand from those records: 1536 KiB are 1.5M, 3723 s are 1h2min. JSON is read by
Python's json and compared with the records themselves.
"""

import json
import re
import unittest

import stand
import worlds


def without_age(text):
    """Times since a fixed day grow while the tests do not."""
    return re.sub(r'; \S+ ago', '; LONG ago', text)


class OnTheUsualRigd(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.world = worlds.usual()
        cls.address = cls.enterClassContext(stand.bus())
        cls.enterClassContext(stand.fake(cls.address, cls.world))

    def prints(self, expected, *args):
        status, out, err = stand.rigctl(self.address, *args)
        self.assertEqual((err, status), ('', 0))
        self.assertEqual(without_age(out), expected.lstrip('\n'))

    def json(self, *args):
        status, out, err = stand.rigctl(self.address, *args)
        self.assertEqual((err, status), ('', 0))
        return json.loads(out)

    def test_list_shows_adapters(self):
        self.prints("""
NAME   DRIVER STATE DEVICES BYTES   BUDGET CACHED ABOUT
memory memory ready       2  1.5M       8G    64K memory of the host
disk   disk   ready       1    0B infinity     0B files, through io_uring

2 adapters listed.
""", 'list')

    def test_no_verb_is_list(self):
        self.assertEqual(stand.rigctl(self.address), stand.rigctl(self.address, 'list'))

    def test_no_legend_leaves_rows_alone(self):
        self.prints("""
memory memory ready 2 1.5M       8G 64K memory of the host
disk   disk   ready 1   0B infinity  0B files, through io_uring
""", 'list', '--no-legend')

    def test_clients_shows_who_holds_what(self):
        self.prints(f"""
NUMBER  PID USER       UNIT/COMMAND     COMMAND DEVICES OBJECTS BYTES CACHED RUNS DONE COPIED DEVICE-TIME
     1 1001 {worlds.ROOT:10} hello            hello         1       3  1.5M     0B    0   10     4K      12.3ms
     3 4321 4000000000 render@3.service render        2      40    3G     0B   17  990   1.4G      1h2min

2 clients listed.
""", 'clients')

    def test_clients_are_sorted_as_asked(self):
        for key, expected in (('number', '13'), ('pid', '13'), ('user', '31'), ('unit', '13'), ('command', '13'),
                              ('devices', '31'), ('objects', '31'), ('bytes', '31'), ('runs', '31'), ('time', '31'),
                              ('copied', '31')):
            for more, order in (([], expected), (['--reverse'], expected[::-1]), (['-r'], expected[::-1])):
                _, out, _ = stand.rigctl(self.address, 'clients', '--no-legend', '--sort=' + key, *more)
                self.assertEqual(''.join(line.split()[0] for line in out.splitlines()), order, (key, more))
                found = self.json('clients', '-j', '--sort', key, *more)
                self.assertEqual(''.join(str(c['Number']) for c in found), order, (key, more))

    def test_show_an_adapter_with_its_devices(self):
        expected = """
adapter memory
      Driver: memory
       About: memory of the host
       State: ready
      Memory: 1.5M of 8G
      Cached: 64K
        Runs: 900 done, 3 of them failed
      Copied: 1.5G
 Device time: 2.500s
     Devices: 2

DEVICE CLIENT ID NAME     ADAPTER ARCH QUEUES SUBMITTED REACHED FAILED COPIED DEVICE-TIME STATE
     1      1  1 memory:M memory  -         1        12      10      0     4K      12.3ms works
     4      3  1 memory:M memory  -         1       897     880      0   1.4G      1h2min works
"""
        self.prints(expected, 'show', 'memory')
        self.prints(expected, 'show', 'adapter', 'memory')

    def test_show_a_client_with_its_devices(self):
        expected = """
client 3
     Process: 4321 (render)
        User: 4000000000
        Unit: render@3.service
       Since: 2023-11-14 22:13:20 UTC; LONG ago
     Library: librig-client 0.1.0, by socket
     Objects: 40 of 65536
      Memory: 3G, no limit
      Cached: 0B of 1M
   In flight: 17 of 4096 runs
      Unread: 0B of 1M
        Runs: 990 done, 3 of them failed
      Copied: 1.4G
 Device time: 1h2min
     Devices: 2

DEVICE CLIENT ID NAME     ADAPTER ARCH QUEUES SUBMITTED REACHED FAILED COPIED DEVICE-TIME STATE
     4      3  1 memory:M memory  -         1       897     880      0   1.4G      1h2min works
     5      3  2 disk     disk    -         2        12      10      0     4K      12.3ms lost: the disk is gone
"""
        self.prints(expected, 'show', 'client', '3')
        self.prints(expected, 'show', '3')

    def test_stats_shows_all_that_is_counted(self):
        self.prints("""
           Version: 0.1.0
         StartUSec: 2023-11-14 22:13:20 UTC; LONG ago
           Clients: 2
           Devices: 3
          Adapters: 2
       Connections: 12
ConnectionsRefused: 1
 ConnectionsBroken: 0
      RunsAccepted: 1005
       RunsReached: 1000
        RunsFailed: 3
          RunsLost: 2
       CopiedBytes: 1.5G
            Sleeps: 77
            Traces: 0
   LogLinesDropped: 0
          Settings: PollUSec=50
                    ClientsMax=256

ADAPTER DEVICES RUNS FAILED COPIED DEVICE-TIME BYTES CACHED   BUDGET
memory        2  900      3   1.5G      2.500s  1.5M    64K       8G
disk          1  100      0     0B           0    0B     0B infinity
""", 'stats')

    def test_limits_shows_what_is_used_of_what(self):
        self.prints("""
LIMIT      USED   MAX
ObjectsMax    3 65536
MemoryMax  1.5M    1G
RunsMax       0  4096
CacheMax     0B    1M
QueueMax     0B    1M
""", 'limits', '1')

    def test_top_prints_frames(self):
        frame = f"""rigd 0.1.0; clients 2, devices 3; runs/s -, copied/s -; by number

ADAPTER STATE TIME% RUNS/S COPIED/S BYTES   BUDGET CACHED DEVICES
memory  ready     -      -        -  1.5M       8G    64K       2
disk    ready     -      -        -    0B infinity     0B       1

NUMBER  PID USER       UNIT/COMMAND     COMMAND TIME% RUNS/S COPIED/S BYTES RUNS OBJECTS
     1 1001 {worlds.ROOT:10} hello            hello       -      -        -  1.5M    0       3
     3 4321 4000000000 render@3.service render      -      -        -    3G   17      40
"""
        self.prints(frame, 'top', '-n', '1', '--sort=number')
        # Nothing changes, so what is divided by the time between frames is nothing, whatever that was.
        later = frame.replace('runs/s -, copied/s -', 'runs/s 0, copied/s 0B').replace(
            '    -      -        -', '  0.0      0       0B')
        self.prints(frame + '\n' + later + '\n' + later, 'top', '-n', '3', '-d', '100ms', '--sort=number')

    def test_top_prints_json_a_line_each_frame(self):
        status, out, err = stand.rigctl(self.address, 'top', '--json=pretty', '--iterations=2', '--delay=0.1')
        self.assertEqual((err, status), ('', 0))
        frames = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(frames), 2)
        rates = {'BusyPercent', 'RunsPerSecond', 'CopiedBytesPerSecond'}
        for frame, rate in zip(frames, (None, 0)):
            for records, known in ((frame['Adapters'], self.world.adapters), (frame['Clients'], self.world.clients),
                                   ([frame['Manager']], [self.world.manager])):
                self.assertEqual([{k: v for k, v in r.items() if k not in rates} for r in records], known)
                self.assertEqual([r[k] for r in records for k in rates], [rate] * 3 * len(known))

    def test_json_is_what_rigd_has(self):
        w = self.world
        for how in ('-j', '--json', '--json=short', '--json=pretty'):
            self.assertEqual(self.json('list', how), w.adapters)
            self.assertEqual(self.json('clients', how), w.clients)
            self.assertEqual(self.json('stats', how), {'Manager': w.manager, 'Adapters': w.adapters})
            self.assertEqual(self.json('show', 'disk', how), {'Adapter': w.adapters[1], 'Devices': [w.devices[2]]})
            self.assertEqual(self.json('show', '3', how), {'Client': w.clients[1], 'Devices': w.devices[1:]})
            self.assertEqual(self.json('limits', '3', how), {
                'Number': 3, 'Objects': 40, 'ObjectsMax': 65536, 'LiveBytes': 3 << 30, 'MemoryMax': worlds.NO_LIMIT,
                'RunsInFlight': 17, 'RunsMax': 4096, 'CachedBytes': 0, 'CacheMax': 1 << 20, 'UnreadBytes': 0,
                'QueueMax': 1 << 20})

    def test_json_is_one_line_or_pretty(self):
        _, short, _ = stand.rigctl(self.address, 'list', '--json')
        _, pretty, _ = stand.rigctl(self.address, 'list', '--json=pretty')
        self.assertEqual(short.count('\n'), 1)
        self.assertEqual(pretty, json.dumps(json.loads(short), indent=2) + '\n')

    def test_options_stand_anywhere(self):
        expected = stand.rigctl(self.address, 'clients', '--no-legend', '--sort=bytes')
        self.assertEqual(stand.rigctl(None, '--sort', 'bytes', 'clients', '--address', self.address, '--no-legend'),
                         expected)
        self.assertEqual(stand.rigctl(None, '--no-leg', '--address=' + self.address, 'clients', '--sort=bytes'),
                         expected)

    def test_the_system_and_the_users_bus_are_found(self):
        expected = stand.rigctl(self.address, 'list')
        system = stand.environment(DBUS_SYSTEM_BUS_ADDRESS=self.address)
        user = stand.environment(DBUS_SESSION_BUS_ADDRESS=self.address)
        self.assertEqual(stand.rigctl(None, 'list', env=system), expected)
        self.assertEqual(stand.rigctl(None, 'list', '--user', '--system', env=system), expected)
        self.assertEqual(stand.rigctl(None, 'list', '--user', env=user), expected)

    def test_no_escape_sequence_goes_into_a_pipe(self):
        for args in (['list'], ['clients'], ['show', '3'], ['stats'], ['limits', '1'], ['top', '-n1'], ['--help']):
            _, out, err = stand.rigctl(self.address, *args, env=stand.environment(TERM='xterm-256color'))
            self.assertNotIn('\x1b', out + err, args)


class WhatChanges(unittest.TestCase):
    def setUp(self):
        self.address = self.enterContext(stand.bus())

    def serve(self, world):
        self.enterContext(stand.fake(self.address, world))

    def test_limits_are_set_and_shown(self):
        self.serve(worlds.usual())
        status, out, err = stand.rigctl(self.address, 'limits', '1', 'MemoryMax=1.5G', 'RunsMax=infinity', 'CacheMax=0',
                                        'ObjectsMax=7K', 'QueueMax=65536')
        self.assertEqual((status, err), (0, ''))
        self.assertEqual([line.split() for line in out.splitlines()], [
            ['LIMIT', 'USED', 'MAX'], ['ObjectsMax', '3', '7168'], ['MemoryMax', '1.5M', '1.5G'],
            ['RunsMax', '0', 'infinity'], ['CacheMax', '0B', '0B'], ['QueueMax', '0B', '64K']])
        _, out, _ = stand.rigctl(self.address, 'limits', '1', '-j')
        self.assertEqual({k: v for k, v in json.loads(out).items() if k.endswith('Max')}, {
            'ObjectsMax': 7168, 'MemoryMax': 3 << 29, 'RunsMax': worlds.NO_LIMIT, 'CacheMax': 0, 'QueueMax': 65536})

    def test_sizes_are_shown_as_they_are_typed(self):
        self.serve(worlds.usual())
        for size in ('0', '1023', '1K', '1.5K', '64K', '1G', '2.5G', '16T', '15.5E', 'infinity'):
            _, out, _ = stand.rigctl(self.address, 'limits', '1', '--no-legend', 'MemoryMax=' + size)
            self.assertEqual(out.splitlines()[1].split()[2], size + 'B' * size.isdigit())

    def test_the_log_level_is_set(self):
        self.serve(worlds.usual())
        self.assertEqual(stand.rigctl(self.address, 'log-level'), (0, 'info\n', ''))
        for level in ('err', 'warning', 'notice', 'info', 'debug'):
            self.assertEqual(stand.rigctl(self.address, 'log-level', level), (0, '', ''))
            self.assertEqual(stand.rigctl(self.address, 'log-level'), (0, level + '\n', ''))

    def test_reload_prints_its_remarks(self):
        world = worlds.usual()
        world.rules += ['remark ClientsMax=9 holds after a restart', 'remark a\\x1b[31mb']
        self.serve(world)
        self.assertEqual(stand.rigctl(self.address, 'reload'),
                         (0, 'ClientsMax=9 holds after a restart\na\\x1b[31mb\n', ''))

    def test_reload_with_nothing_to_say_is_silent(self):
        self.serve(worlds.usual())
        self.assertEqual(stand.rigctl(self.address, 'reload'), (0, '', ''))

    def test_nobody_and_nothing_have_words(self):
        self.serve(stand.World(worlds.manager()))
        self.assertEqual(stand.rigctl(self.address, 'list'), (0, 'No adapters.\n', ''))
        self.assertEqual(stand.rigctl(self.address, 'clients'), (0, 'No clients.\n', ''))
        self.assertEqual(stand.rigctl(self.address, 'clients', '--no-legend'), (0, '', ''))
        self.assertEqual(stand.rigctl(self.address, 'clients', '--json'), (0, '[]\n', ''))
        self.assertEqual(stand.rigctl(self.address, 'list', '--json=pretty'), (0, '[]\n', ''))

    def test_properties_of_newer_rigds_are_shown(self):
        world = worlds.usual()
        world.manager['*'] = 'Newer'
        self.serve(world)
        _, out, err = stand.rigctl(self.address, 'stats', '-j')
        self.assertEqual(err, '')
        manager = json.loads(out)['Manager']
        self.assertEqual({k: v for k, v in manager.items() if k.startswith('Newer')}, {
            'Newer': [200, -3, 60000, -70000, -2**63, 0.1, '/a/b', 'a{sv}'],
            'NewerMap': {'-1': ['x'], '7': ['y', 'z']}, 'NewerVariant': [True]})
        _, out, _ = stand.rigctl(self.address, 'stats')
        for line in ('Newer: 200 -3 60000 -70000 -9223372036854775808 0.1 /a/b a{sv}', 'NewerMap: -1=x', '7=y z',
                     'NewerVariant: yes'):
            self.assertRegex(out, rf'(?m)^ *{re.escape(line)}$')

    def test_hundreds_of_clients_are_all_listed(self):
        world = worlds.crowd(300)
        self.serve(world)
        _, out, _ = stand.rigctl(self.address, 'clients', '-j')
        self.assertEqual(json.loads(out), world.clients)
        _, out, _ = stand.rigctl(self.address, 'clients')
        self.assertEqual(len(out.splitlines()), 1 + 300 + 2)
        self.assertIn('300 clients listed.', out)
        # More devices than one answer has are asked for by client.
        _, out, _ = stand.rigctl(self.address, 'show', 'memory', '-j')
        self.assertEqual(json.loads(out)['Devices'], world.devices)

    def test_a_client_in_each_answer_is_enough(self):
        world = worlds.crowd(5)
        world.rules.append('page 1')
        self.serve(world)
        _, out, _ = stand.rigctl(self.address, 'clients', '-j')
        self.assertEqual(json.loads(out), world.clients)


class OnAnOddRigd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = worlds.odd()
        cls.address = cls.enterClassContext(stand.bus())
        cls.enterClassContext(stand.fake(cls.address, cls.world))

    def everything(self):
        for args in (['list'], ['clients'], ['show', 'nv:0'], ['show', 'größe:0'], ['show', '1'], ['show', '2'],
                     ['show', str(worlds.NO_LIMIT - 1)], ['stats'], ['limits', '2'], ['top', '-n2', '-d0.1']):
            yield args, stand.rigctl(self.address, *args)
            yield args + ['-j'], stand.rigctl(self.address, *args, '-j')

    def test_json_has_every_bit_of_it(self):
        _, out, _ = stand.rigctl(self.address, 'clients', '-j')
        self.assertEqual(json.loads(out), self.world.clients)
        _, out, _ = stand.rigctl(self.address, 'list', '-j')
        self.assertEqual(json.loads(out), self.world.adapters)
        _, out, _ = stand.rigctl(self.address, 'show', '1', '-j')
        self.assertEqual(json.loads(out), {'Client': self.world.clients[0], 'Devices': self.world.devices})

    def test_nothing_hidden_reaches_the_output(self):
        hidden = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]')
        for args, (status, out, err) in self.everything():
            self.assertEqual((status, err), (0, ''), args)
            self.assertIsNone(hidden.search(out), args)
        _, out, _ = stand.rigctl(self.address, 'clients')
        self.assertIn(r'a\x1b]0;pwned\x07\xc2\x9b31m\x0d\x0ab\xe2\x80\xaec', out)

    def test_a_locale_without_utf8_gets_ascii(self):
        for locale in ('C', 'POSIX'):
            _, out, _ = stand.rigctl(self.address, 'list', env=dict(stand.environment(), LC_ALL=locale))
            self.assertTrue(out.isascii())
            self.assertIn(r'gr\xc3\xb6\xc3\x9fe:0', out)

    def test_what_is_lost_or_unavailable_says_why(self):
        _, out, _ = stand.rigctl(self.address, 'list', '--no-legend')
        rows = {line.split()[0]: line for line in out.splitlines()}
        self.assertRegex(rows['nv:0'], r' lost .* it fell off the bus\\x1b\[31m$')
        self.assertRegex(rows['disk'], r' unavailable .* io_uring is switched off here$')
        self.assertRegex(rows['größe:0'], r' resetting ')
        _, out, _ = stand.rigctl(self.address, 'show', 'nv:0')
        self.assertIn('       State: lost\n      Reason: it fell off the bus\\x1b[31m\n', out)

    def test_columns_stand_below_their_heads(self):
        _, out, _ = stand.rigctl(self.address, 'list')
        lines = out.splitlines()
        at = lines[0].index('STATE')
        for line, state in zip(lines[1:4], ('lost', 'ready', 'unavailable')):
            self.assertTrue(line[at:].startswith(state), line)

    def test_a_client_that_hides_its_name_is_listed(self):
        _, out, _ = stand.rigctl(self.address, 'clients', '--no-legend')
        self.assertEqual([line.split()[0] for line in out.splitlines()], ['1', '2', str(worlds.NO_LIMIT - 1)])


if __name__ == '__main__':
    stand.main()
