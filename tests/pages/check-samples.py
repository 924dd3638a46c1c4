# SPDX-License-Identifier: ISC
"""Every page of section 3 has a whole program, which compiles without a warning as it stands and runs against a rigd;
what the program's comments say that a line prints, it prints.

Usage: check-samples.py ROOT BUILD RIGD COMPILER SANITIZERS. The compiler's words are parted by |; SANITIZERS is
what the library was built with, as meson names it ("none", "address,undefined").
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import mdoc

FLAGS = ['-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-Wno-missing-field-initializers']
PRINTS = re.compile(r'\b(?:puts|printf)\([^;]*;\s*/\* (.*?) \*/', re.S)
SECONDS = 60


def start_rigd(rigd, folder):
    """rigd on a socket that listens already, as systemd hands it over. Return: its pid and its address."""
    path = os.path.join(folder, 'rigd.sock')
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen(16)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(listening.fileno(), 3)
            os.set_inheritable(3, True)
            os.execve(rigd, [rigd], dict(os.environ, LISTEN_FDS='1', LISTEN_PID=str(os.getpid())))
        finally:
            os._exit(127)
    listening.close()
    return pid, f'unix:{path}'


def build(page, code, folder, arguments):
    root, where, compiler, sanitizers = arguments
    source, program = pathlib.Path(folder, 'sample.c'), pathlib.Path(folder, 'sample')
    source.write_text(code, encoding='utf-8')
    command = [*compiler, *FLAGS, f'-I{root}/include', str(source), '-o', str(program), f'-L{where}', '-lrig-client']
    if sanitizers != 'none':
        command.append(f'-fsanitize={sanitizers}')
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return program, [] if run.returncode == 0 else [f'{page}: its program does not compile:\n{run.stderr}']


def check(page, code, arguments, environment):
    with tempfile.TemporaryDirectory() as folder:
        program, complaints = build(page, code, folder, arguments)
        if complaints:
            return complaints
        try:
            run = subprocess.run([str(program)], cwd=folder, env=environment, capture_output=True, text=True,
                                 timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return [f'{page}: its program does not end']
    if run.returncode or run.stderr:
        complaints.append(f'{page}: its program ends with {run.returncode}, and says {run.stderr!r}')
    for said in PRINTS.findall(code):
        if said not in run.stdout.splitlines():
            complaints.append(f'{page}: its program prints {run.stdout!r}, and its comment says {said!r}')
    return complaints


def main():
    root, where, rigd, compiler, sanitizers = sys.argv[1:6]
    arguments = (root, pathlib.Path(where, 'libclient'), compiler.split('|'), sanitizers)
    complaints, programs = [], 0
    with tempfile.TemporaryDirectory() as folder:
        pid, address = start_rigd(rigd, folder)
        environment = dict(os.environ, RIG_ADDRESS=address, LD_LIBRARY_PATH=str(arguments[1]), TMPDIR=folder)
        environment.pop('RIG_TRANSPORT', None)
        for page in [p for p in mdoc.pages(root) if p.section == '3']:
            samples = [d for d in page.displays('EXAMPLES') if re.search(r'^int main\(', d, re.M)]
            complaints += [] if samples else [f'{page}: its EXAMPLES have no program']
            for code in samples:
                programs += 1
                complaints += check(page, code, arguments, environment)
        os.kill(pid, signal.SIGTERM)
        status = os.waitpid(pid, 0)[1]
        complaints += [f'rigd ended with status {status}'] if status else []
    return mdoc.report('programs', complaints, programs)


if __name__ == '__main__':
    sys.exit(main())
