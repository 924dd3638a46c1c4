# SPDX-License-Identifier: ISC
"""What a running rigd does with a configuration that changed: SIGHUP, and what it tells its service manager.

    test-reload.py RIGD

What counts is observed by what a client may do (connections refused with EUSERS, the protocol's own text in the packet
that rigd sends) and by the log. sd_notify(3) and systemd.service(5), Type=notify-reload, say what is told when.
"""

import sys
import time
import unittest

import rigd


class Case(unittest.TestCase):
    def setUp(self):
        self.tree = rigd.Tree()
        self.addCleanup(self.tree.remove)

    def start(self, text, *more):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\n' + text)
        self.rigd = rigd.Rigd('--config-root', self.tree.root, *more)
        self.addCleanup(self.rigd.forget)

    def change(self, text):
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\n' + text)
        return self.rigd.reload()

    def connect(self, n):
        """n connections that are not refused."""
        sockets = [self.rigd.connect() for _ in range(n)]
        for s in sockets:
            self.addCleanup(s.close)
        return sockets

    def refused(self, s):
        """The connection is refused, and why."""
        return s.recv(65536).decode(errors='replace')

    def is_served(self):
        """A connection was accepted, for what is no message is answered with a sentence."""
        with self.rigd.connect() as s:
            s.send(b'no message')
            self.assertTrue(s.recv(65536))

    def log_has(self, text):
        self.assertIn(text, self.rigd.log())


class Applied(Case):
    def test_more_connections(self):
        self.start('ClientsMax=2\n')
        self.connect(2)
        with self.rigd.connect() as s:
            self.assertIn('there are 2 connections, and ClientsMax is 2', self.refused(s))
        self.change('ClientsMax=3\n')
        self.log_has('configuration read again, from 1 file: ClientsMax is 3, was 2')
        self.connect(1)
        with self.rigd.connect() as s:
            self.assertIn('there are 3 connections, and ClientsMax is 3', self.refused(s))
        self.rigd.stop()

    def test_fewer_connections_end_none(self):
        self.start('ClientsMax=3\n')
        sockets = self.connect(3)
        with self.rigd.connect() as s:  # the three were accepted before it
            self.assertIn('there are 3 connections, and ClientsMax is 3', self.refused(s))
        self.change('ClientsMax=1\n')
        with self.rigd.connect() as s:
            self.assertIn('there are 3 connections, and ClientsMax is 1', self.refused(s))
        for s in sockets:
            s.setblocking(False)
            self.assertRaises(BlockingIOError, s.recv, 1)
        self.rigd.stop()

    def test_the_log_level_and_the_time_it_polls(self):
        self.start('LogLevel=info\n')
        self.change('LogLevel=debug\nPollUSec=3ms\n')
        self.log_has('PollUSec is 3000, was 50, LogLevel is debug, was info')
        self.is_served()
        self.log_has('client 1 (pid ')
        self.rigd.stop()

    def test_a_quieter_level_is_in_force_at_once(self):
        self.start('LogLevel=debug\n')
        self.change('LogLevel=err\n')
        self.is_served()
        self.rigd.process.terminate()
        log = self.rigd.end()
        self.assertIn('LogLevel is err, was debug', log)
        self.assertNotIn('stopping', log)
        self.assertNotIn('client 1', log)

    def test_settings_that_are_gone_are_the_defaults_again(self):
        self.start('ClientsMax=2\n')
        self.change('')
        self.log_has('ClientsMax is 1024, was 2')
        self.rigd.stop()

    def test_the_command_line_counts_before_the_files_again(self):
        self.start('', '--set', 'ClientsMax=1', '--log-level', 'notice')
        self.change('ClientsMax=5\nLogLevel=debug\nClientRunsMax=7\n')
        self.log_has('from 1 file: ClientRunsMax is 7, was 16384\n')
        self.connect(1)
        with self.rigd.connect() as s:
            self.assertIn('ClientsMax is 1', self.refused(s))
        self.rigd.stop()

    def test_nothing_new_is_said_too(self):
        self.start('ClientsMax=2\n')
        self.rigd.reload()
        self.log_has('configuration read again, from 1 file: nothing that counts now is different')
        self.rigd.stop()

    def test_drop_ins_that_came_later(self):
        self.start('ClientsMax=2\n')
        self.tree.write('run/rig/rigd.conf.d/a.conf', '[Daemon]\nClientsMax=1\n')
        self.rigd.reload()
        self.log_has('from 2 files: ClientsMax is 1, was 2')
        self.rigd.stop()


