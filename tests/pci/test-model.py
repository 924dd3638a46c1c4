# SPDX-License-Identifier: ISC
"""The small device as a program, spoken to by a client of its own.

Usage: test-model.py DEVICE

The client here shares nothing with daemon/pci/: its messages are written from QEMU's docs/interop/vfio-user.rst, and
configuration space is read as PCI Local Bus 3.0 and PCI Express Base 5.0 have it. What it shows is that the model
keeps to those, whatever our own client thinks of it.
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, _, GET_IRQ_INFO, SET_IRQS, READ, WRITE = range(1, 11)
DMA_READ, DMA_WRITE, RESET = 11, 12, 13
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
CONFIG = 7
DEVICE = None
LIMIT_SECONDS = 60


class Client:
    def __init__(self, path, twin=False):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_SECONDS)
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        text = b'{"capabilities": {"max_msg_fds": 8}}\0'
        answer, _ = self.call(VERSION, struct.pack('=HH', 0, 1) + text)
        assert struct.unpack_from('=HH', answer) == (0, 1) and answer.endswith(b'\0'), answer

    def send(self, command, payload=b'', flags=0, number=7, fds=()):
        header = struct.pack('=HHIII', number, command, 16 + len(payload), flags, 0)
        socket.send_fds(self.socket, [header + payload], list(fds))

    def receive_exactly(self, n):
        data, fds = b'', []
        while len(data) < n:
            part, more, _, _ = socket.recv_fds(self.socket, n - len(data), 8)
            if not part:
                raise EOFError
            data += part
            fds += more
        return data, fds

    def receive(self):
        header, fds = self.receive_exactly(16)
        number, command, size, flags, error = struct.unpack('=HHIII', header)
        payload, more = self.receive_exactly(size - 16)
        return number, command, flags, error, payload, fds + more

    def call(self, command, payload=b'', fds=()):
        """The payload of the answer and its descriptors; an error is raised."""
        self.send(command, payload, fds=fds)
        number, answered, flags, error, payload, fds = self.receive()
        assert (number, answered, flags & 0xf) == (7, command, REPLY), (number, answered, flags)
        if flags & ERROR:
            raise OSError(error, os.strerror(error))
        return payload, fds

    def read(self, region, at, n):
        answer, _ = self.call(READ, struct.pack('=QII', at, region, n))
        assert answer[:16] == struct.pack('=QII', at, region, n)
        return int.from_bytes(answer[16:], 'little')

    def write(self, region, at, n, value):
        answer, _ = self.call(WRITE, struct.pack('=QII', at, region, n) + value.to_bytes(n, 'little'))
        assert answer == struct.pack('=QII', at, region, n)


class Model(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 'model')
        self.trace = os.path.join(self.directory.name, 'trace')
        self.process = None

    def tearDown(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.directory.cleanup()

    def start(self, *options):
        self.process = subprocess.Popen([DEVICE, '--once', '--trace', self.trace, *options, self.path],
                                        stderr=subprocess.DEVNULL)
        return Client(self.path)

    def end(self, client):
        """The exit status, and the lines of the trace without their times."""
        client.socket.close()
        status = self.process.wait(LIMIT_SECONDS)
        self.process = None
        with open(self.trace, encoding='ascii') as f:
            return status, [line.split(' ', 1)[1].rstrip('\n') for line in f]

    def test_a_client_that_keeps_to_its_tables_finds_them_and_leaves_no_fault(self):
        c = self.start()
        info, _ = c.call(GET_INFO, struct.pack('=IIII', 16, 0, 0, 0))
        self.assertEqual(struct.unpack('=IIII', info), (16, 3, 9, 5))  # reset, PCI
        sizes = []
        for i in range(9):
            region, fds = c.call(GET_REGION_INFO, struct.pack('=IIIIQQ', 4096, 0, i, 0, 0, 0))
            argsz, flags, index, _, size, _ = struct.unpack_from('=IIIIQQ', region)
            self.assertEqual((argsz, index), (len(region), i))
            self.assertEqual(bool(flags & 4), len(fds) == 1)
            for fd in fds:
                self.assertGreaterEqual(os.fstat(fd).st_size, size)
                os.close(fd)
            sizes.append(size)
        self.assertEqual(sizes, [1 << 20, 0, 16384, 0, 16384, 0, 0, 4096, 0])
        c.write(CONFIG, 4, 2, 0x0002)
        self.assertEqual(c.read(2, 0, 4), 0x52494731)
        c.write(2, 4, 4, 0xfeedface)
        self.assertEqual(c.read(2, 4, 4), 0xfeedface)
        status, trace = self.end(c)
        self.assertEqual(status, 0)
        self.assertIn('read bar2+0x0 ID 4 = 0x52494731', trace)
        self.assertIn('write bar2+0x4 SCRATCH 4 = 0xfeedface', trace)

    def test_bars_tell_their_size_to_one_who_writes_ones(self):
        c = self.start()
        for bar, low in (0, 0xfff0000c), (1, 0xffffffff), (2, 0xffffc000), (3, 0), (4, 0xffffc000), (5, 0):
            c.write(CONFIG, 0x10 + 4 * bar, 4, 0xffffffff)
            self.assertEqual(c.read(CONFIG, 0x10 + 4 * bar, 4), low)
        self.assertEqual(self.end(c)[0], 0)

    def test_capabilities_are_a_list(self):
        c, found, at = self.start(), [], None
        self.assertTrue(c.read(CONFIG, 6, 2) & 0x10)
        at = c.read(CONFIG, 0x34, 1)
        while at and len(found) < 48:
            found.append(c.read(CONFIG, at, 1))
            if found[-1] == 0x10:
                self.assertTrue(c.read(CONFIG, at + 4, 4) & 1 << 28)  # FLR
            if found[-1] == 0x11:
                self.assertEqual(c.read(CONFIG, at + 4, 4), 0x2000 | 2)  # the table, in BAR 2
            at = c.read(CONFIG, at + 1, 1)
        self.assertEqual(found, [0x01, 0x10, 0x05, 0x11])
        self.assertEqual(c.read(CONFIG, 0x100, 4), 0x00010015)  # resizable BAR, the last
        self.assertEqual(c.read(CONFIG, 0x104, 4), 7 << 4)      # 1, 2 or 4 MiB
        self.assertEqual(self.end(c)[0], 0)

    def test_a_bar_is_resized_by_its_control(self):
        c = self.start()
        c.write(CONFIG, 0x108, 4, 2 << 8)
        c.write(CONFIG, 0x10, 4, 0xffffffff)
        self.assertEqual(c.read(CONFIG, 0x10, 4), 0xffc0000c)
        region, fds = c.call(GET_REGION_INFO, struct.pack('=IIIIQQ', 4096, 0, 0, 0, 0, 0))
        self.assertEqual(struct.unpack_from('=Q', region, 16), (4 << 20,))
        os.close(fds[0])
        c.write(CONFIG, 0x108, 4, 5 << 8)  # which it does not have
        self.assertEqual(self.end(c)[0], 3)

    def test_what_a_driver_must_not_do_is_in_the_trace_and_in_the_exit_status(self):
        c = self.start()
        self.assertEqual(c.read(2, 0, 4), 0xffffffff)  # memory is not decoded yet
        c.write(CONFIG, 4, 2, 0x0002)
        self.assertEqual(c.read(2, 0x100, 4), 0xffffffff)
        self.assertEqual(c.read(2, 0, 2), 0xffff)
        status, trace = self.end(c)
        self.assertEqual(status, 3)
        self.assertEqual(len([line for line in trace if line.startswith('fault ')]), 3)

    def test_dma_by_message_asks_between_answers(self):
        c = self.start()
        c.write(CONFIG, 4, 2, 0x0006)
        c.call(DMA_MAP, struct.pack('=IIQQQ', 32, 3, 0, 0x10000, 4096))  # no descriptor: by message
        c.write(2, 0x18, 8, 0x10010)
        c.write(2, 0x20, 4, 8)
        c.write(2, 0x24, 4, 0x11223344)
        c.write(2, 0x10, 4, 1)  # fill
        number, command, flags, _, payload, _ = c.receive()
        self.assertEqual((command, flags), (DMA_WRITE, 0))
        self.assertEqual(payload, struct.pack('=QQII', 0x10010, 8, 0x11223344, 0x11223344))
        c.send(DMA_WRITE, payload[:16], REPLY, number)
        self.assertEqual(c.read(2, 0x14, 4), 0)  # done
        self.assertEqual(self.end(c)[0], 0)

    def test_what_it_does_not_have_is_refused(self):
        c = self.start()
        for command, payload in ((6, bytes(16)), (15, bytes(8)), (99, b''), (READ, bytes(3)),
                                 (READ, struct.pack('=QII', 4090, CONFIG, 8)), (READ, struct.pack('=QII', 0, 1, 4)),
                                 (WRITE, struct.pack('=QII', 0, CONFIG, 4)), (DMA_MAP, bytes(32)),
                                 (GET_REGION_INFO, struct.pack('=IIIIQQ', 32, 0, 9, 0, 0, 0)),
                                 (SET_IRQS, struct.pack('=IIIII', 20, 0x24, 2, 4, 1))):
            with self.assertRaises(OSError):
                c.call(command, payload)
        self.assertEqual(self.end(c)[0], 0)

    def test_faults_strike_when_they_are_told_to(self):
        c = self.start('--fault', 'ones@3')
        self.assertEqual(c.read(CONFIG, 0, 2), 0x1209)
        self.assertEqual(c.read(CONFIG, 0, 2), 0xffff)
        self.end(c)
        c = self.start('--fault', 'die@3')
        self.assertEqual(c.read(CONFIG, 0, 2), 0x1209)
        with self.assertRaises((EOFError, ConnectionError)):
            c.read(CONFIG, 0, 2)
        self.assertEqual(self.end(c)[0], 1)
        c = self.start('--fault', 'hang@3')
        self.assertEqual(c.read(CONFIG, 0, 2), 0x1209)
        c.socket.settimeout(0.1)
        with self.assertRaises(TimeoutError):
            c.read(CONFIG, 0, 2)
        self.end(c)

    def test_options_that_cannot_be_are_refused(self):
        for options in [], ['a', 'b'], ['--fault', 'rust', 'x'], ['--fault', 'die@0', 'x'], ['--nonsense', 'x']:
            run = subprocess.run([DEVICE, *options], capture_output=True, timeout=LIMIT_SECONDS, check=False)
            self.assertEqual(run.returncode, 2, options)
            self.assertIn(b'usage', run.stderr)


if __name__ == '__main__':
    DEVICE = sys.argv.pop(1)
    unittest.main()
