#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A client of rigd's, in Python and of its standard library alone: docs/protocol.md put to use.

    client.py [unix:PATH]        else $RIG_ADDRESS, else unix:/run/rig/rigd.sock

It reads from top to bottom: the bytes, the connection, what a program wants of it, and a program, which copies
bytes from one buffer to another. Nothing here is made from the schema, so that it can be a model for any language.

It is the simplest client there is: its hello takes no feature, so all messages go over the socket, and its one
thread takes events while it waits for answers. Left out on purpose: the word page and the ring, launches, host
devices (whose work it would have to do itself), and passing buffers to other programs.
"""

import errno
import heapq
import itertools
import mmap
import os
import socket
import sys
import time
from types import SimpleNamespace

PACKET_BYTES, PACKET_FDS = 65536, 4
WAIT_SECONDS = 60  # the longest that rigd is waited for
READ, WRITE = 1, 2  # what is done with memory
COPY = 1  # a kind of part
# The types of messages that this client sends ...
RUN, BUFFER_DROP, WORK_DROP, DEVICE_CLOSE = 1, 3, 5, 7
HELLO, SYNC, ADAPTER_LIST, DEVICE_OPEN, BUFFER_NEW, BUFFER_WAIT, WORK_NEW = 32, 33, 34, 35, 36, 41, 44
# ... and receives.
FAILED, BROKEN, REACHED, RUN_FAILED, DEVICE_LOST, LIMITS = 65, 96, 97, 99, 100, 101


# ---------------------------------------------------------------- bytes: CBOR, RFC 8949

def head(major, n):
    """Three bits of type and a number, in the shortest form: rigd refuses any other."""
    if n < 24:
        return bytes([major << 5 | n])
    size = 1 if n < 1 << 8 else 2 if n < 1 << 16 else 4 if n < 1 << 32 else 8
    return bytes([major << 5 | 23 + size.bit_length()]) + n.to_bytes(size, 'big')


def encode(value):
    """An int (not negative), bytes, str, list or dict, whose keys are written in ascending order."""
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b''.join(map(encode, value))
    return head(5, len(value)) + b''.join(encode(k) + encode(v) for k, v in sorted(value.items()))


def decode(data, at):
    """The item at `at`, and where it ends. What this protocol has no use for is skipped and reads as None."""
    if at >= len(data) or data[at] & 31 > 27:
        raise Broken('rigd sent a packet that ends inside a message, or an item of no definite length')
    major, n, at = data[at] >> 5, data[at] & 31, at + 1
    if n > 23:
        size = 1 << (n - 24)
        n, at = int.from_bytes(data[at:at + size], 'big'), at + size
    if major in (2, 3):
        return (data[at:at + n] if major == 2 else data[at:at + n].decode()), at + n
    if major in (4, 5):
        items = []
        for _ in range(n if major == 4 else 2 * n):
            item, at = decode(data, at)
            items.append(item)
        return (items if major == 4 else dict(zip(items[::2], items[1::2]))), at
    if major == 6:
        return decode(data, at)  # a tag, and what it is on
    return (n if major == 0 else None), at


# ---------------------------------------------------------------- the connection

class Broken(Exception):
    """The connection is over. The text says why."""


class Failed(OSError):
    """rigd refused a request, or a run failed: an errno value and a sentence for people."""


class Buffer:
    """Memory of rigd's that we see as well. Before a look at it: Client.wait_for_buffer()."""

    def __init__(self, number, fields, fds):
        length, start, memory = fields[1], fields[2], fields[3]
        self.number, self.shared = number, bool(fields[5] & 1)
        # The descriptor is of the whole memory. It is ours, and not needed once that is mapped.
        self.map = mmap.mmap(fds[fields[6]], memory)
        os.close(fds[fields[6]])
        self.bytes = memoryview(self.map)[start:start + length]


