# SPDX-License-Identifier: ISC
"""Runs an example against a rigd and holds what it prints to what it should print.

Without --shared the example starts a private rigd of its own. With it, a rigd runs for all the processes of
the example: it is handed its listening socket, as systemd would, so that nobody waits for it to be ready; it
must end by itself, and cleanly, when it is told to. Each example runs in an empty folder of its own.
"""

import argparse
import difflib
import os
import signal
import socket
import subprocess
import sys
import tempfile

SHARED = ('09-shared-buffer', '10-loss')


def start_rigd(rigd, folder, options=()):
    """rigd on a socket that listens already: descriptor 3, with systemd's variables. Return: its pid."""
    path = os.path.join(folder, 'rigd.sock')
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen(16)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(listening.fileno(), 3)
            os.set_inheritable(3, True)  # also where it was 3 already
            environment = dict(os.environ, LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
            os.execve(rigd, [rigd, *options], environment)
        finally:
            os._exit(127)
    listening.close()
    return pid, 'unix:' + path


def stop_rigd(pid):
    """Return: what was wrong with its end, or None."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        return f'rigd ended before it was told to: status {status}'
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    if status:
        return f'rigd did not end cleanly: status {status}'
    return None


def make_input(folder, size):
    """A file of words and lines, the same every time, of no size that blocks divide."""
    words = (b'rig orders work', b'by the memory', b'it reads\n', b'and writes\n', b'\x00\xff\xfe {|}~ azAZ')
    state, data = 1, bytearray()
    while len(data) < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        data += words[(state >> 33) % len(words)] + bytes(((state >> 40) & 0xff,))
    with open(os.path.join(folder, 'input'), 'wb') as f:
        f.write(data[:size])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rigd', required=True)
    parser.add_argument('--expect', help='file with what it prints')
    parser.add_argument('--transport', choices=('ring', 'words', 'socket'))
    parser.add_argument('--input-bytes', type=int, help='make a file "input" of this length first')
    parser.add_argument('--show', action='store_true', help='run it for a person: show, compare nothing')
    parser.add_argument('example')
    parser.add_argument('args', nargs=argparse.REMAINDER)
    a = parser.parse_args()
    name = os.path.basename(a.example)
    rigd = os.path.abspath(a.rigd)
    command = [os.path.abspath(a.example)]
    command += [os.path.abspath(x) if x.endswith('.so') else x for x in a.args]
    environment = dict(os.environ, RIG_RIGD=rigd, RIG_ADDRESS='private')
    if a.transport:
        environment['RIG_TRANSPORT'] = a.transport
    wrong, pid = None, None
    with tempfile.TemporaryDirectory() as folder:
        if name in SHARED:
            pid, environment['RIG_ADDRESS'] = start_rigd(rigd, folder)
        if a.input_bytes is not None:
            make_input(folder, a.input_bytes)
        # Its stderr is a private rigd's as well, so this ends when both have.
        pipe = None if a.show else subprocess.PIPE
        r = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                           check=False)
        if pid:
            wrong = stop_rigd(pid)
    if r.returncode:
        wrong = f'{name} exited with {r.returncode}'
    if not a.show:
        said = r.stderr.decode(errors='replace')
        sys.stderr.write(said)
        if 'Sanitizer' in said or 'runtime error:' in said:
            wrong = wrong or f'a sanitizer complained of {name} or its rigd'
        printed = r.stdout.decode(errors='replace').splitlines()
        with open(a.expect, encoding='utf-8') as f:
            expected = f.read().splitlines()
        if printed != expected:
            print('\n'.join(difflib.unified_diff(expected, printed, 'expected', 'printed', lineterm='')))
            wrong = wrong or f'{name} printed something else'
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
