# SPDX-License-Identifier: ISC
"""Compiles every header alone: public ones as C99 and as C++11, pedantic; internal ones as GNU C11.

The examples are held to C99 too, since a program should need no more. Usage: check-headers.py ROOT BUILD
"""

import os
import shlex
import subprocess
import sys
import tempfile

import tree

PEDANTIC = ['-Wall', '-Wextra', '-Wno-unused-parameter', '-pedantic', '-Werror']
# What a header of these includes from a library comes from its package, or from this build.
EXEMPT = ('tests/',)


def compiler(variable, names):
    """The compiler a variable names, else the first of the names that is installed, or None."""
    chosen = shlex.split(os.environ.get(variable, ''))
    for command in [chosen] if chosen else [[n] for n in names]:
        try:
            subprocess.run(command + ['--version'], capture_output=True, check=True)
            return command
        except (OSError, subprocess.CalledProcessError):
            continue
    return None


def compile_text(command, text, ending):
    with tempfile.NamedTemporaryFile('w', suffix=ending) as f:
        f.write(text)
        f.flush()
        r = subprocess.run(command + ['-fsyntax-only', f.name], capture_output=True, text=True, check=False)
    return r.stderr if r.returncode else None


def main():
    root, build = map(os.path.abspath, sys.argv[1:])
    cc, cxx = compiler('CC', ['gcc', 'clang', 'cc']), compiler('CXX', ['g++', 'clang++', 'c++'])
    if not cc or not cxx:
        print('no C or no C++ compiler to try the headers with')
        return 77
    include = ['-I', os.path.join(root, 'include')]
    internal = include + ['-I', root, '-I', os.path.join(build, 'protocol'), '-D_GNU_SOURCE']
    complaints, looked_at = [], 0

    def expect(path, command, text, ending):
        nonlocal looked_at
        looked_at += 1
        said = compile_text(command, text, ending)
        if said:
            complaints.append(f'{path}: {shlex.join(command)}\n{said}')

    for path in tree.files(root, ('.h',)):
        if path.startswith('include/'):
            text = f'#include <{path[len("include/"):]}>\n'
            expect(path, cc + ['-std=c99'] + PEDANTIC + include, text, '.c')
            expect(path, cxx + ['-std=c++11'] + PEDANTIC + include, text, '.cc')
        elif not path.startswith(EXEMPT):
            expect(path, cc + ['-std=gnu11', '-Wall', '-Werror'] + internal, f'#include "{path}"\n', '.c')
    for path in tree.files(root, ('.c',)):
        if path.startswith('docs/examples/'):
            source = os.path.join(root, path)
            expect(path, cc + ['-std=c99', '-D_DEFAULT_SOURCE'] + PEDANTIC + include,
                   f'#include "{source}"\n', '.c')
    return tree.report('headers', complaints, looked_at)


if __name__ == '__main__':
    sys.exit(main())
