# SPDX-License-Identifier: ISC
"""The pinned table, against the real images where they are installed.

Each file in /lib/firmware that has the name of a pinned image is unpacked here, by xz(1)'s and zstd(1)'s own programs,
and its digest taken by hashlib: check must say that it is the image if, and only if, it is the one that is pinned. Where
a Debian package of just the version that the table names is installed, every image it has must be the pinned one.
RIG_TEST_FIRMWARE may name another folder, such as one that a package was unpacked into.
"""

import json
import os
import subprocess
import sys
import unittest

import stand

FOLDER = os.environ.get('RIG_TEST_FIRMWARE', '/lib/firmware')
UNPACK = {'': ['cat'], '.zst': ['zstd', '-dcq'], '.xz': ['xz', '-dc']}


def rigctl(*args):
    done = subprocess.run([stand.RIGCTL, '--user', 'firmware', *args, '--json=short'], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=stand.environment(), timeout=stand.DEADLINE, check=False)
    return json.loads(done.stdout)


def installed():
    """The files there are: (image, path, content), by the order the finder looks in."""
    for image in rigctl('list'):
        for suffix, unpack in UNPACK.items():
            path = os.path.join(FOLDER, image['Name'] + suffix)
            if os.path.isfile(path):
                done = subprocess.run([*unpack, path], stdout=subprocess.PIPE, check=False)
                yield image, path, done.stdout if done.returncode == 0 else b''  # broken: no image, at any rate


class Installed(unittest.TestCase):
    def setUp(self):
        self.files = list(installed())
        self.said = {image['Name']: image for image in rigctl('check', '--path=' + FOLDER)['Images']}

    def test_an_image_is_found_where_its_digest_is_the_pinned_one(self):
        right = {}
        for image, path, data in self.files:
            if stand.digest(data) == image['SHA256']:
                self.assertEqual(len(data), image['Bytes'])
                right.setdefault(image['Name'], path)
            else:
                print(f'{path}: another version than the pinned one', file=sys.stderr)
                remarks = {remark['Path']: remark['Text'] for remark in self.said[image['Name']]['Remarks']}
                if image['Name'] not in right:
                    self.assertIn(path, remarks)
        for image, path, _ in self.files:
            said = self.said[image['Name']]
            self.assertEqual((said['State'], said['Path']),
                             ('found', right[image['Name']]) if image['Name'] in right else ('wrong', ''))

    def test_packages_of_the_pinned_version_have_the_pinned_images(self):
        for image, path, data in self.files:
            asked = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', image['Package']], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, check=False).stdout.decode()
            if asked.split('~')[0] == image['PackageVersion'] or FOLDER != '/lib/firmware':
                self.assertEqual((path, stand.digest(data)), (path, image['SHA256']))


if __name__ == '__main__':
    if not list(installed()):
        print(f'skipped: {FOLDER} has none of the pinned images; Debian packages them as firmware-amd-graphics and '
              'firmware-nvidia-graphics (non-free-firmware)')
        sys.exit(77)
    unittest.main(verbosity=2)
