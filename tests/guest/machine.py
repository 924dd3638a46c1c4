# SPDX-License-Identifier: ISC
"""A QEMU guest that runs what it is told: with Machine(folder, work) as guest: guest.run('scenario.sh', 60).

The guest is what build.py made. Its root is never written to; a folder of the host is its /share, with in/ for
what it runs and out/ for what that says. Every wait has a deadline, and leaving the with statement ends QEMU.

QEMU translates (TCG) and uses no KVM: that runs everywhere, in the same way, and a guest is ready after some ten
seconds. Where KVM is offered to a machine that is itself virtual, guests have been seen to hang in it.
"""

import os
import shutil
import signal
import socket
import subprocess
import time

BOOT_SECONDS = 240
COMMAND_LINE = ('console=ttyS0 quiet loglevel=4 mitigations=off nokaslr no_timer_check random.trust_cpu=on '
                'cryptomgr.notests audit=0 apparmor=0 net.ifnames=0 rcupdate.rcu_expedited=1 '
                'systemd.show_status=0 systemd.journald.forward_to_console=0')


class GuestError(Exception):
    """The guest does not do what it should: it does not start, or it stopped to answer."""


class Machine:
    """folder: what build.py made. work: a folder for sockets and logs; its share/ is the guest's /share."""

    def __init__(self, folder, work, qemu='qemu-system-x86_64', memory='1536M', extra=()):
        self.folder, self.work = folder, work
        self.qemu, self.memory, self.extra = qemu, memory, list(extra)
        self.share = os.path.join(work, 'share')
        self.process = self.port = None
        self.unread = b''
        for name in ('in', 'out'):
            os.makedirs(os.path.join(self.share, name), exist_ok=True)

    def command(self):
        return [self.qemu, '-name', 'rig-guest', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none',
                '-M', 'q35,memory-backend=ram,hpet=off,usb=off', '-accel', 'tcg,thread=multi,tb-size=512',
                '-cpu', 'max', '-smp', '2', '-m', self.memory,
                '-object', f'memory-backend-memfd,id=ram,size={self.memory},share=on',
                '-kernel', os.path.join(self.folder, 'vmlinux'), '-initrd', os.path.join(self.folder, 'initrd.img'),
                '-append', COMMAND_LINE,
                '-drive', f'if=none,id=root,file={self.folder}/root.img,format=raw,readonly=on,cache=unsafe',
                '-device', 'virtio-blk-pci,drive=root',
                '-fsdev', f'local,id=share,path={self.share},security_model=none',
                '-device', 'virtio-9p-pci,fsdev=share,mount_tag=share',
                '-chardev', f'socket,id=agent,path={self.work}/agent,server=on,wait=off',
                '-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=agent,name=guest.agent',
                '-serial', f'file:{self.work}/console.log',
                '-qmp', f'unix:{self.work}/qmp,server=on,wait=off'] + self.extra

    def __enter__(self):
        for name in ('agent', 'qmp'):
            if os.path.exists(f'{self.work}/{name}'):
                os.unlink(f'{self.work}/{name}')
        with open(f'{self.work}/qemu.log', 'wb') as log:
            # It shall not outlive this program, however that ends, and shall leave the cores to others.
            self.process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', 'nice', '-n', '5'] + self.command(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + BOOT_SECONDS
            self.connect(deadline)
            self.expect('ready', deadline)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.port:
            self.port.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def connect(self, deadline):
        while True:
            self.port = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self.port.connect(f'{self.work}/agent')
                return
            except OSError:
                self.port.close()
                self.port = None
            if self.process.poll() is not None:
                with open(f'{self.work}/qemu.log', encoding='utf-8', errors='replace') as f:
                    raise GuestError(f'QEMU ended: {f.read().strip()[-400:]}')
            if time.monotonic() > deadline:
                raise GuestError('QEMU makes no socket')
            time.sleep(0.05)

    def expect(self, word, deadline):
        """Waits for a line "WORD ..." from the guest. Return: the rest of it."""
        while True:
            line, newline, rest = self.unread.partition(b'\n')
            if newline:
                self.unread = rest
                words = line.decode(errors='replace').split()
                if words and words[0] == word:
                    return words[1:]
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise GuestError(f'the guest did not say "{word}" in time')
            self.port.settimeout(left)
            try:
                got = self.port.recv(4096)
            except TimeoutError:
                continue
            if not got:
                raise GuestError(f'QEMU ended before the guest said "{word}"')
            self.unread += got

    def put(self, path, name=None):
        """Makes a file of the host one of the guest's /share/in."""
        shutil.copy(path, os.path.join(self.share, 'in', name or os.path.basename(path)))

    def out(self, name):
        """What the guest wrote to /share/out/NAME, or ''."""
        try:
            with open(os.path.join(self.share, 'out', name), encoding='utf-8', errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def run(self, name, seconds):
        """Runs /share/in/NAME with bash. Return: its exit status, 124 where it was ended after `seconds`."""
        self.port.sendall(f'run {seconds} {name}\n'.encode())
        return int(self.expect('done', time.monotonic() + seconds + 30)[0])
