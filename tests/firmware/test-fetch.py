# SPDX-License-Identifier: ISC
"""rigctl firmware fetch, from a server that does what servers do, and what they should not.

The server is Python's http.server; what it answers a path with is a function of the test's. It notes every request
with the range that was asked for. Nothing here leaves the machine.
"""

import contextlib
import fcntl
import http.server
import os
import pty
import random
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import unittest

import stand
from stand import DENIED, DONE, FAILED, WRONG, Firmware, Image

A = Image('acme/a.bin', n=50000)
B = Image('acme/sub/b.bin', n=3000)


def await_(what, condition):
    until = time.monotonic() + stand.DEADLINE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f'waited {stand.DEADLINE} seconds for {what}')
        time.sleep(0.01)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get('Range')))
        answer = self.server.answers.get(self.path.split('?')[0])
        if answer:
            answer(self)
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # rigctl closes where it has seen enough


# ---------------------------------------------------------------- what a server answers

def first_of(handler):
    asked = re.fullmatch(r'bytes=(\d+)-', handler.headers.get('Range') or '')
    return int(asked[1]) if asked else None


def head(handler, status, length, **headers):
    handler.send_response(status)
    if length is not None:
        handler.send_header('Content-Length', str(length))
    for name, value in headers.items():
        handler.send_header(name.replace('_', '-'), value)
    handler.end_headers()


def serves(data, ranges=True):
    def answer(handler):
        first = first_of(handler) if ranges else None
        if first is None:
            head(handler, 200, len(data))
        elif first >= len(data):
            handler.send_error(416)
            return
        else:
            head(handler, 206, len(data) - first, Content_Range=f'bytes {first}-{len(data) - 1}/{len(data)}')
        handler.wfile.write(data[first or 0:])
    return answer


def sends(data, status=200, length=None, then=None, **headers):
    """The same whatever is asked, without a length unless one is given."""
    def answer(handler):
        head(handler, status, length, **headers)
        handler.wfile.write(data)
        handler.wfile.flush()
        if then:
            then()
    return answer


def cuts(data, step):
    """Each connection ends after some bytes more."""
    def answer(handler):
        first = first_of(handler) or 0
        if first:
            head(handler, 206, len(data) - first, Content_Range=f'bytes {first}-{len(data) - 1}/{len(data)}')
        else:
            head(handler, 200, len(data))
        handler.wfile.write(data[first:first + step])
    return answer