class Client:
    """A connection. Objects have numbers, which we give them; a work is here its number and its device."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_SECONDS)
        try:
            self.socket.connect(path)
        except OSError as e:
            raise Broken(f'cannot connect to {path}: {e.strerror}') from e
        self.serial = 0
        self.answers = {}  # of a serial: the type, the fields, the packet's descriptors
        self.devices = {}  # by number
        # Free numbers: those that were dropped, and the next of those never used.
        self.free_devices, self.free_buffers, self.free_works = [1], [1], [1]
        # Version 1, our name, and no features: neither the word page nor the ring.
        hello, _ = self.request(HELLO, {1: 1, 2: 'client.py', 3: 0})
        self.daemon = hello[2]
        self.limits = {'objects': hello[4], 'memory': hello[5], 'runs': hello[6]}

    def send(self, kind, fields):
        """A message in a packet of its own. Several may share one, for fewer system calls."""
        try:
            self.socket.send(encode([kind, fields]))
        except OSError as e:
            while isinstance(e, ConnectionError):  # rigd closed it and said why: this ends with its sentence
                self.read()
            raise Broken(f'cannot send to rigd: {e}') from e

    def request(self, kind, fields):
        """Sends a request and waits for its answer. Return: its fields and descriptors."""
        self.serial = self.serial % 0xffffffff + 1
        self.send(kind, {0: self.serial, **fields})
        while self.serial not in self.answers:
            self.read()
        answer, fields, fds = self.answers.pop(self.serial)
        if answer == FAILED:
            raise Failed(fields[1], fields[2])
        return fields, fds

    def read(self):
        """Waits for a packet and takes the messages in it."""
        try:
            data, fds, flags, _ = socket.recv_fds(self.socket, PACKET_BYTES, PACKET_FDS, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return  # told once, before what rigd sent before it closed
        except OSError as e:
            raise Broken(f'cannot hear rigd: {e}') from e
        if not data:
            raise Broken('rigd is gone')
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise Broken('rigd sent a packet beyond the bounds of the protocol')
        at = 0
        while at < len(data):
            (kind, fields), at = decode(data, at)
            if 64 <= kind < 96:  # an answer; a packet has at most one that names descriptors
                self.answers[fields[0]] = kind, fields, fds
            else:
                self.take_event(kind, fields)
        if at > len(data):
            raise Broken('rigd sent a packet that ends inside a message')

    def take_event(self, kind, fields):
        if kind == BROKEN:
            raise Broken(fields[2])
        if kind == LIMITS:
            self.limits = {'objects': fields[1], 'memory': fields[2], 'runs': fields[3]}
        elif kind == REACHED:  # may skip values: all up to this one are reached
            device = self.device(fields[1])
            device.reached = max(fields[2], device.reached)
        elif kind == RUN_FAILED:  # comes before its value is told as reached
            self.device(fields[1]).failures[fields[2]] = Failed(fields[3], fields[4])
        elif kind == DEVICE_LOST:
            self.device(fields[1]).lost = Failed(fields[2], fields[3])
        # Others are of a later rigd, or for host devices, which this client does not open.

    def device(self, number):
        """What was sent to a device, and what rigd told of it."""
        new = SimpleNamespace(number=number, submitted=0, reached=0, failures={}, lost=None)
        return self.devices.setdefault(number, new)

    # ------------------------------------------------------------ what a program wants of it

    def adapters(self):
        """Name, what it is, and why it cannot be opened (or None) of all there are to open."""
        for index in itertools.count():
            try:
                a, _ = self.request(ADAPTER_LIST, {1: index})
            except Failed:  # ENOENT: there is no further one
                return
            yield a[1], a[3], a.get(7)

    def make(self, numbers, kind, fields):
        """Asks for an object under a free number. Return: the number, the answer's fields, its descriptors."""
        number = heapq.heappop(numbers)
        if not numbers:
            numbers.append(number + 1)
        try:
            return number, *self.request(kind, {1: number, **fields})
        except Failed:
            heapq.heappush(numbers, number)  # a request that failed changed nothing
            raise

    def open(self, name):
        return self.device(self.make(self.free_devices, DEVICE_OPEN, {2: name})[0])

    def buffer(self, device, length):
        """A new buffer of at least one byte, on a device whose memory the host addresses."""
        return Buffer(*self.make(self.free_buffers, BUFFER_NEW, {2: device.number, 3: length, 4: 0}))

    def copying(self, device):
        """A work with two open slots that copies all of the second one's buffer to the first one's."""
        slots = [{1: WRITE}, {1: READ}]
        part = {1: COPY, 2: 0, 4: [0, 0], 5: [1, 0]}  # on queue 0, to slot 0 from slot 1, from their first bytes
        return self.make(self.free_works, WORK_NEW, {2: device.number, 3: slots, 4: [part]})[0], device

    def run(self, work, buffers):
        """Runs a work with these buffers in its slots, after all that used them before. Return: the run's value."""
        number, device = work
        fields = {1: number, 2: [b.number for b in buffers]}
        if any(b.shared for b in buffers):
            fields[4] = time.monotonic_ns()  # orders it among the runs of other connections
        self.send(RUN, fields)
        device.submitted += 1
        return device.submitted

    def wait(self, device, value):
        """Returns once the device reached the value; raises where that run failed, or the device is lost."""
        while device.reached < value and not device.lost:
            self.read()
        if value in device.failures:
            raise device.failures[value]
        if device.reached < value:
            raise device.lost

    def wait_for_buffer(self, buffer, access):
        """Returns once we may read (the last write is done) or write (every use is)."""
        self.request(BUFFER_WAIT, {1: buffer.number, 2: access, 3: time.monotonic_ns()})

    def drop(self, buffer):
        """Also while work uses it: its memory returns once that is done."""
        self.send(BUFFER_DROP, {1: buffer.number})
        heapq.heappush(self.free_buffers, buffer.number)
        buffer.bytes.release()
        buffer.map.close()

    def drop_work(self, work):
        self.send(WORK_DROP, {1: work[0]})
        heapq.heappush(self.free_works, work[0])

    def close_device(self, device):
        self.send(DEVICE_CLOSE, {1: device.number})  # its runs go on
        self.request(SYNC, {})  # what rigd told of it meanwhile is read by then
        self.devices.pop(device.number)
        heapq.heappush(self.free_devices, device.number)


