# SPDX-License-Identifier: ISC
"""docs/examples/client.py: what it sends is what rig's own coders send, and it gets along with rigd.

Usage: check-client.py ROOT RIGD

Its coder is held to the golden vectors, to which the C coders are held as well, and each packet of a whole session
to an encoder that was written from RFC 8949 alone (tests/protocol/check-vectors.py). The session is with a real
rigd. What a real one says only on bad days is said by a socket that plays a script.
"""

import ast
import contextlib
import importlib.util
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
ROOT, RIGD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PROGRAM = os.path.join(ROOT, 'docs/examples/client.py')
sys.path[:0] = [os.path.join(ROOT, f) for f in ('docs/examples', 'tests/examples', 'protocol')]
import client  # noqa: E402
import describe  # noqa: E402
import run  # noqa: E402

LINES = 300
SECONDS = 30


def load(path):
    spec = importlib.util.spec_from_file_location('check_vectors', os.path.join(ROOT, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VECTORS = load('tests/protocol/check-vectors.py')


def plain(value):
    """A value of check-vectors.py, where maps are pairs in a tuple, as client.py has it."""
    if isinstance(value, tuple):
        return {key: plain(v) for key, v in value}
    return [plain(v) for v in value] if isinstance(value, list) else value


def pairs(value):
    """The other way, with the keys in ascending order."""
    if isinstance(value, dict):
        return tuple((key, pairs(value[key])) for key in sorted(value))
    return [pairs(v) for v in value] if isinstance(value, list) else value


class Source(unittest.TestCase):
    def test_it_is_short_and_needs_nothing_but_python(self):
        with open(PROGRAM, encoding='utf-8') as f:
            text = f.read()
        self.assertLess(len(text.splitlines()), LINES)
        names = set()
        for node in ast.walk(ast.parse(text, feature_version=(3, 11))):
            if isinstance(node, ast.Import):
                names |= {a.name.partition('.')[0] for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or '.').partition('.')[0])
        self.assertTrue(names)
        self.assertEqual(names - sys.stdlib_module_names, set())


class Coder(unittest.TestCase):
    def test_its_bytes_are_the_golden_vectors(self):
        vectors = list(VECTORS.vectors(os.path.join(ROOT, 'tests/protocol/vectors.txt')))
        self.assertGreater(len(vectors), 40)
        for name, notation, data in vectors:
            with self.subTest(name):
                value, data = plain(VECTORS.parse(notation)), bytes.fromhex(data)
                self.assertEqual(client.encode(value), data)
                self.assertEqual(client.decode(data, 0), (value, len(data)))

    def test_what_it_does_not_know_is_skipped(self):
        for data in ('20', '38ff', 'f4', 'f6', 'fb3ff0000000000000', 'f93c00', 'f0', 'f8ff', 'c100', 'c1820001'):
            data = bytes.fromhex(data)
            _, at = client.decode(b'\x00' + data + b'\x00', 1)
            self.assertEqual(at, 1 + len(data))

    def test_what_is_cut_short_or_indefinite_is_refused(self):
        for data in ('', '18', '1b00', '82', '8201', 'a1', 'a101', '9f01ff', 'bfff', '5f', 'ff', '1c'):
            data = bytes.fromhex(data)
            with self.assertRaises(client.Broken, msg=data.hex()):
                _, at = client.decode(data, 0)
                if at > len(data):  # as read() looks at it, once for each packet
                    raise client.Broken


def program(*arguments, **variables):
    return subprocess.run([sys.executable, PROGRAM, *arguments], env=dict(os.environ, **variables), text=True,
                          capture_output=True, timeout=SECONDS, check=False)


class Alone(unittest.TestCase):
    def test_without_rigd_it_says_so(self):
        for address, sentence in (('unix:/nowhere/rigd.sock', 'cannot connect to /nowhere/rigd.sock: No such file'),
                                  ('private', '"private" is no address of a socket')):
            said = program(address)
            self.assertEqual((said.returncode, said.stdout), (1, ''))
            self.assertIn(f'client.py: {sentence}', said.stderr)
            self.assertEqual(len(said.stderr.splitlines()), 1)


class Recording(socket.socket):
    sent, said = [], []  # said: by both sides, with the side's arrow

    def send(self, data, *rest):
        self.sent.append(data)
        self.said.append(('→', client.decode(data, 0)[0]))
        return super().send(data, *rest)

    def recvmsg(self, *how):
        received = super().recvmsg(*how)
        self.said.append(('←', client.decode(received[0], 0)[0]))
        return received


def as_on_the_page(said):
    """Without the listing of adapters and what was refused, and with serials as if those had not been."""
    serials, left = {}, []
    refused = {fields[0] for _, (kind, fields) in said if kind == client.FAILED}
    for arrow, (kind, fields) in said:
        if 32 <= kind < 96:
            if kind in (client.ADAPTER_LIST, 67) or fields[0] in refused:
                continue
            fields = {**fields, 0: serials.setdefault(fields[0], len(serials) + 1)}
        if kind == client.BUFFER_WAIT:
            fields[3] = 'a time'
        if kind in (66, 68):  # of this rigd and this machine
            fields = sorted(fields)
        left.append((arrow, kind, fields))
    return left


class Served(unittest.TestCase):
    """With a rigd of its own."""

    options = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pid, self.address = run.start_rigd(RIGD, self.folder.name, self.options)
        self.path = self.address[len('unix:'):]

    def stop(self):
        pid, self.pid = self.pid, None
        return run.stop_rigd(pid)

    def tearDown(self):
        wrong = self.stop() if self.pid else None
        self.folder.cleanup()
        self.assertIsNone(wrong)

    def client(self):
        c = client.Client(self.path)
        self.addCleanup(c.socket.close)
        return c


class Session(Served):
    def test_the_program_prints_what_it_should(self):
        for how in ({'RIG_ADDRESS': self.address}, {'RIG_ADDRESS': self.address + ',transport=ring'}):
            said = program(**how)
            self.assertEqual((said.returncode, said.stderr), (0, ''))
            lines = said.stdout.splitlines()
            self.assertRegex(lines[0], r'^connected to rigd [0-9.]+; it lets us hold 16384 objects$')
            adapters = [l.split(':')[0].strip() for l in lines[1:] if l.startswith('  ')]
            self.assertEqual({'memory', 'host', 'disk'} - set(adapters), set())
            self.assertEqual(lines[1 + len(adapters):],
                             ['rigd says: there is no adapter "nothing:0" (ENOENT)',
                              'value 1 is reached, and the target is hello', 'then it is HELLO'])
        self.assertEqual(program(self.address, RIG_ADDRESS='unix:/nowhere').returncode, 0)

    def record(self):
        usual, client.socket.socket = client.socket.socket, Recording
        Recording.sent.clear()
        Recording.said.clear()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                client.main(['client.py', self.address])
        finally:
            client.socket.socket = usual

    def test_a_session_goes_as_the_page_shows_it(self):
        self.record()
        with open(os.path.join(ROOT, 'docs/protocol.md'), encoding='utf-8') as f:
            lines = re.search(r'<!-- session -->\n```\n(.*?)```', f.read(), re.S).group(1).splitlines()
        shown = [(line[0], plain(VECTORS.parse(line[2:].partition('   ')[0]))) for line in lines]
        self.assertGreater(len(shown), 20)
        shown, said = as_on_the_page(shown), as_on_the_page(Recording.said)
        for arrow in '→←':
            # That a value is reached may be told before or after the answer that waits for it.
            one, other = ([(k, f) for a, k, f in side if a == arrow] for side in (shown, said))
            self.assertEqual([m for m in one if m[0] < 96], [m for m in other if m[0] < 96])
            self.assertEqual([m for m in one if m[0] >= 96], [m for m in other if m[0] >= 96])

    def test_each_packet_of_a_session_is_in_rigs_own_form_and_by_the_schema(self):
        self.record()
        shapes = {m.number: m for m in describe.Page(ROOT).schema.messages}
        seen = set()
        for packet in Recording.sent:
            (kind, fields), at = client.decode(packet, 0)
            self.assertEqual(at, len(packet))
            self.assertEqual(packet, VECTORS.encode(pairs([kind, fields])))
            message = shapes[kind]
            self.assertIn(message.group, ('ordered', 'request'))
            self.assertEqual(set(fields) - {f.key for f in message.shape.fields}, set(), message.name)
            self.assertEqual({f.key for f in message.shape.fields if f.required} - set(fields), set(), message.name)
            seen.add(message.name)
        self.assertEqual(seen, {'hello', 'adapter-list', 'device-open', 'buffer-new', 'work-new', 'run', 'buffer-wait',
                                'buffer-drop', 'work-drop', 'device-close', 'sync'})

    def test_numbers_are_used_again(self):
        c = self.client()
        for _ in range(100):  # there are 62 numbers of devices
            device = c.open('memory:M')
            buffers = [c.buffer(device, 100) for _ in range(5)]
            copy = c.copying(device)
            buffers[1].bytes[:] = b'x' * 100
            for i in (0, 2, 3, 4):
                value = c.run(copy, [buffers[i], buffers[1]])
            c.wait(device, value)
            self.assertEqual({bytes(b.bytes) for b in buffers}, {b'x' * 100})
            self.assertEqual(sorted(b.number for b in buffers), [1, 2, 3, 4, 5])
            self.assertEqual((device.number, copy[0]), (1, 1))
            for b in buffers[::-1]:
                c.drop(b)
            c.drop_work(copy)
            c.close_device(device)

    def test_many_runs_in_flight(self):
        c = self.client()
        device = c.open('memory:M,async')
        a, b = c.buffer(device, 4096), c.buffer(device, 4096)
        copy = c.copying(device)
        a.bytes[:] = os.urandom(4096)
        for _ in range(20000):  # more than may be in flight at once
            value = c.run(copy, [b, a])
        c.wait(device, value)
        self.assertEqual(value, 20000)
        self.assertEqual(bytes(b.bytes), bytes(a.bytes))

    def test_what_was_wrong_reaches_the_program(self):
        c = self.client()
        device = c.open('memory:M')
        value = c.run(c.copying(device), [c.buffer(device, 5), c.buffer(device, 6)])
        with self.assertRaisesRegex(client.Broken, 'copies all of 6 bytes to 5'):
            c.wait(device, value)
        c.socket.close()
        c = self.client()
        c.send(client.SYNC, {})
        with self.assertRaisesRegex(client.Broken, 'sync: serial'):
            while True:  # the socket may still take some
                c.send(client.SYNC, {0: 1})

    def test_a_rigd_that_ends(self):
        c = self.client()
        self.assertIsNone(self.stop())
        with self.assertRaisesRegex(client.Broken, 'rigd is gone'):
            c.open('memory:M')


class FullHouse(Served):
    options = ('--set', 'ClientsMax=1')

    def test_one_connection_too_many(self):
        self.client()
        for _ in range(20):  # its hello may be sent before rigd closes, or not
            with self.assertRaisesRegex(client.Broken, 'ClientsMax is 1'):
                client.Client(self.path)


HELLO_DONE = [66, {0: 1, 1: 1, 2: 'a script', 3: 0, 4: 10, 5: 1 << 20, 6: 5}]


class Script:
    """A socket that answers the hello and then says packets, each a list of messages or bytes, and closes."""

    def __init__(self, *packets):
        self.packets, self.folder = packets, tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, 'rigd.sock')
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(self.path)
        self.listening.listen(1)
        self.heard = threading.Event()
        self.thread = threading.Thread(target=self.play)
        self.thread.start()

    def play(self):
        connection, _ = self.listening.accept()
        connection.settimeout(SECONDS)
        connection.recv(65536)
        for packet in ([HELLO_DONE], *self.packets):
            connection.send(packet if isinstance(packet, bytes) else b''.join(map(client.encode, packet)))
        self.heard.wait(SECONDS)
        connection.close()

    def __enter__(self):
        self.client = client.Client(self.path)
        return self.client

    def __exit__(self, *what):
        self.heard.set()
        self.thread.join()
        self.client.socket.close()
        self.listening.close()
        self.folder.cleanup()


