#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Makes a Debian guest for QEMU: vmlinux, initrd.img, root.img, in a folder of the cache.

Usage: build.py [--release NAME] [--give-to UID:GID]

Everything comes from Debian's packages, of the release that this machine runs unless told: mmdebstrap makes
the tree, the kernel's package is unpacked beside it, and only the modules that a guest under test loads go in.
The cache is $RIG_GUEST_CACHE, else build-guest/ in the tree. The folder there is named after a digest of what
determines it (this script, guest/, the release), so that it is made once; an older one of the same release goes.
The last line printed is the folder.

In the guest, root.img stays as it is: the initrd lays a tmpfs over it, so every boot starts from the same tree.
guest/agent.sh waits there for machine.py to tell it what to run; nothing of what is tested is in the image.

Needs root, for a tree whose files belong to their owners. Exit status: 0, 1 with a sentence where something
failed, 77 where this machine cannot make a guest at all.
"""

import argparse
import fcntl
import hashlib
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GUEST = os.path.join(HERE, 'guest')
SKIP = 77

# What a small server has, and what the packages under test depend on: a guest has no network to get that from.
PACKAGES = {
    '': ['systemd', 'systemd-sysv', 'libpam-systemd', 'dbus', 'dbus-user-session', 'polkitd', 'udev', 'kmod', 'procps',
         'python3-minimal', 'libpython3-stdlib', 'python3', 'busybox-static', 'liburing2', 'adduser'],
    'bookworm': ['libcbor0.8', 'libcurl3-gnutls'],
    'trixie': ['libcbor0.10', 'libcurl3t64-gnutls'],
}
MODULES = ['virtio_pci', 'virtio_blk', 'virtio_console', 'ext4', 'overlay', '9p', '9pnet_virtio', 'autofs4', 'configfs',
           'loop']
INITRD_MODULES = ['virtio_pci', 'virtio_blk', 'ext4', 'overlay']
# What a guest that lives for minutes need not start: consoles, clocks, upkeep.
MASKED = ['getty.target', 'apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'fstrim.timer',
          'e2scrub_all.timer', 'e2scrub_reap.service', 'systemd-pstore.service', 'systemd-random-seed.service',
          'systemd-boot-random-seed.service', 'systemd-update-utmp.service', 'systemd-update-utmp-runlevel.service',
          'systemd-hwdb-update.service', 'systemd-firstboot.service', 'systemd-timesyncd.service',
          'systemd-binfmt.service',
          'sys-kernel-debug.mount', 'sys-kernel-tracing.mount', 'dev-mqueue.mount', 'systemd-udev-settle.service',
          'systemd-networkd-wait-online.service', 'remote-fs.target', 'ldconfig.service', 'systemd-update-done.service',
          'systemd-machine-id-commit.service', 'systemd-tpm2-setup.service', 'systemd-tpm2-setup-early.service',
          'systemd-pcrmachine.service']
# Documentation is most of a small system; the packages under test are installed whole, see tidy().
EXCLUDED = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*']


class Cannot(Exception):
    """This machine cannot make a guest: a reason to skip, not a failure."""


def say(text):
    print(f'guest: {text}', flush=True)


def run(*command, **more):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                       **more)
    out = r.stdout.decode(errors='replace')
    if r.returncode:
        raise RuntimeError(f'{" ".join(command[:3])} ... exited with {r.returncode}:\n{out[-3000:]}')
    return out


def own_release():
    with open('/etc/os-release', encoding='utf-8') as f:
        for line in f:
            if line.startswith('VERSION_CODENAME='):
                return line.split('=', 1)[1].strip().strip('"')
    raise Cannot('/etc/os-release names no release')


def key(release):
    """A digest of what determines the guest. The versions in the archive do not: a guest is made once."""
    digest = hashlib.sha256(release.encode())
    names = [os.path.join(GUEST, name) for name in sorted(os.listdir(GUEST))]
    for name in [os.path.abspath(__file__)] + names:
        with open(name, 'rb') as f:
            digest.update(hashlib.sha256(f.read()).digest())
    return digest.hexdigest()[:16]


def cache():
    return os.path.abspath(os.environ.get('RIG_GUEST_CACHE') or os.path.join(ROOT, 'build-guest'))


def folder_of(release):
    return os.path.join(cache(), f'{release}-{key(release)}')


def is_made(folder):
    return os.path.exists(os.path.join(folder, 'root.img'))


def give(owner):
    """What root made is whoever's it made it for."""
    if owner:
        run('chown', '-R', owner, cache())


# ------------------------------------------------------------------------------------------------ the tree

