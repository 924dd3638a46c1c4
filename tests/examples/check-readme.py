# SPDX-License-Identifier: ISC
"""Holds README.md to the tree: its program is docs/examples/01-hello.c, and compiles by the line it gives.

It is compiled in an empty folder, with what pkg-config says of the build tree, and run twice: with the rigd of
the build as a private one, and with one at an address. Links to files of the tree must lead somewhere.
Usage: check-readme.py ROOT BUILD RIGD
"""

import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

import run


def check_links(root):
    wrong = []
    for path in ['README.md', 'NEWS.md'] + glob.glob('docs/*.md', root_dir=root):
        with open(os.path.join(root, path), encoding='utf-8') as f:
            text = f.read()
        for link in re.findall(r'\]\(([^)#]+)[^)]*\)', text):
            if not os.path.exists(os.path.join(root, os.path.dirname(path), link)):
                wrong.append(f'{path}: links to {link}, which is not there')
    return wrong


def program_of(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    found = re.search(r'```c\n(.*?)```', text, re.S)
    return found.group(1) if found else text[text.index('#include'):]


def check_program(root, build, rigd):
    hello = program_of(os.path.join(root, 'README.md'))
    if hello != program_of(os.path.join(root, 'docs/examples/01-hello.c')):
        return ['the program of README.md is not docs/examples/01-hello.c']
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(build, 'meson-uninstalled'),
                           LD_LIBRARY_PATH=os.path.join(build, 'libclient'), RIG_RIGD=rigd)
        environment.pop('RIG_ADDRESS', None)
        with open(os.path.join(folder, 'hello.c'), 'w', encoding='utf-8') as f:
            f.write(hello)
        cc = shlex.join(shlex.split(os.environ.get('CC', 'cc')))
        compiled = subprocess.run(f'{cc} hello.c $(pkg-config --cflags --libs rig-client) -o hello', shell=True,
                                  cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if compiled.returncode:
            return [compiled.stderr]
        for address in ('private', 'shared'):
            pid = None
            environment['RIG_ADDRESS'] = address
            if address == 'shared':
                pid, environment['RIG_ADDRESS'] = run.start_rigd(rigd, folder)
            said = subprocess.run(['./hello'], cwd=folder, env=environment, capture_output=True, text=True,
                                  check=False)
            if said.returncode or said.stdout != 'hello\n':
                wrong.append(f'hello with a {address} rigd printed {said.stdout!r}: {said.stderr}')
            ended = run.stop_rigd(pid) if pid else None
            if ended:
                wrong.append(ended)
    return wrong


def main():
    root, build, rigd = sys.argv[1:]
    wrong = check_links(root) + check_program(root, os.path.abspath(build), os.path.abspath(rigd))
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