DEVICE_DONE = [68, {0: 2, 1: '', 2: 0, 3: [3], 4: 1, 5: 0, 6: 0}]


class Events(unittest.TestCase):
    def test_limits_change(self):
        with Script([[101, {1: 7, 2: 8, 3: 9}], DEVICE_DONE]) as c:
            c.open('memory:M')
            self.assertEqual(c.limits, {'objects': 7, 'memory': 8, 'runs': 9})

    def test_a_run_that_failed_is_raised_by_its_wait_alone(self):
        with Script([DEVICE_DONE], [[99, {1: 1, 2: 2, 3: 5, 4: 'it went wrong', 5: 0}]], [[97, {1: 1, 2: 3}]]) as c:
            device = c.open('memory:M')
            c.wait(device, 1)
            with self.assertRaises(client.Failed) as e:
                c.wait(device, 2)
            self.assertEqual((e.exception.errno, e.exception.strerror), (5, 'it went wrong'))
            c.wait(device, 3)

    def test_a_device_that_is_lost(self):
        with Script([DEVICE_DONE], [[97, {1: 1, 2: 3}], [100, {1: 1, 2: 19, 3: 'it hangs'}]]) as c:
            device = c.open('memory:M')
            c.wait(device, 3)
            with self.assertRaisesRegex(client.Failed, 'it hangs'):
                c.wait(device, 4)

    def test_messages_and_keys_of_a_later_rigd_are_ignored(self):
        later = b'\x82\x18\x7f\xa1\x01\x82\x20\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00'
        with Script(later, [[98, {1: 1, 2: 1}], [68, {**DEVICE_DONE[1], 20: {1: [b'x', 'y']}}]]) as c:
            self.assertEqual(c.open('memory:M').number, 1)

    def test_the_sentence_of_a_connection_that_is_ended(self):
        with Script([[96, {1: 71, 2: 'it was wrong'}]]) as c:
            with self.assertRaisesRegex(client.Broken, 'it was wrong'):
                c.open('memory:M')

    def test_packets_that_end_inside_a_message(self):
        for cut in range(1, len(client.encode(DEVICE_DONE))):
            with Script(client.encode(DEVICE_DONE)[:cut]) as c:
                with self.assertRaisesRegex(client.Broken, 'ends inside'):
                    c.open('memory:M')

    def test_an_event_of_a_device_before_its_answer(self):
        with Script([[97, {1: 1, 2: 5}]], [DEVICE_DONE]) as c:
            self.assertEqual(c.open('memory:M').reached, 5)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