def sources(release):
    """This machine's own lines of Debian's archive, for the release asked for."""
    out = run('apt-get', 'indextargets', '--format',
              '$(ORIGIN)|$(CREATED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)')
    own = own_release()
    keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
    option = f' [signed-by={keyring}]' if os.path.exists(keyring) else ''
    lines = set()
    for origin, kind, uri, suite, component in (line.split('|') for line in out.splitlines()):
        if origin == 'Debian' and kind == 'Packages' and suite.split('-')[0] == own and component == 'main':
            lines.add(f'deb{option} {uri} {suite.replace(own, release, 1)} main')
    if not lines:
        raise Cannot("apt knows no archive of Debian's: run apt-get update, or see /etc/apt/sources.list.d")
    return '\n'.join(sorted(lines)) + '\n'


def apt_options():
    """How this machine's apt reaches the archive: proxies, and archives frozen in time."""
    for line in run('apt-config', 'dump', 'Acquire').splitlines():
        if '::Proxy' in line or 'Check-Valid-Until' in line:
            yield '--aptopt=' + line.rstrip(';')


def make_tree(work, release):
    tree = os.path.join(work, 'tree')
    with open(os.path.join(work, 'sources.list'), 'w', encoding='utf-8') as f:
        f.write(sources(release))
    # The kernel's package is unpacked, not installed: no bootloader, no run of initramfs-tools.
    kernel = ('cd "$0" && p=$(APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache depends linux-image-amd64 | '
              'sed -n "s/.*Depends: \\(linux-image-[0-9][^ ]*\\)$/\\1/p" | head -n 1) && '
              'APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download "$p"')
    command = ['mmdebstrap', '--mode=root', '--variant=minbase', '--aptopt=APT::Install-Recommends "false"']
    command += apt_options()
    command += [f'--dpkgopt=path-exclude={path}' for path in EXCLUDED]
    command += ['--include=' + ','.join(PACKAGES[''] + PACKAGES.get(release, [])),
                f"--customize-hook=sh -c '{kernel}' {work}",
                release, tree, os.path.join(work, 'sources.list')]
    say(f'making a tree of {release} with mmdebstrap')
    run(*command)
    debs = [name for name in os.listdir(work) if name.startswith('linux-image') and name.endswith('.deb')]
    say(f'unpacking {debs[0]}')
    run('dpkg', '-x', os.path.join(work, debs[0]), os.path.join(work, 'kernel'))
    return tree


# ------------------------------------------------------------------------------------------------ the kernel

def module_folder(work):
    for under in ('usr/lib/modules', 'lib/modules'):
        path = os.path.join(work, 'kernel', under)
        if os.path.isdir(path):
            version = os.listdir(path)[0]
            return version, os.path.join(path, version)
    raise RuntimeError("the kernel's package has no modules")


def uncompress(path):
    """A guest without KVM would pay for this at each boot."""
    if not path.endswith('.ko.xz'):
        return path
    with lzma.open(path) as packed, open(path[:-3], 'wb') as f:
        shutil.copyfileobj(packed, f)
    os.unlink(path)
    return path[:-3]


def needs(tree, version, module):
    """Paths of a module and those it needs, below the folder of modules, in the order to load them."""
    out = run('chroot', tree, 'modprobe', '-S', version, '--show-depends', module)
    for line in out.splitlines():
        if line.startswith('insmod '):
            yield line.split()[1].split(f'/{version}/', 1)[1]


def add_modules(work, tree):
    """Return: the kernel's version, and the initrd's modules, as paths in the order to load them."""
    version, packed = module_folder(work)
    target = os.path.join(tree, 'usr/lib/modules', version)
    for at, _, names in os.walk(packed):
        for name in names:
            uncompress(os.path.join(at, name))
    shutil.copytree(packed, target)
    run('chroot', tree, 'depmod', version)
    wanted = list(dict.fromkeys(path for m in MODULES for path in needs(tree, version, m)))
    first = list(dict.fromkeys(path for m in INITRD_MODULES for path in needs(tree, version, m)))
    shutil.rmtree(target)
    for path in wanted + ['modules.builtin', 'modules.builtin.modinfo', 'modules.order']:
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
        shutil.copy(os.path.join(packed, path), os.path.join(target, path))
    run('chroot', tree, 'depmod', version)
    say(f'kernel {version} with {len(wanted)} modules')
    return version, [os.path.join(target, path) for path in first]


def unpack_kernel(path, to):
    """The ELF file in a bzImage: QEMU starts it directly, and a guest without KVM unpacks nothing."""
    with open(path, 'rb') as f:
        image = f.read()
    # Documentation/arch/x86/boot.rst: where the payload is, from the end of the set-up sectors.
    sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from('<II', image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start:start + length]
    if payload.startswith(b'\xfd7zXZ\x00'):
        vmlinux = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b'\x28\xb5\x2f\xfd'):
        # Four bytes of length follow, which zstd would complain of.
        vmlinux = subprocess.run(['zstd', '-dc'], input=payload[:-4], stdout=subprocess.PIPE, check=False).stdout
    else:
        vmlinux = b''
    if not vmlinux.startswith(b'\x7fELF'):
        raise RuntimeError(f'{path} holds no kernel that can be unpacked')
    with open(to, 'wb') as f:
        f.write(vmlinux)


