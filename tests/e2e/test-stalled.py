# SPDX-License-Identifier: ISC
"""safety_S1: a client that serves a file system of its own and stops answering holds up itself alone.

The file system is FUSE, spoken here by hand on /dev/fuse (linux/fuse.h, version 7.31). It answers until it is told
to stall one kind of question: the attributes of its file, or the flush that each close(2) asks for. A client that
passes descriptors of that file in every way there is must not keep another one waiting, neither on memory nor on the
disk. The other one's waits are bounded by rigd's watchdog in the field, and by WAIT_SECONDS here.

Needs root, to mount. Usage: test-stalled.py ROOT RIGD
"""

import array
import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

root, rigd = sys.argv[1:3]
sys.path.insert(0, os.path.join(root, 'docs/examples'))
import client as rig  # noqa: E402

WAIT_SECONDS = 20
LOOKUP, GETATTR, OPEN, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 3, 14, 18, 25, 26, 27, 29
libc = ctypes.CDLL(None, use_errno=True)


class FileSystem:
    """One file of 4096 bytes, `file`. Questions whose opcode is in `stalled` are heard and never answered."""

    def __init__(self, folder):
        self.fd = os.open('/dev/fuse', os.O_RDWR)
        self.folder, self.stalled, self.heard = folder, set(), []
        options = f'fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other'.encode()
        if libc.mount(b'stalled', folder.encode(), b'fuse', 0, options) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        threading.Thread(target=self.serve, daemon=True).start()

    @staticmethod
    def attributes(node):
        mode = 0o40755 if node == 1 else 0o100666
        return struct.pack('<QQQQQQIIIIIIIIII', node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node):
        if opcode == INIT:
            return struct.pack('<IIIIHHII', 7, 31, 65536, 0, 0, 0, 65536, 1).ljust(64, b'\0')
        if opcode == LOOKUP:
            return struct.pack('<QQQQII', 2, 0, 0, 0, 0, 0) + self.attributes(2)
        if opcode == GETATTR:
            return struct.pack('<QII', 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack('<QII', 1, 0, 0)
        return b'' if opcode in (FLUSH, RELEASE, RELEASEDIR) else None

    def serve(self):
        while True:
            try:
                question = os.read(self.fd, 1 << 17)
            except OSError:
                return  # unmounted
            _, opcode, unique, node = struct.unpack_from('<IIQQ', question)
            self.heard.append(opcode)
            if opcode in self.stalled and node != 1:
                continue
            out = self.answer(opcode, node)
            try:
                os.write(self.fd, struct.pack('<IiQ', 16, -errno.ENOSYS, unique) if out is None else
                         struct.pack('<IiQ', 16 + len(out), 0, unique) + out)
            except OSError:
                pass  # whoever asked is gone

    def end(self):
        """Whoever waits for it gets an error: MNT_FORCE ends the connection, MNT_DETACH takes it off the tree."""
        libc.umount2(self.folder.encode(), 1)
        libc.umount2(self.folder.encode(), 2)
        os.close(self.fd)


# ---------------------------------------------------------------- the one that stalls

class Attacker:
    """Sends what it likes and waits for nothing: its answers may never come."""

    def __init__(self, path, file):
        self.client, self.fd, self.serial = rig.Client(path), os.open(file, os.O_RDWR), 1000
        self.memory, self.disk = self.client.open('memory:M'), self.client.open('disk')

    def send(self, kind, fields, data=None):
        self.serial += 1
        packet = rig.encode([kind, {0: self.serial, **fields}]) if data is None else data
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [self.fd]))]
        try:
            self.client.socket.sendmsg([packet], rights)
        except ConnectionError:
            pass  # it was ended for the last thing it sent, as it should be


WAYS = {
    'buffer-import': lambda a: a.send(40, {1: 1, 2: a.memory.number, 3: 0}),
    'buffer-adopt as memory': lambda a: a.send(37, {1: 2, 2: a.memory.number, 3: 0, 4: 4096, 5: 0}),
    'buffer-adopt as a file': lambda a: a.send(37, {1: 3, 2: a.disk.number, 3: 0, 4: 4096, 5: 0}),
    'image-load': lambda a: a.send(42, {1: 1, 2: a.memory.number, 3: 16, 4: 0}),
    'notify-eventfd': lambda a: a.send(46, {1: a.memory.number, 2: 0, 3: 0}),
    'trace-start': lambda a: a.send(47, {1: 0}),
    'a descriptor of no message': lambda a: a.send(33, {}),
    'an empty packet': lambda a: a.send(0, {}, b''),
    'bytes that are no message': lambda a: a.send(0, {}, b'\xff' * 8),
}


