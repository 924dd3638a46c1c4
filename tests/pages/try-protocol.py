# SPDX-License-Identifier: ISC
"""Tries on a rigd what docs/protocol.md says a client may rely on, and what it says rigd refuses.

Usage: try-protocol.py ROOT RIGD

Each expectation here was written from the page, and nothing else was looked up. The messages are made by the coder
of docs/examples/client.py, or by hand where they have to be wrong; rigd's own codec is at the other end. The answer
of each request is read out of the page.
"""

import array
import contextlib
import errno
import fcntl
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT, RIGD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path[:0] = [os.path.join(ROOT, 'docs/examples'), os.path.join(ROOT, 'tests/examples')]
import client  # noqa: E402
import run  # noqa: E402

SECONDS = 30
FOLDER = tempfile.TemporaryDirectory()
SEALS = 0x1 | 0x2 | 0x4  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW
F_ADD_SEALS, F_SEAL_WRITE = 1033, 0x8
FILL = {1: 2, 2: 0, 4: [0, 0], 7: 0x41414141}


def read_page():
    with open(os.path.join(ROOT, 'docs/protocol.md'), encoding='utf-8') as f:
        return f.read()


def table_of_messages():
    """The index: of a name its type, its class and its answer."""
    row = re.compile(r'^\| (\d+) \| \[([a-z-]+)\]\(#[a-z-]+\) \| (\w+) \| (?:\[([a-z-]+)\])?.*$', re.M)
    return {name: (int(number), group, answer) for number, name, group, answer in row.findall(read_page())}


MESSAGES = table_of_messages()
NAMES = {number: name for name, (number, _, _) in MESSAGES.items()}


def message(name, fields):
    return client.encode([MESSAGES[name][0], fields])


