# SPDX-License-Identifier: ISC
"""rigctl firmware list and check, on folders with what can be in them: images plain, packed, old, hostile.

What an image is comes from hashlib; what a packed file is from the formats (stand.py), and from zstd(1) and xz(1)
where they are installed.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import unittest

import stand
from stand import DONE, FAILED, WRONG, Firmware, Image

A = Image('acme/a.bin')
SANITIZED = b'__asan_init' in stand.read(stand.RIGCTL)


class Found(Firmware):
    def found(self, path, packing, *args):
        images, status = self.check(*args)
        one = images['acme/a.bin']
        self.assertEqual((one['State'], one['Path'], one['Packing'], status), ('found', path, packing, DONE))
        return one

    def test_plain_zst_and_xz_are_found(self):
        self.pin(A)
        for suffix, data, packing in (('.xz', stand.xz(A.data), 'xz'), ('.zst', stand.zst(A.data), 'zst'),
                                      ('', A.data, 'plain')):
            # Each hides the one before: plain comes first, then zst, then xz.
            self.found(self.put('data/rig/firmware/acme/a.bin' + suffix, data), packing)

    def test_what_the_tools_pack_is_found(self):
        n = 3 << 20
        big = Image('acme/a.bin', data=stand.content_of('x', n // 2) + bytes(n // 2))
        self.pin(big)
        calls = (['zstd', '-q', '-19'], ['zstd', '-q', '--ultra', '-22', '--long=27'], ['zstd', '-q', '-1', '--no-check'],
                 ['xz', '-9e'], ['xz', '--check=crc32', '--lzma2=dict=2MiB'], ['xz', '--check=none'], ['xz', '-T2', '--block-size=1MiB'])
        for call in calls:
            if not shutil.which(call[0]):
                print(f'not tried, since it is not installed: {call[0]}', file=sys.stderr)
                continue
            packed = subprocess.run([*call, '-c'], input=big.data, stdout=subprocess.PIPE, check=True).stdout
            packing = 'zst' if call[0] == 'zstd' else 'xz'
            with self.subTest(call):
                path = self.put('data/rig/firmware/acme/a.bin.' + packing, packed)
                self.found(path, packing)
                os.unlink(path)

    def test_files_of_several_frames_or_streams_are_found(self):
        self.pin(A)
        half = len(A.data) // 2
        data = stand.zst(A.data[:half]) + stand.zst_skippable(100) + stand.zst(A.data[half:])
        path = self.put('data/rig/firmware/acme/a.bin.zst', data)
        self.found(path, 'zst')
        os.unlink(path)
        self.found(self.put('data/rig/firmware/acme/a.bin.xz', stand.xz(A.data[:half]) + stand.xz(A.data[half:])), 'xz')

    def test_folders_are_looked_in_by_their_order(self):
        self.pin(A)
        own = self.put('data/rig/firmware/acme/a.bin', A.data)
        self.found(own, 'plain')
        second = self.put('second/acme/a.bin.xz', stand.xz(A.data))
        places = f'--path={self.path("first")}:{self.path("second")}'
        self.found(second, 'xz', places)
        self.found(self.put('first/acme/a.bin', A.data), 'plain', places)

    def test_another_version_in_front_hides_nothing(self):
        self.pin(A)
        old = self.put('first/acme/a.bin', stand.content_of('old', len(A.data)))
        right = self.put('data/rig/firmware/acme/a.bin.zst', stand.zst(A.data))
        one = self.found(right, 'zst', '--path=' + self.path('first'))
        self.assertEqual(one['Remarks'], [{
            'Path': old,
            'Text': f'its SHA-256 is {stand.digest(stand.read(old))}, not {stand.digest(A.data)}'}])

    def test_links_lead_to_images(self):
        self.pin(A)
        self.put('store/a', A.data)
        os.makedirs(self.path('store/ad102'))
        os.symlink('../a', self.path('store/ad102/a.bin'))
        os.makedirs(self.own)
        os.symlink(self.path('store/ad102'), os.path.join(self.own, 'acme'))
        self.found(os.path.join(self.own, 'acme/a.bin'), 'plain')

    def test_a_user_without_xdg_has_a_folder_at_home(self):
        self.pin(A)
        path = self.put('home/.local/share/rig/firmware/acme/a.bin', A.data)
        for odd in (None, '', 'relative/path'):
            self.environment = stand.environment(HOME=self.path('home'), **({} if odd is None else {'XDG_DATA_HOME': odd}))
            self.found(path, 'plain')

    def test_the_systems_rigd_has_folders_of_its_own(self):
        self.put('data/rig/firmware/acme/a.bin', A.data)
        self.pin(A)
        for options, folders in (([], ['/var/lib/rig/firmware', '/lib/firmware']),
                                 (['--user'], [self.own, '/lib/firmware']),
                                 (['--system', '--path=/a:/b:/a'], ['/a', '/b', '/var/lib/rig/firmware', '/lib/firmware'])):
            _, out, _ = self.run_rigctl(stand.RIGCTL, 'firmware', 'check', '-j', '--images=' + self.table, *options)
            self.assertEqual(json.loads(out)['Folders'], folders)

    def test_without_a_home_the_kernels_folder_is_left(self):
        self.pin(A)
        self.environment = stand.environment()
        _, out, _ = self.firmware('check', '-j')
        self.assertEqual(json.loads(out)['Folders'], ['/lib/firmware'])


class NotFound(Firmware):
    def setUp(self):
        super().setUp()
        self.pin(A)

    def wrong(self, suffix, data, text):
        path = self.put('data/rig/firmware/acme/a.bin' + suffix, data)
        self.remarked(path, text)
        os.unlink(path)

    def no_zst(self, data):
        """It is refused, whatever libzstd finds wrong with it."""
        path = self.put('data/rig/firmware/acme/a.bin.zst', data)
        images, status = self.check()
        one = images['acme/a.bin']
        self.assertEqual((one['State'], status), ('wrong', FAILED))
        self.assertRegex(one['Remarks'][0]['Text'], r'\Ait is no whole zst file: .+')
        os.unlink(path)

    def remarked(self, path, text):
        images, status = self.check()
        one = images['acme/a.bin']
        self.assertEqual((one['State'], one['Path'], one['Packing'], status), ('wrong', '', '', FAILED), text)
        self.assertEqual(one['Remarks'], [{'Path': path, 'Text': text}])

    def test_files_of_another_length(self):
        self.wrong('', b'', 'it has 0 bytes, not 5000')
        self.wrong('', A.data[:-1], 'it has 4999 bytes, not 5000')
        self.wrong('', A.data + b'x', 'it has 5001 bytes, not 5000')

    def test_other_bytes_of_the_same_length(self):
        other = bytearray(A.data)
        other[2500] ^= 1
        text = f'its SHA-256 is {stand.digest(bytes(other))}, not {stand.digest(A.data)}'
        self.wrong('', other, text)
        self.wrong('.zst', stand.zst(bytes(other)), text)
        self.wrong('.xz', stand.xz(bytes(other)), text)

    def test_packed_files_that_are_none(self):
        for data in (b'', A.data):
            self.wrong('.xz', data, 'it is no whole xz file' if not data else 'it is no xz file')
        self.wrong('.zst', b'', 'it has 0 bytes, not 5000')
        self.no_zst(A.data)

    def test_packed_files_that_are_cut_off_or_have_more_behind_them(self):
        zst, xz = stand.zst(A.data), stand.xz(A.data)
        for n in (1, 5, 13, 20, len(zst) // 2, len(zst) - 1):
            self.no_zst(zst[:n])
        for n in (1, 12, 30, len(xz) // 2, len(xz) - 1):
            self.wrong('.xz', xz[:n], 'it is no whole xz file')
        self.wrong('.xz', xz + b'more', 'it is no whole xz file')
        self.no_zst(zst + b'more')

    def test_packed_files_of_another_length(self):
        self.wrong('.zst', stand.zst(A.data[:-1]), 'it has 4999 bytes, not 5000')
        self.wrong('.xz', stand.xz(A.data[:-1]), 'it has 4999 bytes, not 5000')
        self.wrong('.zst', stand.zst(A.data + b'x'), 'it unpacks to more than the 5000 bytes that are pinned')
        self.wrong('.xz', stand.xz(A.data + b'x'), 'it unpacks to more than the 5000 bytes that are pinned')

    def test_bombs_take_no_memory(self):
        more = 'it unpacks to more than the 5000 bytes that are pinned'
        bombs = {'.zst': (stand.zst_zeros(8192), stand.zst_zeros(8192, claimed=2**62), stand.zst_zeros(8192, claimed=5000)),
                 '.xz': (stand.xz(bytes(64 << 20)), stand.xz_of_dictionary(bytes(1 << 20), 28))}
        for suffix, files in bombs.items():
            for data in files:
                path = self.put('data/rig/firmware/acme/a.bin' + suffix, data)
                limited = {} if SANITIZED else {
                    'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))}
                status, out, err = self.firmware('check', '-j', **limited)
                self.assertEqual(status, FAILED, err)
                remark, = json.loads(out)['Images'][0]['Remarks']
                self.assertEqual(remark['Path'], path)
                self.assertRegex(remark['Text'], f'{more}|its dictionary needs more than 80 MiB|it is no whole zst file: .+')
                os.unlink(path)

    def test_an_endless_dictionary_is_refused(self):
        self.wrong('.xz', stand.xz_of_dictionary(A.data, 40), 'its dictionary needs more than 80 MiB')

    def test_huge_files_are_not_read(self):
        for suffix, text in (('', 'it has 1099511627776 bytes, not 5000'),
                             ('.zst', 'it has 1099511627776 bytes, more than any packing of 5000')):
            path = self.put('data/rig/firmware/acme/a.bin' + suffix, b'')
            os.truncate(path, 1 << 40)
            self.remarked(path, text)
            os.unlink(path)

    def test_what_is_no_file(self):
        path = os.path.join(self.own, 'acme/a.bin')
        os.makedirs(path)
        self.remarked(path, 'it is no regular file')
        os.rmdir(path)
        os.mkfifo(path)  # nobody writes: it must not be waited for
        self.remarked(path, 'it is no regular file')
        os.unlink(path)
        os.symlink('/dev/zero', path)
        self.remarked(path, 'it is no regular file')
        os.unlink(path)
        os.symlink('a.bin', path)
        self.remarked(path, 'it cannot be read: Too many levels of symbolic links')

    def test_links_to_nothing_and_files_for_folders_are_missing(self):
        path = os.path.join(self.own, 'acme/a.bin')
        os.makedirs(os.path.dirname(path))
        os.symlink('nowhere', path)
        self.assertEqual(self.check()[0]['acme/a.bin']['State'], 'missing')
        shutil.rmtree(self.own)
        self.put('data/rig/firmware/acme', b'')
        self.assertEqual(self.check()[0]['acme/a.bin']['State'], 'missing')

    @unittest.skipUnless(os.access(stand.RIGCTL, os.X_OK), 'rigctl is not built')
    def test_unreadable_files_are_said(self):
        path = self.put('data/rig/firmware/acme/a.bin', A.data)
        os.chmod(path, 0)
        nobody = {}
        if os.geteuid() == 0:
            nobody = {'user': 65534, 'group': 65534, 'extra_groups': []}
            os.chmod(self.folder, 0o755)
            try:
                subprocess.run([stand.RIGCTL, '--version'], stdout=subprocess.DEVNULL, check=True, **nobody)
            except OSError as e:
                self.skipTest(f'root reads everything, and nobody may not run rigctl here: {e}')
        status, out, _ = self.firmware('check', '-j', **nobody)
        self.assertEqual(status, FAILED)
        self.assertEqual(json.loads(out)['Images'][0]['Remarks'],
                         [{'Path': path, 'Text': 'it cannot be read: Permission denied'}])


class Says(Firmware):
    def test_missing_images_are_named_with_digest_and_places(self):
        b = Image('other/b.bin', vendor='other', n=2048)
        self.pin(A, b)
        self.put('data/rig/firmware/acme/a.bin', A.data)
        status, out, err = self.firmware('check')
        self.assertEqual(status, FAILED)
        self.assertEqual(out, f'''\
IMAGE       GPU  STATE   FILE
acme/a.bin  gpu1 found   {self.own}/acme/a.bin
other/b.bin gpu1 missing SHA-256 {stand.digest(b.data)}

Looked in {self.own}, /lib/firmware.
''')
        self.assertEqual(err, 'rigctl: other: 1 of 1 images are not there; fetch them: rigctl --user firmware fetch other\n')

    def test_a_vendor_alone_is_checked(self):
        self.pin(A, Image('other/b.bin', vendor='other'))
        self.put('data/rig/firmware/acme/a.bin', A.data)
        self.assertEqual(self.firmware('check', 'acme', '--no-legend'),
                         (DONE, f'acme/a.bin gpu1 found {self.own}/acme/a.bin\n', ''))
        self.assertEqual(self.check('other')[1], FAILED)

    def test_what_is_in_the_way_is_said_below(self):
        self.pin(A)
        path = self.put('data/rig/firmware/acme/a.bin', b'short')
        status, out, _ = self.firmware('check')
        self.assertEqual(status, FAILED)
        self.assertIn(f'acme/a.bin gpu1 wrong SHA-256 {stand.digest(A.data)}\n\n{path}: it has 5 bytes, not 5000\n', out)

    def test_names_of_folders_are_no_commands_of_the_terminal(self):
        self.pin(A)
        folder = self.path('\x1b[31m')
        os.makedirs(folder)
        self.put('\x1b[31m/acme/a.bin', A.data)
        _, out, err = self.firmware('check', '--path=' + folder)
        self.assertNotIn('\x1b', out + err)
        self.assertIn('\\x1b[31m/acme/a.bin', out)

    def test_list_says_what_is_pinned(self):
        self.pin(A, Image('other/b.bin', vendor='other', n=2048, upstream='elsewhere/c.bin'))
        status, out, err = self.firmware('list', '-j')
        self.assertEqual((status, err), (DONE, ''))
        self.assertEqual(json.loads(out), [
            {'Name': 'acme/a.bin', 'Vendor': 'acme', 'GPU': 'gpu1', 'Purpose': '', 'Bytes': 5000,
             'SHA256': stand.digest(A.data), 'Upstream': 'acme/a.bin', 'Package': '', 'PackageVersion': '', 'Licence': ''},
            {'Name': 'other/b.bin', 'Vendor': 'other', 'GPU': 'gpu1', 'Purpose': '', 'Bytes': 2048,
             'SHA256': stand.digest(stand.content_of('other/b.bin', 2048)), 'Upstream': 'elsewhere/c.bin', 'Package': '',
             'PackageVersion': '', 'Licence': ''}])
        self.assertIn('acme/a.bin', self.firmware('list')[1])
        self.assertIn('\n1 images.\n', self.firmware('list', 'other')[1])

    def test_the_pinned_table_tells_where_to_get_what_is_missing(self):
        status, out, err = self.run_rigctl(stand.RIGCTL, '--user', 'firmware', 'check', '-j',
                                           '--path=' + self.path('empty'))
        for image in json.loads(out)['Images']:
            self.assertIn(image['Package'], ('firmware-amd-graphics', 'firmware-nvidia-graphics'))
            if image['State'] != 'found':
                self.assertEqual(status, FAILED)
                self.assertIn(f'Debian has them in {image["Package"]} {image["PackageVersion"]} (', err)
                self.assertIn(f'rigctl --user firmware fetch {image["Vendor"]}\n', err)


class WrongCalls(Firmware):
    def wrong(self, sentence, *args, status=WRONG):
        self.assertEqual(self.firmware(*args), (status, '', f'rigctl: {sentence}\n'))

    def test_wrong_words(self):
        self.pin(A, Image('other/b.bin', vendor='other'))
        self.wrong('firmware: "frobnicate" is neither list, check nor fetch', 'frobnicate')
        self.wrong('firmware: "lsit" is neither list, check nor fetch; did you mean list?', 'lsit')
        self.wrong('no firmware is pinned of a vendor "otehr"; there are: acme, other; did you mean other?', 'check', 'otehr')
        self.wrong('no firmware is pinned of a vendor "\\x1b"; there are: acme, other', 'list', '\x1b')
        self.wrong('firmware fetch needs a vendor: rigctl firmware fetch VENDOR', 'fetch')
        self.pin()
        self.wrong('no firmware is pinned of a vendor "acme"; there are: none', 'list', 'acme')

    def test_options_that_say_nothing_here(self):
        self.pin(A)
        for job in ('list', 'check'):
            self.wrong(f'--from is no option of firmware {job}', job, '--from=http://localhost')
            self.wrong(f'--time is no option of firmware {job}', job, '--time=1')
        self.wrong('--path is no option of firmware list', 'list', '--path=/')
        self.wrong('--json is no option of firmware fetch', 'fetch', 'acme', '--json')
        self.wrong('--no-legend is no option of firmware fetch', 'fetch', 'acme', '--no-legend')
        self.wrong('firmware asks no rigd, so --address names none; there is --user', 'list', '--address=x')
        self.wrong('"relative" is no absolute path of a folder', 'check', '--path=relative')
        self.wrong('firmware is looked for in at most 16 folders', 'check', '--path=' + ':'.join(f'/{i}' for i in range(16)))

    def test_wrong_tables(self):
        good = A.line().split()
        lines = {
            'it has less than vendor, GPU, name, length and SHA-256': good[:4],
            'it has more than vendor, GPU, name, length and SHA-256': good + ['a', 'b'],
            '"10x" is no length': good[:3] + ['10x'] + good[4:],
            '"-1" is no length': good[:3] + ['-1'] + good[4:],
            '"18446744073709551617" is no length': good[:3] + [str(2**64 + 1)] + good[4:],
            'an image has 1 to 1073741824 bytes': good[:3] + ['0'] + good[4:],
            '"abc" is no SHA-256 in lower-case digits': good[:4] + ['abc'],
            f'"{good[4].upper()}" is no SHA-256 in lower-case digits': good[:4] + [good[4].upper()],
            '"ac/me" is no name of a vendor': ['ac/me'] + good[1:],
            '"-1" is no name of a GPU': good[:1] + ['-1'] + good[2:],
        }
        for name in ('../a', '/a', 'a/', 'a//b', 'a/../b', '.a', 'a/.b', 'a?b', 'a%2e', 'a' * 201, 'ä'):
            lines[f'"{name[:100]}" is no name of an image'] = good[:2] + [name] + good[3:]
        lines['"../up" is no name of an image'] = good + ['../up']
        for sentence, words in lines.items():
            with open(self.table, 'w', encoding='utf-8') as f:
                f.write('\n# and then\n' + ' '.join(words) + '\n')
            self.wrong(f'{self.table}: line 3: {sentence}', 'list')
        self.pin(A, A)
        self.wrong(f'{self.table}: line 4: acme/a.bin is there twice', 'list')
        self.put('table', b'a\0b')
        self.wrong(f'{self.table}: a table of images has no zero bytes', 'list')
        self.put('table', b'#' * (1 << 20) + b'#')
        self.wrong(f'{self.table}: a table of images has at most a megabyte', 'list')
        os.unlink(self.table)
        self.wrong(f'{self.table}: No such file or directory', 'list', status=FAILED)
        os.mkfifo(self.table)
        self.wrong(f'{self.table}: it is no regular file', 'list')


if __name__ == '__main__':
    unittest.main(verbosity=2)