# ---------------------------------------------------------------- the one that goes on

def others_go_on(path, folder):
    """A program that comes now and uses memory and a file of its own. Raises where it has to wait."""
    c = rig.Client(path)
    m, d = c.open('memory:M'), c.open('disk')
    a, b = c.buffer(m, 64), c.buffer(m, 64)
    c.wait(m, c.run(c.copying(m), [a, b]))
    with open(os.path.join(folder, 'plain'), 'w+b') as f:
        f.write(bytes(4096))
        f.flush()
        c.serial += 1
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f.fileno()]))]
        c.socket.sendmsg([rig.encode([37, {0: c.serial, 1: 100, 2: d.number, 3: 0, 4: 4096, 5: 0}])], rights)
        while c.serial not in c.answers:
            c.read()
        kind, fields, _ = c.answers.pop(c.serial)
        if kind == rig.FAILED:
            raise rig.Failed(fields[1], fields[2])
    c.send(rig.BUFFER_DROP, {1: 100})
    c.close_device(d)
    c.socket.close()


def start_rigd(path):
    process = subprocess.Popen([rigd, '--config', '/dev/null', '--socket', path], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT_SECONDS
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            sys.exit('rigd does not listen')
        time.sleep(0.01)
    return process


def ask(system, file):
    """A thread that does what rigd must not do, once it is held up. It ends with the file system."""
    def touch():
        try:
            fd = os.open(file, os.O_RDONLY)
            os.fstat(fd)
            os.close(fd)
        except OSError:
            pass  # the file system has ended

    system.heard.clear()
    asking = threading.Thread(target=touch)
    asking.start()
    deadline = time.monotonic() + WAIT_SECONDS
    while asking.is_alive() and not system.stalled & set(system.heard) and time.monotonic() < deadline:
        time.sleep(0.01)
    return asking


def try_stall(folder, stalled):
    path, mount = os.path.join(folder, 'rigd.sock'), os.path.join(folder, 'mount')
    os.makedirs(mount, exist_ok=True)
    system, process, wrong = FileSystem(mount), start_rigd(path), []
    asking, held_up = None, False
    rig.WAIT_SECONDS = WAIT_SECONDS
    try:
        attackers = []
        for name, way in WAYS.items():
            attacker = Attacker(path, os.path.join(mount, 'file'))
            attackers.append(attacker)
            system.stalled = stalled
            way(attacker)
            try:
                others_go_on(path, folder)
                print(f'  {name}: others go on')
            except (OSError, rig.Broken) as e:
                wrong.append(f'{name}: another client waits: {e!r}')
                break
            system.stalled = set()
        # It all hangs together: the attackers go while nothing is answered, and that holds up nobody either.
        system.stalled = stalled
        for attacker in attackers:
            attacker.client.socket.close()
        if not wrong:
            others_go_on(path, folder)
        asking = ask(system, os.path.join(mount, 'file'))
        held_up = asking.is_alive() and bool(stalled & set(system.heard))
    finally:
        system.end()
        process.send_signal(signal.SIGTERM if not wrong else signal.SIGKILL)
        try:
            process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            wrong.append('rigd does not end')
        if asking:
            asking.join(WAIT_SECONDS)
        if os.path.exists(path):
            os.unlink(path)
    if not held_up:
        wrong.append('the file system does not stall: the test shows nothing')
    return wrong


def main():
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        print('skipped: only root may mount a file system here, and /dev/fuse must be there')
        return 77
    failed = 0
    for title, stalled in (('attributes', {GETATTR}), ('flush', {FLUSH}), ('both', {GETATTR, FLUSH})):
        print(f'a file system that answers no question for {title}:')
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong = try_stall(folder, stalled)
            except PermissionError as e:
                print(f'skipped: no file system can be mounted here: {e}')
                return 77
        for sentence in wrong:
            print(f'  {sentence}')
        failed += len(wrong)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
