# SPDX-License-Identifier: ISC
"""Holds debian/ to the tree: each installed file is in one package, and each exported symbol in the symbols file.

The build is installed into an empty folder by the meson that made it, and the files found there are held to the lists
of debian/*.install, both ways. debian/librig-client0.symbols is held to libclient/librig-client.sym.

Usage: check-packages.py ROOT BUILD
"""

import fnmatch
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SKIP = 77


def symbols(root):
    """Each symbol of the map is in the symbols file with its version, and nothing else is."""
    text = (root / 'libclient/librig-client.sym').read_text(encoding='utf-8')
    want = set()
    for version, body in re.findall(r'(?m)^(RIG_[0-9.]+) \{(.*?)^\}', text, re.S):
        want.add(f'{version}@{version}')
        exported = body.split('global:')[1].split('local:')[0]
        want |= {f'{name}@{version}' for name in re.findall(r'\b(rig_\w+);', exported)}
    listed = (root / 'debian/librig-client0.symbols').read_text(encoding='utf-8')
    have = set(re.findall(r'(?m)^ (\S+@\S+) ', listed))
    wrong = [f'debian/librig-client0.symbols: {name} is missing' for name in sorted(want - have)]
    wrong += [f'debian/librig-client0.symbols: {name} is too much' for name in sorted(have - want)]
    return wrong if want else ['the map has no symbol: it was not read']


def meson(build):
    """The meson that configured this build, as its ninja file calls it."""
    text = (build / 'build.ninja').read_text(encoding='utf-8')
    return shlex.split(re.search(r'command = (.*?) --internal regenerate', text).group(1))


def options(build):
    listed = json.loads((build / 'meson-info/intro-buildoptions.json').read_text(encoding='utf-8'))
    return {option['name']: option['value'] for option in listed}


def installed(build):
    """Paths, as the packages would have them: below usr/ and with the library in its folder for the machine."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*meson(build), 'install', '--no-rebuild', '--destdir', folder]
        r = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False, timeout=240)
        if r.returncode:
            return None, r.stdout[-2000:] + r.stderr
        paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        paths = sorted(os.path.relpath(path, folder) for path in paths)
    prefix, libdir = options(build)['prefix'].strip('/'), options(build)['libdir']
    moved = []
    for path in paths:
        if path.startswith(f'{prefix}/{libdir}/') and '/systemd/' not in path:
            path = path.replace(f'{prefix}/{libdir}/', 'usr/lib/${DEB_HOST_MULTIARCH}/', 1)
        elif path.startswith(prefix + '/'):
            path = path.replace(prefix + '/', 'usr/', 1)
        moved.append(path)
    return moved, ''


def lists(root):
    """(package, pattern) of each line of debian/*.install; a folder stands for all below it."""
    for path in sorted((root / 'debian').glob('*.install')):
        for line in path.read_text(encoding='utf-8').splitlines():
            if line.strip():
                yield path.stem, line.split()[0]


def matches(path, pattern):
    patterns = [pattern]
    if '${env:SYSTEM_UNITS}' in pattern:
        patterns = [pattern.replace('${env:SYSTEM_UNITS}', units)
                    for units in ('lib/systemd/system', 'usr/lib/systemd/system')]
    return any(fnmatch.fnmatchcase(path, p) or path.startswith(p + '/') for p in patterns)


def packages(root, paths):
    wanted = list(lists(root))
    wrong = [] if wanted else ['debian/*.install lists nothing: they were not read']
    for path in paths:
        owners = {package for package, pattern in wanted if matches(path, pattern)}
        if len(owners) != 1:
            wrong.append(f'{path} is installed, and is in {len(owners)} packages {sorted(owners)}')
    for package, pattern in wanted:
        if not any(matches(path, pattern) for path in paths):
            wrong.append(f'debian/{package}.install: nothing that is installed matches {pattern}')
    return wrong


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    wrong = symbols(root)
    paths, said = installed(build)
    if paths is None:
        wrong.append(f'meson install: {said}')
    else:
        wrong += packages(root, paths)
    print('\n'.join(wrong) or f'{len(paths)} files, each in one package')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