def main(arguments):
    address = arguments[1] if len(arguments) > 1 else os.environ.get('RIG_ADDRESS', 'unix:/run/rig/rigd.sock')
    if not address.startswith('unix:'):
        sys.exit(f'client.py: "{address}" is no address of a socket: unix:PATH')
    client = Client(address[5:].split(',')[0])  # a transport may follow a comma; ours is always the socket
    print(f'connected to {client.daemon}; it lets us hold {client.limits["objects"]} objects')
    for name, about, unavailable in client.adapters():
        print(f'  {name}: {unavailable or about}')

    try:
        client.open('nothing:0')
    except Failed as e:
        print(f'rigd says: {e.strerror} ({errno.errorcode[e.errno]})')

    device = client.open('memory:M')
    source, target = client.buffer(device, 5), client.buffer(device, 5)
    source.bytes[:] = b'hello'
    copy = client.copying(device)
    value = client.run(copy, [target, source])
    client.wait(device, value)
    print(f'value {value} is reached, and the target is {bytes(target.bytes).decode()}')

    client.wait_for_buffer(source, WRITE)  # nothing uses it any more
    source.bytes[:] = b'HELLO'
    client.run(copy, [target, source])
    client.wait_for_buffer(target, READ)  # a buffer is waited for without knowing what was done with it
    print(f'then it is {bytes(target.bytes).decode()}')

    client.drop(source)
    client.drop(target)
    client.drop_work(copy)
    client.close_device(device)
    client.socket.close()  # this alone would have done: rigd does what was sent, and drops the rest


if __name__ == '__main__':
    try:
        main(sys.argv)
    except (OSError, Broken) as e:
        sys.exit(f'client.py: {e}')
