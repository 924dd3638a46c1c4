# SPDX-License-Identifier: ISC
"""Holds the library's exports, its symbol map, the public header and these tests to each other.

Every function of the header is in the map and exported, nothing else is, and each is called by a test here. The
header compiles by itself as C99 and as C++11, without a warning.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def header_functions(header):
    return set(re.findall(r'^RIG_API [^;#]*?\b(rig_\w+)\(', header.read_text(encoding='utf-8'), re.M))


def map_functions(path):
    text = path.read_text(encoding='utf-8')
    return set(re.findall(r'^\s+(rig_\w+);', text.split('global:')[1].split('local:')[0], re.M))


def exported(library, nm):
    command = [nm, '-D', '--defined-only', library]
    listing = subprocess.run(command, check=True, capture_output=True, text=True)
    names = (line.split()[-1].split('@')[0] for line in listing.stdout.splitlines())
    # the version's own name, and what sanitizers add
    versions = [n for n in listing.stdout.split() if n.startswith('RIG_0')]
    return {n for n in names if n.startswith('rig_')}, versions


def called(folder):
    text = ''.join(p.read_text(encoding='utf-8') for p in sorted(folder.glob('*.c')))
    return set(re.findall(r'\b(rig_\w+)\(', text))


def compiles(compiler, standard, language, include):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, 'use.' + language)
        text = '#include <rig/rig.h>\nint main(void) { return rig_error() == 0; }\n'
        source.write_text(text, encoding='utf-8')
        flags = ['-Wall', '-Wextra', '-pedantic', '-Werror', '-fsyntax-only', f'-I{include}']
        command = [*compiler, f'-std={standard}', *flags, str(source)]
        return subprocess.run(command, check=False).returncode == 0


def differences(what, have, want):
    wrong = [f'{what}: {name} is missing' for name in sorted(want - have)]
    return wrong + [f'{what}: {name} is too much' for name in sorted(have - want)]


def main():
    root, library, nm, cc, cxx = pathlib.Path(sys.argv[1]), *sys.argv[2:6]
    functions = header_functions(root / 'include/rig/rig.h')
    names, versions = exported(library, nm)
    wrong = [] if len(functions) > 50 else ['the header has hardly any function: it was not read']
    wrong += differences('the map', map_functions(root / 'libclient/librig-client.sym'), functions)
    wrong += differences('the library', names, functions)
    wrong += [] if versions else ['the library: its symbols have no version']
    wrong += [f'the tests: none calls {name}' for name in sorted(functions - called(root / 'tests/api'))]
    for compiler, standard, language in ((cc, 'c99', 'c'), (cxx, 'c++11', 'cc')):
        if not compiler:
            print(f'skipped: no compiler for {standard}')
        elif not compiles(compiler.split('|'), standard, language, root / 'include'):
            wrong.append(f'the header does not compile as {standard}')
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
