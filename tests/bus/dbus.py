# SPDX-License-Identifier: ISC
"""A D-Bus connection in the standard library alone: marshalling, calls, descriptors.

What rigd's tests need to be callers that busctl cannot be: one that passes descriptors, is another user, leaves
without a word, serves as polkit, or sends what nobody should. Written from the D-Bus specification, little-endian.
Messages that come are queued; every wait has a deadline.
"""

import array
import os
import socket
import struct
import time

METHOD_CALL, METHOD_RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY_EXPECTED, NO_AUTO_START, ALLOW_INTERACTIVE = 1, 2, 4
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE, UNIX_FDS = range(1, 10)
FIELD_TYPES = {PATH: 'o', INTERFACE: 's', MEMBER: 's', ERROR_NAME: 's', REPLY_SERIAL: 'u', DESTINATION: 's',
               SENDER: 's', SIGNATURE: 'g', UNIX_FDS: 'u'}
FIXED = {'y': 'B', 'b': 'I', 'n': 'h', 'q': 'H', 'i': 'i', 'u': 'I', 'x': 'q', 't': 'Q', 'd': 'd', 'h': 'I'}
ALIGN = {'s': 4, 'o': 4, 'g': 1, 'a': 4, 'v': 1, '(': 8, '{': 8, **{t: struct.calcsize(f) for t, f in FIXED.items()}}
WAIT_S = 60  # the most that anything is waited for


class Failed(Exception):
    """An error that a call was answered with."""

    def __init__(self, name, text):
        super().__init__(f'{name}: {text}')
        self.name, self.text = name, text


class Closed(Exception):
    """The bus ended the connection."""


def split(signature):
    """The complete types of a signature, in order."""
    types, at = [], 0
    while at < len(signature):
        start, depth = at, 0
        while True:
            c = signature[at]
            at += 1
            depth += c in '({'
            depth -= c in ')}'
            if depth == 0 and c != 'a':
                break
        types.append(signature[start:at])
    return types


class Writer:
    def __init__(self):
        self.data = bytearray()

    def pad(self, to):
        self.data += bytes(-len(self.data) % to)

    def put(self, kind, value):
        c = kind[0]
        self.pad(ALIGN[c])
        if c in FIXED:
            self.data += struct.pack('<' + FIXED[c], value)
        elif c in 'so':
            raw = value if isinstance(value, bytes) else value.encode()
            self.data += struct.pack('<I', len(raw)) + raw + b'\0'
        elif c == 'g':
            self.data += bytes([len(value)]) + value.encode() + b'\0'
        elif c == 'v':
            self.put('g', value[0])
            self.put(value[0], value[1])
        elif c == 'a':
            self.array(kind[1:], value)
        else:
            for k, v in zip(split(kind[1:-1]), value):
                self.put(k, v)

    def array(self, kind, values):
        at = len(self.data)
        self.data += bytes(4)
        self.pad(ALIGN[kind[0]])
        start = len(self.data)
        for value in values.items() if isinstance(values, dict) else values:
            self.put(kind, value)
        self.data[at:at + 4] = struct.pack('<I', len(self.data) - start)


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def get(self, kind):
        c = kind[0]
        self.at += -self.at % ALIGN[c]
        if c in FIXED:
            value, = struct.unpack_from('<' + FIXED[c], self.data, self.at)
            self.at += struct.calcsize(FIXED[c])
            return bool(value) if c == 'b' else value
        if c in 'sog':
            n = self.get('y' if c == 'g' else 'u')
            self.at += n + 1
            return self.data[self.at - n - 1:self.at - 1].decode()
        if c == 'v':
            return self.get(self.get('g'))
        if c != 'a':
            return tuple(self.get(k) for k in split(kind[1:-1]))
        n = self.get('u')
        self.at += -self.at % ALIGN[kind[1]]
        end, values = self.at + n, []
        while self.at < end:
            values.append(self.get(kind[1:]))
        return dict(values) if kind[1] == '{' else values


class Message:
    def __init__(self, kind, flags, fields, body, fds):
        self.kind, self.flags, self.fields, self.fds = kind, flags, fields, fds
        self.member, self.sender = fields.get(MEMBER), fields.get(SENDER)
        signature = fields.get(SIGNATURE, '')
        reader = Reader(body)
        self.args = [reader.get(k) for k in split(signature)]


