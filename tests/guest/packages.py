# SPDX-License-Identifier: ISC
"""The packages under test: built from this tree as it is, for this release or another, and what is made of them.

Those of this machine's release are `./dev package`'s, in build-package/; those of another are built in a tree that
mmdebstrap makes and throws away again (which needs root). Both are built once for a state of the tree, and without
the tests that packages run while they are built: the suites have run them. A later version, for upgrades, is the
same package with another number. Programs are compiled with what the packages bring, and nothing else of the tree.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import tempfile

import build

NAMES = ('rigd', 'rig-tools', 'librig-client0', 'librig-client-dev')
NEXT = '+next'  # what the version of the second build has more
IMAGE = '05-host-code-image'  # an example's shared object, which is no program


class Failed(Exception):
    pass


def run(*command, **more):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                       **more)
    out = r.stdout.decode(errors='replace')
    if r.returncode:
        raise Failed(f'{" ".join(command[:3])} ... exited with {r.returncode}:\n{out[-4000:]}')
    return out


# ------------------------------------------------------------------------------------------------ the tree

def tree_files():
    """Every file that the packages are made from, by its path in the tree."""
    # Root may look at a tree that is somebody else's.
    command = ['git', '-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
    r = subprocess.run(command, cwd=build.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if r.returncode == 0:
        names = r.stdout.decode().split('\0')
    else:
        names = [os.path.relpath(os.path.join(at, name), build.ROOT)
                 for at, _, files in os.walk(build.ROOT) for name in files]
    return sorted(name for name in set(names)
                  if os.path.isfile(os.path.join(build.ROOT, name)) and not name.startswith(('build', '.git'))
                  and '__pycache__' not in name)


def tree_digest():
    digest = hashlib.sha256()
    for name in tree_files():
        if not name.startswith('tests/'):
            with open(os.path.join(build.ROOT, name), 'rb') as f:
                digest.update(name.encode() + b'\0' + hashlib.sha256(f.read()).digest())
    return digest.hexdigest()


def is_of_tree(folder, digest):
    try:
        with open(os.path.join(folder, '.of-tree'), encoding='utf-8') as f:
            return f.read() == digest and bool(glob.glob(f'{folder}/*.deb'))
    except FileNotFoundError:
        return False


def build_in_chroot(release, folder):
    """As a builder of that release: its compiler, its libraries, its debhelper."""
    build.check_machine()
    with tempfile.TemporaryDirectory(prefix='packages-', dir=os.path.dirname(folder)) as work:
        os.chmod(work, 0o755)
        source = os.path.join(work, 'rig')
        for name in tree_files():
            os.makedirs(os.path.dirname(os.path.join(source, name)), exist_ok=True)
            shutil.copy(os.path.join(build.ROOT, name), os.path.join(source, name), follow_symlinks=False)
        with open(os.path.join(work, 'sources.list'), 'w', encoding='utf-8') as f:
            f.write(build.sources(release))
        hooks = [f'mkdir "$1/rig" && cp -a {source} "$1/rig/"',
                 'DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -y --no-install-recommends build-dep /rig/rig',
                 'DEB_BUILD_OPTIONS=nocheck chroot "$1" sh -c "cd /rig/rig && dpkg-buildpackage -us -uc -b"',
                 f'cp "$1"/rig/*.deb {folder}/']
        run('mmdebstrap', '--mode=root', '--variant=apt', '--aptopt=APT::Install-Recommends "false"',
            *build.apt_options(), *['--customize-hook=' + hook for hook in hooks],
            release, '/dev/null', os.path.join(work, 'sources.list'))


def of_tree(release, say):
    """A folder with the .deb files of this tree as it is, built if need be."""
    own = release == build.own_release()
    folder = os.path.join(build.ROOT, 'build-package') if own else os.path.join(build.cache(), 'packages-' + release)
    digest = tree_digest()
    if is_of_tree(folder, digest):
        return folder
    say(f'building the packages of {release}')
    if own:
        run(os.path.join(build.ROOT, 'dev'), 'package', env=dict(os.environ, DEB_BUILD_OPTIONS='nocheck'))
    else:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        build_in_chroot(release, folder)
    with open(os.path.join(folder, '.of-tree'), 'w', encoding='utf-8') as f:
        f.write(digest)
    return folder


def in_folder(folder):
    """Path by name, of those that belong on a machine: not the debug symbols."""
    found = {os.path.basename(path).split('_')[0]: path for path in sorted(glob.glob(f'{folder}/*.deb'))}
    lacking = [name for name in NAMES if name not in found]
    if lacking:
        raise Failed(f'{folder} has no package {", ".join(lacking)}')
    return {name: path for name, path in found.items() if not name.endswith('-dbgsym')}


# ------------------------------------------------------------------------------------------------ made of them

def make_next(package, to):
    """The same package as a later version: what the next build of an unchanged tree would be."""
    tree = os.path.join(to, 'tree')
    run('dpkg-deb', '-R', package, tree)
    control = os.path.join(tree, 'DEBIAN/control')
    with open(control, encoding='utf-8') as f:
        lines = f.read().splitlines()
    version = next(line.split()[1] for line in lines if line.startswith('Version: '))
    with open(control, 'w', encoding='utf-8') as f:
        f.writelines(line.replace(version, version + NEXT) + '\n' for line in lines)
    run('dpkg-deb', '--root-owner-group', '-Zgzip', '-z1', '-b', tree, to)
    shutil.rmtree(tree)


def compile_programs(packages, sources, sysroot, to):
    """With pkg-config and what the packages install, as a reader of the README does."""
    for name in ('librig-client0', 'librig-client-dev'):
        run('dpkg', '-x', packages[name], sysroot)
    found = glob.glob(f'{sysroot}/usr/lib/*/pkgconfig')
    if not found:
        raise Failed('librig-client-dev has no pkg-config file')
    flags = run('pkg-config', '--cflags', '--libs', 'rig-client',
                env=dict(os.environ, PKG_CONFIG_SYSROOT_DIR=sysroot, PKG_CONFIG_LIBDIR=found[0])).split()
    # The library of another release may need symbols that this machine's C library has not: the guest's has.
    flags.append('-Wl,--unresolved-symbols=ignore-in-shared-libs')
    for source in sources:
        name = os.path.basename(source)[:-2]
        if name == IMAGE:
            run('cc', '-O2', '-shared', '-fPIC', source, '-o', os.path.join(to, name + '.so'), *flags)
        else:
            run('cc', '-O2', '-std=gnu11', source, '-o', os.path.join(to, name), *flags)