class NotApplied(Case):
    def test_what_needs_a_restart_is_one_sentence(self):
        self.start('AdapterMemoryMax=8G\n')
        self.change('AdapterMemoryMax=4G\nClientsMax=5\n')
        self.log_has('configuration: AdapterMemoryMax=4G counts after a restart of rigd; it stays 8G until then\n')
        self.log_has('from 1 file: ClientsMax is 5, was 1024\n')
        self.rigd.reload()  # and it is said again, since it still waits
        self.assertEqual(self.rigd.log().count('counts after a restart'), 2)
        self.rigd.stop()

    def test_a_wrong_value_leaves_that_setting_as_it_was_and_others_count(self):
        self.start('ClientsMax=2\n')
        _, ready = self.change('ClientsMax=none\nClientRunsMax=5\nNonsense=1\n')
        where = f'configuration: {self.tree.root}/etc/rig/rigd.conf'
        self.log_has(f'{where}:2: ClientsMax: "none" is no number\n')
        self.log_has(f'{where}:4: there is no setting "Nonsense"\n')
        self.log_has('from 1 file: ClientRunsMax is 5, was 16384\n')
        self.assertIn('its configuration has 2 mistakes', ready['STATUS'])
        self.connect(2)
        with self.rigd.connect() as s:
            self.assertIn('ClientsMax is 2', self.refused(s))
        _, ready = self.change('ClientsMax=3\nClientRunsMax=5\n')
        self.assertNotIn('mistake', ready['STATUS'])
        self.log_has('from 1 file: ClientsMax is 3, was 2\n')
        self.rigd.stop()

    def test_a_right_value_after_a_wrong_one_counts(self):
        self.start('ClientsMax=2\n')
        self.change('ClientsMax=none\nClientsMax=4\n')
        self.log_has('ClientsMax is 4, was 2')
        self.rigd.stop()

    def test_a_file_that_cannot_be_read_changes_nothing(self):
        self.start('ClientsMax=2\n')
        self.tree.write('etc/rig/rigd.conf', '[Daemon]\nClientsMax=1\n')
        self.tree.link('etc/rig/rigd.conf.d/a.conf', '/nowhere')
        _, ready = self.rigd.reload()
        self.log_has(f'the configuration stays as it was: {self.tree.root}/etc/rig/rigd.conf.d/a.conf: it cannot be '
                     'read: No such file or directory\n')
        self.assertIn('1 mistake', ready['STATUS'])
        self.assertNotIn('ClientsMax is 1', self.rigd.log())
        self.connect(2)
        self.rigd.stop()

    def test_a_file_of_the_command_line_that_is_gone_changes_nothing(self):
        path = self.tree.write('mine', '[Daemon]\nClientsMax=1\n')
        self.rigd = rigd.Rigd('--config', path)
        self.addCleanup(self.rigd.forget)
        rigd.os.unlink(path)
        self.rigd.reload()
        self.log_has(f'the configuration stays as it was: {path}: it cannot be read')
        self.connect(1)
        with self.rigd.connect() as s:
            self.assertIn('ClientsMax is 1', self.refused(s))
        self.rigd.stop()


class Told(Case):
    def test_the_manager_hears_when_it_starts_reloads_and_stops(self):
        self.start('')
        self.assertRegex(self.rigd.ready['STATUS'], rf'^Serving \d+ adapters? on {self.rigd.socket_path}$')
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        reloading, ready = self.rigd.reload()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self.assertEqual(reloading['RELOADING'], '1')
        self.assertTrue(before <= int(reloading['MONOTONIC_USEC']) <= after)
        self.assertEqual(ready['STATUS'], self.rigd.ready['STATUS'])
        self.rigd.process.terminate()
        stopping = self.rigd.manager.await_key('STOPPING', self.rigd.pidfd)
        self.assertEqual(stopping['STOPPING'], '1')
        self.rigd.end()

    def test_what_is_wrong_when_it_starts_is_logged_and_left_out(self):
        self.start('ClientsMax=none\nClientRunsMax=5\n')
        self.log_has(f'configuration: {self.tree.root}/etc/rig/rigd.conf:2: ClientsMax: "none" is no number\n')
        self.assertTrue(self.rigd.ready['STATUS'].endswith('; its configuration has 1 mistake, which the log names'))
        self.rigd.stop()

    def test_many_reloads_leave_nothing_behind(self):
        self.start('ClientsMax=none\nAdapterMemoryMax=1G\n')
        self.change('ClientsMax=none\nAdapterMemoryMax=2G\n')
        descriptors = self.rigd.count_descriptors() + 1  # of the moment, perhaps
        for _ in range(20):
            self.rigd.reload()
        self.rigd.await_descriptors(descriptors)
        self.rigd.stop()  # under a leak checker, with status 0


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
