# SPDX-License-Identifier: ISC
"""What the tests of firmware stand on: tables of small images, folders with them, and rigctl run on both.

Digests are hashlib's. A zst file is written here by its format (RFC 8878), of raw and run-length blocks, so that its
reader is not tested by its own writer; xz is Python's.
"""

import hashlib
import json
import lzma
import os
import struct
import subprocess
import tempfile
import unittest
import zlib

DEADLINE = 60  # seconds for what takes milliseconds, on a machine that does other things
RIGCTL = os.environ.get('RIGCTL', 'rigctl')
DONE, FAILED, WRONG, DENIED = 0, 1, 2, 4


def environment(**more):
    """Of rigctl: no proxies, no home, but what a test gives."""
    clean = {k: v for k, v in os.environ.items()
             if not k.lower().endswith('_proxy') and not k.startswith(('LC_', 'XDG_')) and k not in ('LANG', 'HOME')}
    return {**clean, 'LC_ALL': 'C.UTF-8', **more}


def content_of(name, n):
    """Bytes that look like firmware: no two images share any, and they do not pack well."""
    return hashlib.shake_128(name.encode()).digest(n)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Image:
    def __init__(self, name, n=5000, vendor='acme', gpu='gpu1', upstream=None, data=None):
        self.name, self.vendor, self.gpu, self.upstream = name, vendor, gpu, upstream
        self.data = content_of(name, n) if data is None else data

    def line(self):
        words = [self.vendor, self.gpu, self.name, str(len(self.data)), digest(self.data)]
        return ' '.join(words + ([self.upstream] if self.upstream else []))


# ---------------------------------------------------------------- packed files

ZST_MAGIC = 0xfd2fb528
ZST_BLOCK = 128 * 1024


def zst_frame(blocks, n_out):
    """A frame of blocks (type, what is in it, bytes it makes), the window of a single segment."""
    frame = struct.pack('<IBQ', ZST_MAGIC, 0xe0, n_out)  # single segment, eight bytes of content size
    for i, (kind, body, n) in enumerate(blocks):
        head = (i == len(blocks) - 1) | kind << 1 | n << 3
        frame += struct.pack('<I', head)[:3] + body
    return frame


def zst(data):
    cuts = [data[i:i + ZST_BLOCK] for i in range(0, len(data), ZST_BLOCK)] or [b'']
    return zst_frame([(0, cut, len(cut)) for cut in cuts], len(data))


def zst_zeros(n_blocks, claimed=None):
    """A bomb: four bytes for each 128 KiB."""
    n = n_blocks * ZST_BLOCK
    return zst_frame([(1, b'\0', ZST_BLOCK)] * n_blocks, n if claimed is None else claimed)


def zst_skippable(n):
    return struct.pack('<II', 0x184d2a50, n) + b'x' * n


def xz(data):
    return lzma.compress(data, preset=0)


def xz_of_dictionary(data, bits):
    """The same with another size of dictionary in its head (.xz file format 5.3.1)."""
    packed = bytearray(xz(data))
    size = (packed[12] + 1) * 4  # of the block's head, behind the stream's
    assert packed[14:16] == b'\x21\x01', 'the first filter is LZMA2'
    packed[16] = bits
    packed[12 + size - 4:12 + size] = struct.pack('<I', zlib.crc32(bytes(packed[12:12 + size - 4])))
    return bytes(packed)


# ---------------------------------------------------------------- rigctl


class Firmware(unittest.TestCase):
    """Each test has a folder of its own, in it a table, rig's folder of a user, and what it makes."""
    maxDiff = None

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.own = self.path('data/rig/firmware')
        self.table = self.path('table')
        self.environment = environment(XDG_DATA_HOME=self.path('data'), HOME=self.path('home'))
        self.pin()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def pin(self, *images):
        with open(self.table, 'w', encoding='utf-8') as f:
            f.write('# the images of a test\n\n' + ''.join(image.line() + '\n' for image in images))

    def put(self, path, data):
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(data)
        return path

    def command(self, *args):
        return [RIGCTL, '--user', 'firmware', *args, '--images=' + self.table]

    def run_rigctl(self, *command, **more):
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=self.environment, timeout=2 * DEADLINE, check=False, **more)
        out, err = ended.stdout.decode(), ended.stderr.decode()
        if 'Sanitizer' in err or 'runtime error:' in err:
            raise AssertionError(err)
        return ended.returncode, out, err

    def firmware(self, *args, **more):
        """Runs rigctl --user firmware with the test's table. Return: status, stdout, stderr."""
        return self.run_rigctl(*self.command(*args), **more)

    def check(self, *args):
        """What check says of each image, by name, and its status."""
        status, out, _ = self.firmware('check', '--json=short', *args)
        return {image['Name']: image for image in json.loads(out)['Images']}, status

    def hidden(self):
        """The files in rig's folder that are on their way."""
        return sorted(os.path.relpath(os.path.join(folder, name), self.own) for folder, _, names in os.walk(self.own)
                      for name in names if name.startswith('.'))


def read(path):
    with open(path, 'rb') as f:
        return f.read()