def make_initrd(work, tree, modules, to):
    at = os.path.join(work, 'initrd')
    for name in ('bin', 'modules', 'proc', 'sys', 'dev', 'top', 'root'):
        os.makedirs(os.path.join(at, name))
    shutil.copy(os.path.join(tree, 'usr/bin/busybox'), os.path.join(at, 'bin/busybox'))
    with open(os.path.join(at, 'modules/list'), 'w', encoding='utf-8') as f:
        for path in modules:
            shutil.copy(path, os.path.join(at, 'modules'))
            f.write(os.path.basename(path) + '\n')
    shutil.copy(os.path.join(GUEST, 'init.sh'), os.path.join(at, 'init'))
    os.chmod(os.path.join(at, 'init'), 0o755)
    run('sh', '-c', 'cd "$1" && find . | ./bin/busybox cpio -o -H newc > "$2"', 'initrd', at, to)


# ------------------------------------------------------------------------------------------------ the image

def tidy(tree):
    """What is the guest's own: its name, its users, what it starts, and no trace of how it was made."""
    etc = os.path.join(tree, 'etc')
    for name in ('apt/apt.conf.d/99mmdebstrap', 'dpkg/dpkg.cfg.d/99mmdebstrap'):
        if os.path.exists(os.path.join(etc, name)):
            os.unlink(os.path.join(etc, name))
    for name, text in (('hostname', 'guest\n'), ('fstab', ''), ('apt/sources.list', ''), ('resolv.conf', ''),
                       ('machine-id', '0123456789abcdef0123456789abcdef\n')):
        with open(os.path.join(etc, name), 'w', encoding='utf-8') as f:
            f.write(text)
    for unit in MASKED:
        path = os.path.join(etc, 'systemd/system', unit)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink('/dev/null', path)
    # Two people: the tests put the first into the group rig, the second stays outside.
    for name, uid in (('insider', '1000'), ('outsider', '1001')):
        run('chroot', tree, 'useradd', '--create-home', '--shell', '/bin/bash', '--uid', uid, name)
    shutil.copy(os.path.join(GUEST, 'agent.sh'), os.path.join(tree, 'usr/local/sbin/guest-agent'))
    os.chmod(os.path.join(tree, 'usr/local/sbin/guest-agent'), 0o755)
    shutil.copy(os.path.join(GUEST, 'guest-agent.service'), os.path.join(etc, 'systemd/system'))
    run('chroot', tree, 'systemctl', 'enable', 'guest-agent.service')


def make_image(tree, to):
    kib = int(run('du', '-sk', tree).split()[0])
    say(f'writing {kib // 1024} MiB into root.img')
    run('mke2fs', '-q', '-t', 'ext4', '-O', '^has_journal', '-E', 'lazy_itable_init=1', '-m', '0', '-d', tree, to,
        f'{kib // 1024 * 5 // 4 + 64}M')


def make(folder, release):
    with tempfile.TemporaryDirectory(prefix='new-', dir=cache()) as work:
        os.chmod(work, 0o755)
        tree = make_tree(work, release)
        version, modules = add_modules(work, tree)
        tidy(tree)
        out = os.path.join(work, 'out')
        os.mkdir(out)
        unpack_kernel(os.path.join(work, 'kernel/boot', f'vmlinuz-{version}'), os.path.join(out, 'vmlinux'))
        make_initrd(work, tree, modules, os.path.join(out, 'initrd.img'))
        make_image(tree, os.path.join(out, 'root.img'))
        os.rename(out, folder)
    for name in os.listdir(cache()):
        if name.startswith(release + '-') and name != os.path.basename(folder):
            shutil.rmtree(os.path.join(cache(), name))


def check_machine():
    os.environ['PATH'] += ':/usr/sbin:/sbin'
    if os.uname().machine != 'x86_64':
        raise Cannot('the guest is one for x86_64, and this machine is not')
    lacking = [tool for tool in ('mmdebstrap', 'mke2fs', 'dpkg', 'apt-get', 'zstd')
               if not shutil.which(tool)]
    if lacking:
        raise Cannot(f'making a guest needs {", ".join(lacking)}: ./dev test installs them')
    if os.getuid() != 0:
        raise Cannot('making a guest needs root: sudo tests/guest/build.py')


def ensure(release, owner=None):
    """Return: the folder with the guest, made if need be. Cannot and RuntimeError say what is in the way."""
    folder = folder_of(release)
    if is_made(folder):
        return folder
    check_machine()
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), 'lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_made(folder):
            os.umask(0o022)
            make(folder, release)
        give(owner)
    return folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--release')
    parser.add_argument('--give-to', metavar='UID:GID', help='whom the folder shall belong to')
    a = parser.parse_args()
    try:
        print(ensure(a.release or own_release(), a.give_to))
    except Cannot as e:
        say(e)
        return SKIP
    except (RuntimeError, OSError) as e:
        say(e)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