class Fetch(Firmware):
    def setUp(self):
        super().setUp()
        self.released = threading.Event()  # what stalls goes on
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.answers, self.server.requests = {}, []
        thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.02})
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.released.set)
        self.base = f'http://127.0.0.1:{self.server.server_address[1]}/tree'
        self.pin(A)
        self.target = os.path.join(self.own, A.name)
        self.part = os.path.join(self.own, 'acme/.a.bin.part')

    def answer(self, image, what):
        self.server.answers['/tree/' + image] = what

    def fetch(self, *args, **more):
        return self.firmware('fetch', 'acme', '--from=' + self.base, *args, **more)

    def fetched(self, *args):
        self.assertEqual(self.fetch(*args), (DONE, f'{self.target}: fetched\n', ''))
        self.assertEqual(stand.read(self.target), A.data)
        self.assertEqual(self.hidden(), [])

    def refused(self, sentence, status=FAILED, url=None):
        found = self.fetch()
        self.assertEqual((found[0], found[2]), (status, f'rigctl: {sentence}\n'))
        self.assertFalse(os.path.lexists(self.target), 'there must be nothing under the name')

    def not_fetched(self, sentence):
        self.refused(f'cannot fetch {self.base}/acme/a.bin: {sentence}')

    def stalls(self, n):
        """Sends some bytes, then waits for the end of the test."""
        def answer(handler):
            first = first_of(handler) or 0
            head(handler, 206 if first else 200, len(A.data) - first,
                 **({'Content_Range': f'bytes {first}-{len(A.data) - 1}/{len(A.data)}'} if first else {}))
            handler.wfile.write(A.data[first:n])
            handler.wfile.flush()
            self.released.wait(stand.DEADLINE)
        return answer

    def put_part(self, data):
        self.put('data/rig/firmware/acme/.a.bin.part', data)

    @contextlib.contextmanager
    def running(self, n):
        """A fetch that has n bytes and waits for more."""
        self.answer(A.name, self.stalls(n))
        process = subprocess.Popen([*self.command('fetch', 'acme', '--from=' + self.base)], env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            await_('the part', lambda: os.path.exists(self.part) and os.path.getsize(self.part) == n)
            yield process
        finally:
            process.kill()
            process.communicate()


class Fetches(Fetch):
    def test_all_that_is_missing_comes(self):
        self.pin(A, B, Image('other/c.bin', vendor='other'))
        self.answer(A.name, serves(A.data))
        self.answer(B.name, serves(B.data))
        b = os.path.join(self.own, B.name)
        self.assertEqual(self.fetch(), (DONE, f'{self.target}: fetched\n{b}: fetched\n', ''))
        self.assertEqual((stand.read(self.target), stand.read(b)), (A.data, B.data))
        self.assertEqual(stat.S_IMODE(os.stat(b).st_mode) & 0o133, 0)
        self.assertEqual(self.hidden(), [])
        self.assertEqual(self.server.requests, [('/tree/acme/a.bin', None), ('/tree/acme/sub/b.bin', None)])
        # The second time there is nothing to do, and nobody is asked.
        self.assertEqual(self.fetch(), (DONE, f'{self.target}: there already\n{b}: there already\n', ''))
        self.assertEqual(len(self.server.requests), 2)
        self.assertEqual(self.check('acme')[1], DONE)

    def test_what_is_elsewhere_is_not_fetched(self):
        path = self.put('elsewhere/acme/a.bin.xz', stand.xz(A.data))
        self.assertEqual(self.fetch('--path=' + self.path('elsewhere')), (DONE, f'{path}: there already\n', ''))
        self.assertEqual(self.server.requests, [])
        self.assertFalse(os.path.exists(self.own))

    def test_names_of_upstream_and_queries_are_kept(self):
        self.pin(Image(A.name, data=A.data, upstream='up/stream.bin'))
        self.answer('up/stream.bin', serves(A.data))
        for base in (self.base + '?h=20260916', self.base + '//?h=20260916'):
            self.assertEqual(self.firmware('fetch', 'acme', '--from=' + base), (DONE, f'{self.target}: fetched\n', ''))
            self.assertEqual(self.server.requests.pop(), ('/tree/up/stream.bin?h=20260916', None))
            os.unlink(self.target)

    def test_another_version_under_the_name_is_replaced_at_once(self):
        self.put('data/rig/firmware/acme/a.bin', b'old')
        with self.running(1000):
            self.assertEqual(stand.read(self.target), b'old')
        self.answer(A.name, serves(A.data))
        self.fetched()

    def test_redirects_are_followed(self):
        self.answer(A.name, sends(b'moved', 302, Location='/tree/b'))
        self.answer('b', serves(A.data))
        self.fetched()

    def test_a_server_without_lengths_will_do(self):
        self.answer(A.name, sends(A.data))
        self.fetched()

    def test_images_of_many_megabytes_come(self):
        big = Image('acme/big.bin', n=20_000_000)
        self.pin(big)
        self.answer(big.name, serves(big.data))
        self.assertEqual(self.fetch()[0], DONE)
        self.assertEqual(stand.digest(stand.read(os.path.join(self.own, big.name))), stand.digest(big.data))


class Resumes(Fetch):
    def test_a_connection_that_ends_in_the_middle_is_followed_by_another(self):
        self.answer(A.name, cuts(A.data, 20000))
        self.fetched()
        self.assertEqual([r for _, r in self.server.requests], [None, 'bytes=20000-', 'bytes=40000-'])

    def test_connections_that_bring_little_each_are_not_made_for_ever(self):
        self.answer(A.name, cuts(A.data, 100))
        status, _, err = self.fetch()
        self.assertEqual(status, FAILED)
        self.assertIn(f'cannot fetch {self.base}/acme/a.bin: ', err)
        self.assertEqual((len(self.server.requests), os.path.getsize(self.part)), (20, 2000))

    def test_kill_leaves_nothing_under_the_name_and_the_next_fetch_goes_on(self):
        for n in (1000, 23456):
            with self.running(n) as process:
                process.send_signal(signal.SIGKILL)
                process.wait(stand.DEADLINE)
            self.assertFalse(os.path.lexists(self.target))
            self.assertEqual(stand.read(self.part), A.data[:n])
            self.assertEqual(self.check()[0][A.name]['State'], 'missing')
        self.answer(A.name, serves(A.data))
        self.fetched()
        self.assertEqual([r for _, r in self.server.requests], [None, 'bytes=1000-', 'bytes=23456-'])

    def test_killed_at_any_moment_there_is_the_image_under_the_name_or_nothing(self):
        def answer(handler):  # a little at a time, so that moments differ
            first = first_of(handler) or 0
            head(handler, 206 if first else 200, len(A.data) - first,
                 **({'Content_Range': f'bytes {first}-{len(A.data) - 1}/{len(A.data)}'} if first else {}))
            for at in range(first, len(A.data), 2500):
                handler.wfile.write(A.data[at:at + 2500])
                handler.wfile.flush()
                time.sleep(0.001)
        self.answer(A.name, answer)
        random.seed(4)
        whole = 0
        for _ in range(60):
            process = subprocess.Popen(self.command('fetch', 'acme', '--from=' + self.base), env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0.005, 0.1))
            process.kill()
            process.wait()
            part = stand.read(self.part) if os.path.exists(self.part) else b''
            self.assertTrue(A.data.startswith(part), 'a part is the start of the image')
            if os.path.lexists(self.target):
                self.assertEqual(stand.read(self.target), A.data)
                os.unlink(self.target)
                whole += 1
        self.fetched()
        print(f'{whole} of 60 were whole before they were killed', file=sys.stderr)

    def test_interrupts_leave_the_part_too(self):
        with self.running(1000) as process:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(stand.DEADLINE), -signal.SIGINT)
        self.assertEqual(stand.read(self.part), A.data[:1000])

    def test_a_part_that_is_whole_needs_no_server(self):
        self.put_part(A.data)
        self.fetched()
        self.assertEqual(self.server.requests, [])

    def test_a_part_of_something_else_is_fetched_from_its_start(self):
        self.answer(A.name, serves(A.data))
        for part, ranges in ((b'x' * 1000, ['bytes=1000-', None]), (b'x' * 50000, [None]), (b'x' * 50001, [None])):
            self.put_part(part)
            self.fetched()
            self.assertEqual([r for _, r in self.server.requests], ranges)
            self.server.requests.clear()
            os.unlink(self.target)

    def test_a_server_that_knows_no_ranges_sends_all(self):
        self.answer(A.name, serves(A.data, ranges=False))
        self.put_part(A.data[:1000])
        self.fetched()
        self.assertEqual([r for _, r in self.server.requests], ['bytes=1000-'])

    def test_a_server_whose_file_is_shorter_now_is_asked_from_the_start(self):
        def answer(handler):
            (serves(A.data) if first_of(handler) is None else sends(b'no', 416))(handler)
        self.answer(A.name, answer)
        self.put_part(A.data[:1000])
        self.fetched()
        self.assertEqual([r for _, r in self.server.requests], ['bytes=1000-', None])

    def test_the_time_that_is_given_ends_it_and_the_part_stays(self):
        self.answer(A.name, self.stalls(1000))
        status, out, err = self.fetch('--time=500ms')
        self.assertEqual((status, out, err), (FAILED, '', f'rigctl: cannot fetch {self.base}/acme/a.bin: the time is over\n'))
        self.assertEqual(stand.read(self.part), A.data[:1000])

    def test_two_at_once_do_not_mix(self):
        with self.running(1000):
            self.refused('acme/a.bin is being fetched by somebody else')
        self.assertEqual(stand.read(self.part), A.data[:1000])