def sealed(length, seals=SEALS):
    fd = os.memfd_create('test', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, length)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Wire:
    """A connection that may say anything."""

    def __init__(self, features=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SECONDS)
        self.socket.connect(PATH)
        self.serial = 100
        self.events, self.fds = [], []
        if features is not None:
            self.hello = self.ask('hello', {1: 1, 2: 'test', 3: features})

    def close(self):
        self.socket.close()
        for fd in self.fds:
            os.close(fd)

    def send(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.socket.sendmsg([data], control)

    def say(self, name, fields, fds=()):
        self.send(message(name, fields), fds)

    def hear(self):
        """The next message: its name and its fields. None at the end."""
        data, fds, flags, _ = socket.recv_fds(self.socket, 65536, 4)
        self.fds += fds
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        if not data:
            return None, {}
        (kind, fields), at = client.decode(data, 0)
        assert at == len(data), 'one message in each packet is all that this test reads'
        assert client.encode([kind, fields]) == data, f'rigd sent {data.hex()}, which is not in its own form'
        return NAMES[kind], fields

    def answer(self, serial):
        while True:
            name, fields = self.hear()
            if name is None:
                raise AssertionError('the connection ended')
            if name == 'broken':
                raise AssertionError(f'broken: {fields}')
            if MESSAGES[name][1] == 'answer' and fields[0] == serial:
                return name, fields
            self.events.append((name, fields))

    def call(self, name, fields, fds=()):
        self.serial += 1
        self.say(name, {0: self.serial, **fields}, fds)
        return self.answer(self.serial)

    def ask(self, name, fields, fds=()):
        """A request that succeeds, with the answer that the page names."""
        got, fields = self.call(name, fields, fds)
        assert got == MESSAGES[name][2], f'{name} was answered with {got} {fields}'
        return fields

    def event(self, name):
        for i, (kind, fields) in enumerate(self.events):
            if kind == name:
                del self.events[i]
                return fields
        while True:
            kind, fields = self.hear()
            assert kind, f'the end came instead of {name}'
            if kind == name:
                return fields
            self.events.append((kind, fields))


def usual(features=0):
    """A connection with a memory device 1, a buffer 1 of 4096 bytes on it, and a work 1 that fills."""
    w = Wire(features)
    w.ask('device-open', {1: 1, 2: 'memory:M'})
    w.ask('buffer-new', {1: 1, 2: 1, 3: 4096, 4: 0})
    w.ask('work-new', {1: 1, 2: 1, 3: [{1: 2}], 4: [FILL]})
    return w


class Case(unittest.TestCase):
    def setUp(self):
        self.wires = []

    def tearDown(self):
        for w in self.wires:
            w.close()

    def open(self, features=0):
        self.wires.append(Wire(features))
        return self.wires[-1]

    def usual(self, features=0):
        self.wires.append(usual(features))
        return self.wires[-1]

    def failed(self, w, name, fields, error, fds=()):
        got, answer = w.call(name, fields, fds)
        self.assertEqual(got, 'failed', f'{name} {fields}')
        self.assertEqual(errno.errorcode[answer[1]], errno.errorcode[error], answer[2])
        self.assertTrue(answer[2], 'a sentence')
        for fd in fds:
            os.close(fd)

    def broken(self, w, error):
        """The connection ends now, with that error and a sentence."""
        fields = w.event('broken')
        self.assertEqual(errno.errorcode[fields[1]], errno.errorcode[error], fields[2])
        self.assertTrue(fields[2], 'a sentence')
        self.assertEqual(w.hear()[0], None, 'the end follows')


class Encoding(Case):
    def refused(self, data, error=errno.EBADMSG, fds=()):
        with self.subTest(data=data[:40].hex(' ')):
            w = self.open()
            w.send(data, fds)
            self.broken(w, error)

    def test_forms_that_end_the_connection(self):
        self.refused(bytes.fromhex('82 18 21 a1 00 18 01'))  # 1 in two bytes
        self.refused(bytes.fromhex('82 18 21 bf 00 01 ff'))  # a map of indefinite length
        self.refused(bytes.fromhex('9f 18 21 a1 00 01 ff'))
        self.refused(bytes.fromhex('82 18 21 a1 00 20'))     # -1
        self.refused(bytes.fromhex('82 18 21 a1 00 f4'))     # false
        self.refused(bytes.fromhex('82 18 21 a0'))           # no serial
        self.refused(bytes.fromhex('82 18 21 a2 00 01 00 01'))  # two
        self.refused(bytes.fromhex('82 18 21 a1 61 30 01'))  # a text as a key
        self.refused(bytes.fromhex('82 18 21'))
        self.refused(bytes.fromhex('82 18 21 a1 00 01 82'))  # one message, and the first byte of another
        self.refused(bytes.fromhex('83 18 21 a1 00 01 00'))
        self.refused(message('device-open', {0: 1, 1: 1, 2: 'a\0b'}))
        self.refused(message('device-open', {0: 1, 1: 1, 2: 'ab'}).replace(b'ab', b'\xff\xfe'))
        self.refused(b'')
        self.refused(message('sync', {0: 1}) * (65537 // 6 + 1))

    def test_what_exceeds_a_bound(self):
        self.refused(message('device-open', {0: 1, 1: 63, 2: 'memory:M'}))
        self.refused(message('device-open', {0: 1, 1: 1, 2: 'a' * 64}))
        self.refused(message('run', {1: 1, 2: [1] * 65}))

    def test_types_that_there_are_not(self):
        for kind in (0, 8, 31, 63, 95, 127, 255, 1 << 40):
            self.refused(client.encode([kind, {}]), errno.EOPNOTSUPP)

    def test_keys_come_in_any_order_and_unknown_ones_are_skipped(self):
        w = self.open()
        w.send(bytes.fromhex('82 18 22 a2 01 00 00 07'))  # adapter-list with its serial last
        self.assertEqual(w.answer(7)[0], 'adapter-done')
        w.send(bytes.fromhex('82 18 21 a4 00 08 17 20 18 18 fb 3f f0 00 00 00 00 00 00 18 19 c1 f5'))
        self.assertEqual(w.answer(8)[0], 'done')
        w.send(bytes.fromhex('82 18 21 a2 00 09 17') + b'\x81' * 8 + b'\x00')
        self.assertEqual(w.answer(9)[0], 'done', 'values nest 8 levels')
        w.say('sync', {0: 10, **{100 + i: i for i in range(32)}})
        self.assertEqual(w.answer(10)[0], 'done', '32 unknown keys')
        self.refused(bytes.fromhex('82 18 21 a2 00 09 17') + b'\x81' * 9 + b'\x00')
        self.refused(message('sync', {0: 10, **{100 + i: i for i in range(33)}}))

    def test_a_packet_has_several_messages(self):
        w = self.open()
        w.send(b''.join(message('sync', {0: 1 + i}) for i in range(100)))
        self.assertEqual([w.hear() for _ in range(100)], [('done', {0: 1 + i}) for i in range(100)])


class Order(Case):
    def test_hello_is_first_and_once(self):
        w = self.open(None)
        w.say('sync', {0: 1})
        self.broken(w, errno.EPROTO)
        w = self.open(None)
        w.say('run', {1: 1, 2: []})
        self.broken(w, errno.EPROTO)
        w = self.open()
        w.say('hello', {0: 1, 1: 1, 2: '', 3: 0})
        self.broken(w, errno.EPROTO)

    def test_other_versions(self):
        for version in (0, 2, 65535):
            w = self.open(None)
            w.say('hello', {0: 1, 1: version, 2: 'test', 3: 0})
            self.broken(w, errno.EPROTONOSUPPORT)

    def test_features_are_answered_with_those_of_both(self):
        for asked, agreed in ((0, 0), (1, 1), (2, 0), (3, 3), (4, 0), (7, 3), (0xfffffffd, 1)):
            hello = self.open(asked).hello
            self.assertEqual(hello[3], agreed)
            self.assertEqual([7 in hello, 8 in hello, 9 in hello], [agreed >= 1, agreed == 3, agreed == 3])
            self.assertEqual(hello[1], 1)

    def test_messages_that_are_rigds(self):
        for name, (_, group, _) in MESSAGES.items():
            if group in ('answer', 'event'):
                fields = {0: 1, 1: 1, 2: 'x', 3: 0, 4: 0, 5: 0, 6: 0}
                if name in ('reached', 'ready', 'limits', 'buffer-done', 'device-lost', 'run-failed'):
                    fields[2] = 0
                if name in ('run-failed', 'failed'):
                    fields[4] = 'x' if name == 'run-failed' else 0
                if name == 'device-lost':
                    fields[3] = 'x'
                if name == 'device-done':
                    fields.update({1: 'x', 2: 0, 3: [1]})
                if name == 'adapter-done':
                    fields.update({1: 'x', 2: 'x', 3: 'x'})
                with self.subTest(name):
                    w = self.open()
                    w.say(name, fields)
                    self.broken(w, errno.EPROTO)

    def test_follows_means_nothing_without_a_ring(self):
        self.open().ask('sync', {15: 1 << 40})

    def test_serials_are_free(self):
        w = self.open()
        for serial in (5, 5, 0, 0xffffffff):
            w.say('sync', {0: serial})
            self.assertEqual(w.answer(serial), ('done', {0: serial}))

    def test_an_object_has_no_name_before_its_answer(self):
        w = self.open()
        w.send(message('device-open', {0: 1, 1: 1, 2: 'memory:M'}) +
               message('buffer-new', {0: 2, 1: 1, 2: 1, 3: 4096, 4: 0}))
        self.broken(w, errno.ENOENT)

    def test_a_request_that_failed_left_its_number_free(self):
        w = self.open()
        self.failed(w, 'device-open', {1: 1, 2: 'nothing:0'}, errno.ENOENT)
        w.ask('device-open', {1: 1, 2: 'memory:M'})

    def test_numbers_are_free_once_they_are_dropped(self):
        w = self.usual()
        for _ in range(3):
            w.say('run', {1: 1, 2: [1]})
            w.say('buffer-drop', {1: 1})
            w.say('work-drop', {1: 1})
            w.say('device-close', {1: 1})
            w.ask('sync', {})
            w.ask('device-open', {1: 1, 2: 'memory:M'})
            w.ask('buffer-new', {1: 1, 2: 1, 3: 4096, 4: 0})
            w.ask('work-new', {1: 1, 2: 1, 3: [{1: 2}], 4: [FILL]})

    def test_values_count_the_runs_of_a_device(self):
        w = self.usual()
        w.ask('work-new', {1: 2, 2: 1, 3: [{1: 3}], 4: [FILL]})
        for i in range(10):
            w.say('run', {1: 1 + i % 2, 2: [1]})
        reached = 0
        while reached < 10:
            fields = w.event('reached')
            self.assertEqual(fields[1], 1)
            self.assertGreater(fields[2], reached, 'values are told in their order')
            reached = fields[2]
        self.assertEqual(reached, 10)
        w.ask('notify', {1: 1, 2: 10})
        self.assertEqual(w.event('reached'), {1: 1, 2: 10}, 'a notify tells its value, also at once')


class Requests(Case):
    def test_each_has_the_answer_that_the_page_says(self):
        w, asked = self.usual(), set()

        def ask(name, fields, fds=()):
            asked.add(name)
            answer = w.ask(name, fields, fds)
            for fd in fds:
                os.close(fd)
            return answer

        ask('sync', {})
        adapter = ask('adapter-list', {1: 0})
        self.assertEqual(adapter[6], 0)
        ask('device-open', {1: 2, 2: 'memory:M'})
        host = ask('device-open', {1: 3, 2: 'host'})
        self.assertTrue(host[4] & 16, 'its launches run in the client')
        ask('buffer-new', {1: 2, 2: 1, 3: 100, 4: 0})
        ask('buffer-adopt', {1: 3, 2: 1, 3: 10, 4: 4086, 5: 0}, [sealed(4096)])
        ask('buffer-borrow', {1: 4, 2: 2, 3: 1})
        ask('buffer-export', {1: 2})
        ask('buffer-import', {1: 5, 2: 1, 3: 0}, [os.dup(w.fds[-1])])
        ask('buffer-wait', {1: 1, 2: 3, 3: time.monotonic_ns()})
        ask('work-new', {1: 2, 2: 1, 3: [{1: 2}], 4: [FILL], 5: 'its name'})
        ask('notify', {1: 1, 2: 0})
        ask('notify-eventfd', {1: 1, 2: 0, 3: 0}, [os.eventfd(0)])
        ask('trace-start', {1: 0}, [sealed(4096 + 256 * 128)])
        ask('trace-stop', {})
        asked.add('hello')
        # No device that a test can count on loads images.
        due = {name for name, (_, group, _) in MESSAGES.items() if group == 'request'}
        self.assertEqual(due - asked, {'image-load', 'image-entry'})
        self.failed(w, 'image-load', {1: 1, 2: 1, 3: 4096, 4: 0}, errno.EOPNOTSUPP,
                    [sealed(4096, SEALS | F_SEAL_WRITE)])

    def test_what_fails_and_changes_nothing(self):
        w = self.usual()
        self.failed(w, 'adapter-list', {1: 65535}, errno.ENOENT)
        self.failed(w, 'device-open', {1: 2, 2: 'memory:M,slow'}, errno.EINVAL)
        self.failed(w, 'buffer-new', {1: 9, 2: 1, 3: (1 << 63) - 1, 4: 0}, errno.ENOMEM)
        self.failed(w, 'buffer-adopt', {1: 9, 2: 1, 3: 0, 4: 4096, 5: 0}, errno.EPERM, [sealed(4096, 0)])
        self.failed(w, 'buffer-adopt', {1: 9, 2: 1, 3: 0, 4: 4096, 5: 0}, errno.EBADF, [os.eventfd(0)])
        self.failed(w, 'buffer-adopt', {1: 9, 2: 1, 3: 1, 4: 4096, 5: 0}, errno.ERANGE, [sealed(4096)])
        self.failed(w, 'buffer-import', {1: 9, 2: 1, 3: 0}, errno.ESTALE, [sealed(4096)])
        self.failed(w, 'work-new', {1: 9, 2: 1, 3: [{1: 1}], 4: [FILL]}, errno.EACCES)
        self.failed(w, 'work-new', {1: 9, 2: 1, 3: [{1: 2}], 4: [{**FILL, 1: 3}]}, errno.EOPNOTSUPP)
        self.failed(w, 'work-new', {1: 9, 2: 1, 3: [{1: 2}], 4: [{**FILL, 3: 1}]}, errno.EINVAL)
        self.failed(w, 'work-new', {1: 9, 2: 1, 3: [{1: 2, 2: 1}], 4: [{**FILL, 6: 8192}]}, errno.ERANGE)
        self.failed(w, 'notify-eventfd', {1: 1, 2: 0, 3: 0}, errno.EBADF, [sealed(4096)])
        self.failed(w, 'trace-start', {1: 0}, errno.EPERM, [sealed(4096 + 256 * 128, 0)])
        self.failed(w, 'trace-start', {1: 0}, errno.EINVAL, [sealed(4096 + 300 * 128)])
        ring = sealed(4096 + 256 * 128)
        w.ask('trace-start', {1: 0}, [ring])
        self.failed(w, 'trace-start', {1: 0}, errno.EBUSY, [ring])
        disk = w.ask('device-open', {1: 2, 2: 'disk'})
        self.assertTrue(disk[4] & 8)
        self.failed(w, 'buffer-new', {1: 9, 2: 2, 3: 1, 4: 0}, errno.EOPNOTSUPP)

    def test_numbers_that_name_nothing_or_something_else(self):
        now = time.monotonic_ns()
        for error, name, fields in (
                (errno.ENOENT, 'buffer-new', {1: 9, 2: 2, 3: 1, 4: 0}),
                (errno.ENOENT, 'buffer-wait', {1: 9, 2: 1, 3: now}),
                (errno.ENOENT, 'buffer-export', {1: 9}),
                (errno.ENOENT, 'buffer-borrow', {1: 9, 2: 1, 3: 8}),
                (errno.ENOENT, 'work-new', {1: 9, 2: 1, 3: [{1: 1, 2: 9}], 4: []}),
                (errno.ENOENT, 'image-entry', {1: 1, 2: 'f'}),
                (errno.ENOENT, 'notify', {1: 2, 2: 0}),
                (errno.EEXIST, 'device-open', {1: 1, 2: 'memory:M'}),
                (errno.EEXIST, 'buffer-new', {1: 1, 2: 1, 3: 1, 4: 0}),
                (errno.EEXIST, 'work-new', {1: 1, 2: 1, 3: [], 4: []}),
                (errno.EINVAL, 'device-open', {1: 0, 2: 'memory:M'}),
                (errno.EINVAL, 'buffer-new', {1: 0, 2: 1, 3: 1, 4: 0}),
                (errno.EINVAL, 'work-new', {1: 0, 2: 1, 3: [], 4: []}),
                (errno.EINVAL, 'notify', {1: 1, 2: 1}),
                (errno.EINVAL, 'buffer-wait', {1: 1, 2: 0, 3: now})):
            with self.subTest(name, fields=fields):
                w = self.usual()
                w.say(name, {0: 9, **fields})
                self.broken(w, error)

    def test_one_way_messages_that_cannot_be(self):
        for error, name, fields in (
                (errno.ENOENT, 'run', {1: 9, 2: []}),
                (errno.ENOENT, 'run', {1: 1, 2: [9]}),
                (errno.EINVAL, 'run', {1: 1, 2: []}),
                (errno.EINVAL, 'run', {1: 1, 2: [1], 3: [[1, 1]]}),
                (errno.ENOENT, 'run', {1: 1, 2: [1], 3: [[2, 0]]}),
                (errno.ENOENT, 'buffer-drop', {1: 9}),
                (errno.ENOENT, 'work-drop', {1: 9}),
                (errno.ENOENT, 'image-drop', {1: 9}),
                (errno.ENOENT, 'device-close', {1: 9}),
                (errno.EEXIST, 'buffer-view', {1: 1, 2: 1, 3: 0, 4: 1}),
                (errno.ENOENT, 'buffer-view', {1: 2, 2: 9, 3: 0, 4: 1}),
                (errno.ERANGE, 'buffer-view', {1: 2, 2: 1, 3: 1, 4: 4096}),
                (errno.EINVAL, 'host-done', {1: 1, 2: 1})):
            with self.subTest(name, fields=fields):
                w = self.usual()
                w.say(name, fields)
                self.broken(w, error)

    def test_works_of_a_device_that_was_closed(self):
        w = self.usual()
        w.say('device-close', {1: 1})
        w.say('run', {1: 1, 2: [1]})
        self.broken(w, errno.ENOENT)

    def test_buffers_that_do_not_fit_their_work(self):
        w = self.usual()
        w.ask('work-new', {1: 2, 2: 1, 3: [{1: 2}], 4: [{**FILL, 6: 8192}]})
        w.say('run', {1: 2, 2: [1]})
        self.broken(w, errno.ERANGE)
        w = self.usual()
        fd = sealed(4096, SEALS | F_SEAL_WRITE)
        self.assertEqual(w.ask('buffer-adopt', {1: 2, 2: 1, 3: 0, 4: 4096, 5: 0}, [fd])[4], 1, 'only read')
        os.close(fd)
        w.say('run', {1: 1, 2: [2]})
        self.broken(w, errno.EACCES)


class Descriptors(Case):
    def test_those_that_are_named_and_not_there_or_there_and_not_named(self):
        fd = sealed(4096)
        adopt = {0: 1, 1: 2, 2: 1, 3: 0, 4: 4096, 5: 0}
        for fields, fds in ((adopt, []), ({**adopt, 5: 1}, [fd]), (adopt, [fd, fd])):
            w = self.usual()
            w.say('buffer-adopt', fields, fds)
            self.broken(w, errno.EBADMSG)
        w = self.usual()
        w.send(message('buffer-adopt', adopt) + message('buffer-adopt', {**adopt, 0: 2, 1: 3}), [fd])
        self.broken(w, errno.EBADMSG)
        w = self.usual()
        w.say('sync', {0: 1}, [fd] * 5)
        self.broken(w, errno.EBADMSG)
        w = self.usual()
        w.send(message('buffer-adopt', {**adopt, 5: 1}) + message('buffer-adopt', {**adopt, 0: 2, 1: 3}), [fd, fd])
        self.assertEqual({w.answer(1)[0], w.answer(2)[0]}, {'buffer-done'}, 'each message its own')
        os.close(fd)


class Memory(Case):
    def test_the_descriptor_maps_all_of_it_and_the_buffer_starts_at_offset(self):
        w = self.usual()
        done = w.ask('buffer-new', {1: 2, 2: 1, 3: 5, 4: 0})
        self.assertEqual((done[1], done[4], done[5]), (5, 3, 0))
        self.assertEqual(done[3] % 4096, 0, 'whole pages')
        self.assertEqual(os.fstat(w.fds[done[6] - 1]).st_size, done[3])
        with mmap.mmap(w.fds[-1], done[3]) as memory:
            self.assertEqual(memory[:], bytes(done[3]), 'zeros at first')
            w.ask('work-new', {1: 2, 2: 1, 3: [{1: 2}], 4: [{**FILL, 6: 4}]})
            w.say('run', {1: 2, 2: [2]})
            w.ask('buffer-wait', {1: 2, 2: 1, 3: time.monotonic_ns()})
            self.assertEqual(memory[done[2]:done[2] + 5], b'AAAA\0')

    def test_a_buffer_of_no_bytes_has_no_descriptor(self):
        w = self.usual()
        done = w.ask('buffer-new', {1: 2, 2: 1, 3: 0, 4: 0})
        self.assertNotIn(6, done)
        self.assertEqual(done[3], 0)

    def test_memory_that_may_be_shared_says_so(self):
        w, other = self.usual(), self.usual()
        exported = w.ask('buffer-export', {1: 1})
        self.assertEqual(exported[5] & 1, 1)
        imported = other.ask('buffer-import', {1: 2, 2: 1, 3: 0}, [w.fds[-1]])
        self.assertEqual(imported[5] & 1, 1)
        self.assertNotIn(6, imported)
        w.say('run', {1: 1, 2: [1], 4: time.monotonic_ns()})
        other.ask('buffer-wait', {1: 2, 2: 1, 3: time.monotonic_ns()})
        with mmap.mmap(w.fds[-1], imported[3], prot=mmap.PROT_READ) as memory:
            self.assertEqual(memory[:4096], b'A' * 4096, 'the wait followed the other connection\'s run')

    def test_a_fill_without_a_length(self):
        w = self.usual()
        done = w.ask('buffer-new', {1: 2, 2: 1, 3: 6, 4: 0})
        with mmap.mmap(w.fds[-1], done[3]) as memory:
            w.say('run', {1: 1, 2: [2]})
            w.ask('buffer-wait', {1: 2, 2: 1, 3: time.monotonic_ns()})
            self.assertEqual(memory[:8], b'AAAAAA\0\0')

    def test_copies_are_as_long_as_both(self):
        w = self.usual()
        w.ask('buffer-new', {1: 2, 2: 1, 3: 4095, 4: 0})
        w.ask('work-new', {1: 2, 2: 1, 3: [{1: 2}, {1: 1}], 4: [{1: 1, 2: 0, 4: [0, 0], 5: [1, 1]}]})
        w.say('run', {1: 2, 2: [2, 1]})
        w.ask('buffer-wait', {1: 2, 2: 1, 3: time.monotonic_ns()})
        w.say('run', {1: 2, 2: [1, 2]})
        self.broken(w, errno.ERANGE)

    def test_memory_comes_back_with_this_clients_own_bytes_at_most(self):
        w, other = self.usual(), self.usual()
        w.say('run', {1: 1, 2: [1]})
        w.say('buffer-drop', {1: 1})
        for one, may_be in ((w, {b'\0' * 4096, b'A' * 4096}), (other, {b'\0' * 4096})):
            one.ask('buffer-new', {1: 2, 2: 1, 3: 4096, 4: 0})
            with mmap.mmap(one.fds[-1], 4096) as memory:
                self.assertIn(memory[:], may_be)

    def test_what_was_sent_before_the_end_is_done(self):
        w, other = self.usual(), self.usual()
        w.ask('buffer-export', {1: 1})
        other.ask('buffer-import', {1: 2, 2: 1, 3: 0}, [w.fds[-1]])
        w.say('run', {1: 1, 2: [1], 4: time.monotonic_ns()})
        w.say('sync', {0: 1})
        w.socket.close()
        other.ask('buffer-wait', {1: 2, 2: 1, 3: time.monotonic_ns()})
        with mmap.mmap(w.fds[-1], 4096, prot=mmap.PROT_READ) as memory:
            self.assertEqual(memory[:], b'A' * 4096)

    def test_an_exported_buffer_is_kept_until_it_is_imported(self):
        w, other = self.usual(), self.usual()
        w.ask('buffer-export', {1: 1})
        w.say('buffer-drop', {1: 1})
        w.ask('sync', {})
        self.failed(other, 'buffer-import', {1: 2, 2: 1, 3: 0}, errno.ESTALE, [os.dup(w.fds[-1])])

    def test_a_view_is_the_same_memory(self):
        w = self.usual()
        w.say('buffer-view', {1: 2, 2: 1, 3: 8, 4: 4})
        w.say('run', {1: 1, 2: [2]})
        w.ask('buffer-wait', {1: 1, 2: 1, 3: time.monotonic_ns()})
        with mmap.mmap(w.fds[0], 4096, prot=mmap.PROT_READ) as memory:
            self.assertEqual(memory[:16], b'\0' * 8 + b'AAAA' + b'\0' * 4)


class Failures(Case):
    def test_a_run_that_fails_is_told_before_its_value(self):
        w = self.usual()
        w.ask('device-open', {1: 2, 2: 'disk'})
        with tempfile.TemporaryFile() as f:
            f.write(b'short')
            f.flush()
            w.ask('buffer-adopt', {1: 2, 2: 2, 3: 0, 4: 4096, 5: 0}, [f.fileno()])
        w.ask('work-new', {1: 2, 2: 2, 3: [{1: 2}, {1: 1}], 4: [{1: 1, 2: 0, 4: [0, 0], 5: [1, 0]}]})
        w.say('run', {1: 2, 2: [1, 2]})
        self.assertEqual(w.hear()[0], 'run-failed')
        self.assertEqual(w.hear(), ('reached', {1: 2, 2: 1}))
        w.ask('buffer-wait', {1: 1, 2: 3, 3: time.monotonic_ns()})

    def test_a_host_device_is_lost_when_it_is_closed_before_its_work_is_done(self):
        w = self.usual()
        w.ask('device-open', {1: 2, 2: 'host'})
        w.ask('work-new', {1: 2, 2: 2, 3: [{1: 2}], 4: [{1: 3, 2: 0, 9: 1}]})
        w.say('run', {1: 2, 2: [1]})
        self.assertEqual(w.event('ready'), {1: 2, 2: 1})
        w.say('host-done', {1: 2, 2: 1})
        self.assertEqual(w.event('reached'), {1: 2, 2: 1})
        w.say('run', {1: 2, 2: [1]})
        self.assertEqual(w.event('ready'), {1: 2, 2: 2})
        w.say('run', {1: 1, 2: [1]})  # on the other device: it follows
        w.say('device-close', {1: 2})
        failed = w.event('run-failed')
        self.assertEqual((failed[1], failed[2], failed[3], failed[5]), (1, 1, errno.ENODEV, 1))
        self.failed(w, 'buffer-wait', {1: 1, 2: 1, 3: time.monotonic_ns()}, errno.ENODEV)

    def test_a_value_done_that_was_not_ready(self):
        w = self.usual()
        w.ask('device-open', {1: 2, 2: 'host'})
        w.say('host-done', {1: 2, 2: 1})
        self.broken(w, errno.EINVAL)

    def test_an_eventfd_is_signalled_once_the_value_is_reached(self):
        w = self.usual()
        fd = os.eventfd(0)
        w.say('run', {1: 1, 2: [1]})
        w.ask('notify-eventfd', {1: 1, 2: 1, 3: 0}, [fd])
        self.assertTrue(select.select([fd], [], [], SECONDS)[0])
        self.assertEqual(os.eventfd_read(fd), 1)
        os.close(fd)


class Pages(Case):
    """Words and ring, with the offsets of the page's tables: another test holds those to the header."""

    def ring(self):
        w = self.usual(3)
        words, ring, self.doorbell = (w.fds[w.hello[k]] for k in (7, 8, 9))
        self.words = mmap.mmap(words, 4096, prot=mmap.PROT_READ)
        self.ring_page = mmap.mmap(ring, 4096 + 65536)
        with self.assertRaises(PermissionError, msg='the words are to be read only'):
            mmap.mmap(words, 4096)
        self.tail = 0
        return w

    def word(self, at, size=8):
        return int.from_bytes(self.words[at:at + size], sys.byteorder)

    def publish(self, *messages, skip=0):
        for m in messages:
            for i, byte in enumerate(m):
                self.ring_page[4096 + (self.tail + i) % 65536] = byte
            self.tail += len(m) + skip
        struct.pack_into('=Q', self.ring_page, 0, self.tail)
        os.eventfd_write(self.doorbell, 1)  # always: this language has no fence

    def until(self, at, value):
        deadline = time.monotonic() + SECONDS
        while self.word(at) < value:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def test_runs_go_through_the_ring_and_their_values_show_in_the_word(self):
        w = self.ring()
        self.assertEqual(self.words[128:192], bytes(64), 'zeros when the device opens')
        self.publish(*[message('run', {1: 1, 2: [1]})] * 1000)
        self.until(128, 1000)
        for _ in range(20):  # more than the ring holds: it wraps, in the middle of messages
            self.publish(*[message('run', {1: 1, 2: [1]})] * 1000)
            self.until(0, self.tail)
        self.until(128, 21000)
        self.assertEqual(self.word(0), self.tail)
        w.ask('sync', {15: self.tail})
        self.assertEqual([e for e in w.events if e[0] == 'reached'], [], 'words tell it, and no event')
        w.ask('notify', {1: 1, 2: 21000})
        self.assertEqual(w.event('reached'), {1: 1, 2: 21000})

    def test_a_request_follows_the_ring_as_far_as_it_says(self):
        w = self.ring()
        self.publish(message('buffer-view', {1: 2, 2: 1, 3: 0, 4: 8}))
        w.ask('buffer-wait', {1: 2, 2: 3, 3: time.monotonic_ns(), 15: self.tail})
        w.say('sync', {0: 1, 15: self.tail + 1})
        self.broken(w, errno.EPROTO)

    def test_failures_are_counted_before_the_value_is_passed(self):
        w = self.ring()
        w.ask('device-open', {1: 2, 2: 'host'})
        w.ask('work-new', {1: 2, 2: 2, 3: [{1: 2}], 4: [{1: 3, 2: 0, 9: 1}]})
        self.publish(message('run', {1: 2, 2: [1]}))
        self.until(192 + 8, 1)
        self.publish(message('host-done', {1: 2, 2: 1, 3: errno.EDOM, 4: 'it went wrong'}))
        self.until(192, 1)
        self.assertEqual(self.word(192 + 20, 4), 1)
        self.assertEqual(w.event('run-failed'), {1: 2, 2: 1, 3: errno.EDOM, 4: 'it went wrong', 5: 0})
        self.publish(message('run', {1: 2, 2: [1]}))
        self.until(192 + 8, 2)
        self.publish(message('device-close', {1: 2}))
        w.ask('sync', {15: self.tail})

    def test_each_way_has_its_messages(self):
        for name, fields in (('run', {1: 1, 2: [1]}), ('buffer-drop', {1: 1})):
            w = self.ring()
            w.say(name, fields)
            self.broken(w, errno.EPROTO)
        w = self.ring()
        self.publish(message('sync', {0: 1}))
        self.broken(w, errno.EPROTO)

    def test_a_ring_that_lies(self):
        w = self.ring()
        self.publish(message('run', {1: 1, 2: [1]}), skip=70000)
        self.broken(w, errno.EBADMSG)
        w = self.ring()
        self.publish(message('run', {1: 1, 2: [1]})[:-1])
        self.broken(w, errno.EBADMSG)

    def test_words_without_a_ring(self):
        w = self.usual(1)
        self.words = mmap.mmap(w.fds[w.hello[7]], 4096, prot=mmap.PROT_READ)
        for _ in range(10):
            w.say('run', {1: 1, 2: [1]})
        self.until(128, 10)


class Traces(Case):
    def test_a_run_is_recorded_with_its_name(self):
        w = self.usual()
        w.ask('work-new', {1: 2, 2: 1, 3: [{1: 2}], 4: [FILL], 5: 'a name'})
        fd = sealed(4096 + 256 * 128)
        w.ask('trace-start', {1: 0}, [fd])
        w.say('run', {1: 2, 2: [1]})
        w.ask('buffer-wait', {1: 1, 2: 1, 3: time.monotonic_ns()})
        w.ask('trace-stop', {})
        with mmap.mmap(fd, 4096 + 256 * 128) as ring:
            head, dropped = struct.unpack_from('=QQ', ring)
            self.assertEqual(dropped, 0)
            records = [ring[4096 + 128 * (p % 256):][:128] for p in range(head)]
        os.close(fd)
        kinds = {int.from_bytes(r[:4], sys.byteorder): r[8:] for r in records}
        self.assertEqual(kinds[1][24:88].rstrip(b'\0'), b'memory:M')
        self.assertEqual(int.from_bytes(kinds[1][12:16], sys.byteorder), 1)
        value, accepted, started, ended, copied, filled = struct.unpack_from('=6Q', kinds[2])
        self.assertEqual((value, copied, filled), (1, 0, 4096))
        self.assertLessEqual(accepted, started)
        self.assertLessEqual(started, ended)
        self.assertEqual(kinds[2][64:112].rstrip(b'\0'), b'a name')


class Ends(Case):
    def test_a_client_that_reads_nothing_is_ended_without_a_word(self):
        w, sent = self.open(), 0
        w.socket.settimeout(SECONDS)
        packet = message('sync', {0: 7}) * 1000
        with self.assertRaises(ConnectionError):
            while sent < 1 << 30:
                sent += w.socket.send(packet)
        heard = []
        with contextlib.suppress(ConnectionResetError):
            while (said := w.hear())[0]:
                heard.append(said)
        while (said := w.hear())[0]:
            heard.append(said)
        self.assertEqual({name for name, _ in heard}, {'done'})

    def test_more_waits_than_there_may_be(self):
        w = self.usual()
        w.ask('device-open', {1: 2, 2: 'host'})
        w.ask('work-new', {1: 2, 2: 2, 3: [], 4: []})
        w.say('run', {1: 2, 2: []})
        for _ in range(4096):
            w.ask('notify', {1: 2, 2: 1})
        self.failed(w, 'notify', {1: 2, 2: 1}, errno.EDQUOT)

    def test_a_rigd_of_the_programs_own(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rigd = subprocess.Popen([RIGD, '--private', str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        w = self.open(None)
        w.socket.close()
        w.socket = ours
        w.socket.settimeout(SECONDS)
        w.ask('hello', {1: 1, 2: 'test', 3: 0})
        w.ask('device-open', {1: 1, 2: 'memory:M'})
        w.socket.close()
        self.assertEqual(rigd.wait(SECONDS), 0)


class Limits(Case):
    """On a rigd of their own, with little."""

    def setUp(self):
        global PATH
        super().setUp()
        self.folder, self.usual_path = tempfile.TemporaryDirectory(), PATH
        options = [word for limit in ('ClientObjectsMax=3', 'ClientsMax=1', 'ClientRunsMax=4', 'ClientMemoryMax=1M')
                   for word in ('--set', limit)]
        self.pid, address = run.start_rigd(RIGD, self.folder.name, options)
        PATH = address[len('unix:'):]

    def tearDown(self):
        global PATH
        super().tearDown()
        PATH = self.usual_path
        self.assertIsNone(run.stop_rigd(self.pid))
        self.folder.cleanup()

    def test_objects_and_connections(self):
        w = self.usual()
        self.assertEqual((w.hello[4], w.hello[5], w.hello[6]), (3, 1 << 20, 4))
        w.ask('buffer-new', {1: 2, 2: 1, 3: 1, 4: 0})
        self.failed(w, 'buffer-new', {1: 3, 2: 1, 3: 1, 4: 0}, errno.EDQUOT)
        self.broken(self.open(None), errno.EUSERS)
        w.say('buffer-view', {1: 3, 2: 1, 3: 0, 4: 1})
        self.broken(w, errno.EDQUOT)

    def test_memory(self):
        self.failed(self.usual(), 'buffer-new', {1: 3, 2: 1, 3: 1 << 20, 4: 0}, errno.EDQUOT)

    def test_more_runs_than_may_be_wait_and_are_done(self):
        w = self.usual()
        for _ in range(1000):
            w.say('run', {1: 1, 2: [1]})
        w.ask('sync', {})
        w.ask('notify', {1: 1, 2: 1000})
        while w.event('reached')[2] < 1000:
            pass


if __name__ == '__main__':
    PID, ADDRESS = run.start_rigd(RIGD, FOLDER.name)
    PATH = ADDRESS[len('unix:'):]
    ended = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False).result
    wrong = run.stop_rigd(PID)
    FOLDER.cleanup()
    if wrong:
        print(wrong, file=sys.stderr)
    sys.exit(1 if wrong or not ended.wasSuccessful() else 0)