class Connection:
    """A connection to the bus at a socket; with `uid`, as that user, which root alone can be."""

    def __init__(self, path, uid=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.serial, self.buffer, self.fds, self.queue = 0, b'', [], []
        before = os.geteuid()
        if uid is not None and uid != before:
            os.seteuid(uid)
        try:
            self.socket.connect(path)
            self.authenticate(before if uid is None else uid)
        finally:
            os.seteuid(before)
        self.name = self.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'Hello')[0]

    def authenticate(self, uid):
        self.socket.sendall(b'\0AUTH EXTERNAL ' + str(uid).encode().hex().encode() + b'\r\n')
        self.line(b'OK ')
        self.socket.sendall(b'NEGOTIATE_UNIX_FD\r\n')
        self.line(b'AGREE_UNIX_FD')
        self.socket.sendall(b'BEGIN\r\n')

    def line(self, start):
        line = b''
        while not line.endswith(b'\r\n'):
            c = self.socket.recv(1)
            if not c:
                raise Closed('the bus ended the connection before it began')
            line += c
        if not line.startswith(start):
            raise Closed(f'the bus says {line!r}')

    def send(self, kind, fields, signature='', args=(), flags=0, fds=(), body=None):
        """Sends a message, and returns its serial. `body` takes the place of what the arguments make."""
        self.serial += 1
        if body is None:
            writer = Writer()
            for k, v in zip(split(signature), args):
                writer.put(k, v)
            body = bytes(writer.data)
        fields = dict(fields)
        if signature:
            fields[SIGNATURE] = signature
        if fds:
            fields[UNIX_FDS] = len(fds)
        writer = Writer()
        for k, v in zip('yyyyuu', (ord('l'), kind, flags, 1, len(body), self.serial)):
            writer.put(k, v)
        writer.array('(yv)', [(f, (FIELD_TYPES[f], v)) for f, v in fields.items()])
        writer.pad(8)
        data = bytes(writer.data) + body
        if fds:
            n = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])
            data = data[n:]
        self.socket.sendall(data)
        return self.serial

    def receive(self, n, deadline):
        while len(self.buffer) < n:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            data, ancillary, _, _ = self.socket.recvmsg(65536, 4096)
            if not data:
                raise Closed('the bus ended the connection')
            self.buffer += data
            for _, _, raw in ancillary:
                fds = array.array('i')
                fds.frombytes(raw[:len(raw) - len(raw) % 4])
                self.fds += fds

    def read(self, deadline):
        self.receive(16, deadline)
        _, kind, flags, _, body_bytes, serial, array_bytes = struct.unpack_from('<BBBBIII', self.buffer)
        head = 16 + array_bytes + -array_bytes % 8
        self.receive(head + body_bytes, deadline)
        fields = dict(Reader(self.buffer[:head], 12).get('a(yv)'))
        body = self.buffer[head:head + body_bytes]
        self.buffer = self.buffer[head + body_bytes:]
        n = fields.get(UNIX_FDS, 0)
        fds, self.fds = self.fds[:n], self.fds[n:]
        message = Message(kind, flags, fields, body, fds)
        message.serial = serial
        return message

    def take(self, wanted, wait_s=WAIT_S):
        """The first message that `wanted` says yes to; the others stay queued."""
        deadline = time.monotonic() + wait_s
        for i, message in enumerate(self.queue):
            if wanted(message):
                return self.queue.pop(i)
        while True:
            message = self.read(deadline)
            if wanted(message):
                return message
            self.queue.append(message)

    def ask(self, destination, path, interface, member, signature='', args=(), flags=0, fds=(), body=None):
        """Makes a call, and returns its serial, for answer()."""
        return self.send(METHOD_CALL, {PATH: path, INTERFACE: interface, MEMBER: member, DESTINATION: destination},
                         signature, args, flags, fds, body)

    def answer(self, serial, wait_s=WAIT_S):
        message = self.take(lambda m: m.fields.get(REPLY_SERIAL) == serial, wait_s)
        if message.kind == ERROR:
            raise Failed(message.fields[ERROR_NAME], message.args[0] if message.args else '')
        return message.args

    def call(self, *args, **kwargs):
        return self.answer(self.ask(*args, **kwargs))

    def reply(self, call, signature='', args=()):
        self.send(METHOD_RETURN, {REPLY_SERIAL: call.serial, DESTINATION: call.sender}, signature, args)

    def own(self, name):
        """Takes a name, which must be free."""
        got, = self.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'RequestName', 'su',
                         (name, 4))
        assert got == 1, f'{name} is taken'

    def listen(self, rule):
        self.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'AddMatch', 's', (rule,))

    def close(self):
        self.socket.close()