class Refuses(Fetch):
    def test_other_bytes(self):
        other = stand.content_of('other', len(A.data))
        self.answer(A.name, serves(other))
        for part in (None, A.data[:1000]):
            if part:
                self.put_part(part)
            self.refused(f'{self.base}/acme/a.bin is not the image that is pinned: its SHA-256 is {stand.digest(other)}, '
                         f'not {stand.digest(A.data)}')
            self.assertEqual(self.hidden(), [])

    def test_other_lengths(self):
        n = len(A.data)
        self.answer(A.name, serves(A.data + b'x'))
        self.not_fetched(f"the server's file has {n + 1} bytes, not {n}")
        self.answer(A.name, serves(A.data[:-1]))
        self.not_fetched(f"the server's file has {n - 1} bytes, not {n}")
        self.answer(A.name, sends(A.data + b'x'))
        self.not_fetched(f"the server's file has more than {n} bytes")
        self.answer(A.name, sends(A.data[:-1]))
        self.not_fetched(f"the server's file has {n - 1} bytes, not {n}")

    def test_a_server_that_never_ends_is_stopped_at_the_length(self):
        def answer(handler):
            head(handler, 200, None)
            with contextlib.suppress(OSError):
                while not self.released.is_set():
                    handler.wfile.write(bytes(1 << 16))
        self.answer(A.name, answer)
        self.not_fetched(f"the server's file has more than {len(A.data)} bytes")
        for name in self.hidden():
            self.assertLessEqual(os.path.getsize(os.path.join(self.own, name)), len(A.data))

    def test_other_parts_than_were_asked_for(self):
        n = len(A.data)
        rest = A.data[1000:]
        for header, sentence in (
                (f'bytes 999-{n - 2}/{n}', f'the server sends another part: bytes 999-{n - 2}/{n}'),
                (f'bytes 1000-{n}/{n + 1}', f"the server's file has {n + 1} bytes, not {n}"),
                (f'bytes 0-{n - 1001}/*', f'the server sends another part: bytes 0-{n - 1001}/*'),
                ('lines 1-2/3', 'the server sends another part: lines 1-2/3'),
                (None, 'the server sends a part without saying which')):
            self.put_part(A.data[:1000])
            self.answer(A.name, sends(rest, 206, len(rest), **({'Content_Range': header} if header else {})))
            self.not_fetched(sentence)
            self.assertEqual(stand.read(self.part), A.data[:1000])
        self.answer(A.name, sends(rest, 206, len(rest), Content_Range=f'bytes 1000-{n - 1}/*'))
        self.fetched()

    def test_files_that_are_not_there(self):
        self.not_fetched('the server has no such file (HTTP 404)')
        self.assertEqual(self.hidden(), [])
        self.answer(A.name, sends(b'', 503))
        self.not_fetched('the server refuses (HTTP 503)')
        self.answer(A.name, sends(b'', 416))
        self.not_fetched('the server refuses (HTTP 416)')

    def test_one_that_is_not_there_does_not_hold_up_the_others(self):
        self.pin(A, B)
        self.answer(B.name, serves(B.data))
        b = os.path.join(self.own, B.name)
        self.assertEqual(self.fetch(), (FAILED, f'{b}: fetched\n', f'rigctl: cannot fetch {self.base}/acme/a.bin: '
                                        'the server has no such file (HTTP 404)\n'))

    def test_no_server(self):
        self.pin(A, B)  # the second is not tried, since it would fare as badly
        with socket.socket() as closed:
            closed.bind(('127.0.0.1', 0))  # and nobody listens
            port = closed.getsockname()[1]
            status, out, err = self.firmware('fetch', 'acme', f'--from=http://127.0.0.1:{port}')
        self.assertEqual((status, out), (FAILED, ''))
        self.assertRegex(err, rf'\Arigctl: cannot fetch http://127.0.0.1:{port}/acme/a.bin: Failed to connect.*\n\Z')
        # RFC 6761: there is no such host anywhere.
        status, _, err = self.firmware('fetch', 'acme', '--from=http://rig.invalid', '--time=30s')
        self.assertEqual(status, FAILED)
        self.assertRegex(err, r'\Arigctl: cannot fetch http://rig.invalid/acme/a.bin: '
                         r'(Could not resolve host: rig.invalid|the time is over)\n\Z')
        self.assertEqual(self.hidden(), [])

    def test_what_is_no_http(self):
        def answer(handler):
            handler.wfile.write(b'\x00\x01\x02 no status line\r\n\r\n' + A.data)
        self.answer(A.name, answer)
        status, _, err = self.fetch()
        self.assertEqual(status, FAILED)
        self.assertIn(f'cannot fetch {self.base}/acme/a.bin: ', err)
        self.answer(A.name, lambda handler: None)  # closes without a word
        self.not_fetched('Empty reply from server')
        self.assertFalse(os.path.lexists(self.target))

    def test_redirects_to_files_and_in_circles(self):
        secret = self.put('secret', A.data)
        for where, word in (('file://' + secret, 'file'), ('/tree/acme/a.bin', 'redirects')):
            self.answer(A.name, sends(b'', 302, Location=where))
            status, _, err = self.fetch()
            self.assertEqual(status, FAILED)
            self.assertIn(word, err)
            self.assertFalse(os.path.lexists(self.target))

    def test_addresses_that_are_none(self):
        for base in ('', 'ftp://x', 'file:///etc', '/lib/firmware', 'localhost', 'http://x/#y'):
            self.assertEqual(self.firmware('fetch', 'acme', '--from=' + base),
                             (WRONG, '', f'rigctl: --from: "{base}" is no http or https address of a folder\n'))
        status, _, err = self.firmware('fetch', 'acme', '--from=http://a b/\x1b')
        self.assertEqual((status, '\x1b' in err), (FAILED, False))

    def test_a_server_that_nobody_vouches_for(self):
        if not shutil.which('openssl'):
            self.skipTest('openssl, which makes the certificate, is not installed')
        pem = self.path('pem')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1', '-addext',
                        'subjectAltName=IP:127.0.0.1', '-keyout', pem + '.key', '-out', pem], check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, pem + '.key')
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.base = self.base.replace('http:', 'https:')
        self.answer(A.name, serves(A.data))
        status, _, err = self.fetch()
        self.assertEqual(status, FAILED)
        self.assertRegex(err, 'cannot fetch https://.*certificate')
        self.assertEqual(self.server.requests, [])


class Writes(Fetch):
    def setUp(self):
        super().setUp()
        self.answer(A.name, serves(A.data))

    def test_a_part_that_leads_elsewhere_is_not_written(self):
        other = self.put('other', b'mine')
        os.makedirs(os.path.dirname(self.part))
        os.symlink(other, self.part)
        self.refused(f'cannot write {self.part}: Too many levels of symbolic links')
        self.assertEqual(stand.read(other), b'mine')
        os.unlink(self.part)
        os.mkfifo(self.part)
        self.refused(f'cannot write {self.part}: it is no regular file')

    def test_a_folder_that_cannot_be_made(self):
        self.put('data/rig', b'a file')
        self.refused(f'cannot write {self.part}: Not a directory')

    def test_a_user_without_a_home_is_told(self):
        self.environment = stand.environment()
        self.assertEqual(self.fetch(), (FAILED, '', 'rigctl: neither XDG_DATA_HOME nor HOME names a folder\n'))

    def test_folders_of_others_are_not_written(self):
        nobody = {}
        os.makedirs(self.path('data'))
        os.chmod(self.path('data'), 0o555)
        if os.geteuid() == 0:
            nobody = {'user': 65534, 'group': 65534, 'extra_groups': []}
            os.chmod(self.folder, 0o755)
            try:
                subprocess.run([stand.RIGCTL, '--version'], stdout=subprocess.DEVNULL, check=True, **nobody)
            except OSError as e:
                self.skipTest(f'root writes everywhere, and nobody may not run rigctl here: {e}')
        self.assertEqual(self.fetch(**nobody), (DENIED, '', f'rigctl: cannot write {self.part}: Permission denied\n'))
        # The system's folder is root's.
        call = [word for word in self.command('fetch', 'acme', '--from=' + self.base) if word != '--user']
        self.assertEqual(self.run_rigctl(*call, **nobody), (
            DENIED, '', 'rigctl: cannot write /var/lib/rig/firmware/acme/.a.bin.part: Permission denied; '
            'that is for root; with --user it is for a rigd of your own\n'))

    def test_the_systems_folder_is_for_rigd_to_read_whatever_the_umask(self):
        # In a namespace of its own, where /var/lib is empty.
        space = ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs tmpfs /var/lib && "$@"', 'sh']
        done = subprocess.run([*space, 'true'], stderr=subprocess.PIPE, check=False)
        if done.returncode:
            self.skipTest(f'no file system can be mounted here: {done.stderr.decode()}')
        call = [word for word in self.command('fetch', 'acme', '--from=' + self.base) if word != '--user']
        status, out, err = self.run_rigctl(*space, 'sh', '-c', 'umask 077 && "$@" && cd /var/lib && '
                                           'stat -c "%A %n" rig rig/firmware rig/firmware/acme rig/firmware/acme/*', 'sh', *call)
        self.assertEqual((status, err), (DONE, ''))
        self.assertEqual(out, """\
/var/lib/rig/firmware/acme/a.bin: fetched
drwxr-xr-x rig
drwxr-xr-x rig/firmware
drwxr-xr-x rig/firmware/acme
-rw-r--r-- rig/firmware/acme/a.bin
""")

    def test_a_full_disk_is_said_and_fetching_goes_on_when_there_is_room(self):
        # A file system of 32 KiB, in a namespace of its own; the part is copied out of it at the end.
        script = ('mount -t tmpfs -o size=32k tmpfs "$1" && { shift; "$@"; status=$?; cp "$OWN"/acme/.a.bin.part "$COPY"; '
                  'exit $status; } || exit 77')
        os.makedirs(self.own)
        try:
            subprocess.run(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', self.own], check=True, stderr=subprocess.PIPE)
        except (OSError, subprocess.CalledProcessError) as e:
            self.skipTest(f'no file system can be mounted here: {e}')
        self.environment.update(OWN=self.own, COPY=self.path('copy'))
        status, out, err = self.run_rigctl('unshare', '-rm', 'sh', '-c', script, 'sh', self.own,
                                           *self.command('fetch', 'acme', '--from=' + self.base))
        self.assertEqual((out, err), ('', f'rigctl: cannot write {self.part}: No space left on device\n'))
        part = stand.read(self.path('copy'))
        self.assertTrue(0 < len(part) < len(A.data) and part == A.data[:len(part)], len(part))
        self.put_part(part)
        self.fetched()
        self.assertEqual(self.server.requests[-1], ('/tree/acme/a.bin', f'bytes={len(part)}-'))

    def test_progress_is_for_terminals(self):
        self.answer(A.name, self.stalls(1000))
        ours, theirs = pty.openpty()
        with os.fdopen(ours, 'rb', buffering=0) as terminal:
            process = subprocess.Popen(self.command('fetch', 'acme', '--from=' + self.base), env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs)
            os.close(theirs)
            fcntl.fcntl(terminal, fcntl.F_SETFL, os.O_NONBLOCK)
            said = b''

            def reads():
                nonlocal said
                with contextlib.suppress(OSError):  # its end, where nobody has it open any more
                    said += terminal.read(4096) or b''
                return said
            try:
                await_('progress', lambda: re.search(rb'\racme/a.bin: 1000B of 48.8K, [0-9.]+[BK]/s\x1b\[K', reads()))
                self.released.set()
                process.communicate(timeout=stand.DEADLINE)
            finally:
                process.kill()
                process.wait()


if __name__ == '__main__':
    unittest.main(verbosity=2)
