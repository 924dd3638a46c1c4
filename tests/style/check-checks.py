# SPDX-License-Identifier: ISC
"""Holds the checks themselves: a tree with one mistake of each kind must make them complain of each.

Usage: check-checks.py ROOT
"""

import os
import shutil
import subprocess
import sys
import tempfile

import tree

GOOD = '/* SPDX-License-Identifier: ISC */\n' \
    '/* A file that says what it is, in the dozen words that a check asks of it. */\n'

# path, text, the script that must complain, and a word of its complaint
MISTAKES = (
    ('base/a.c', GOOD + '#include "daemon/driver.h"\n', 'check-includes.py', 'base may not use daemon/driver.h'),
    ('daemon/order/b.c', GOOD + '#include "daemon/core.h"\n', 'check-includes.py', 'daemon/order may not use daemon'),
    ('libclient/c.c', GOOD + '#include <cbor.h>\n', 'check-includes.py', 'libclient/c.c: includes <cbor.h>'),
    ('daemon/d.c', GOOD + '#include "daemon/gone.h"\n', 'check-includes.py', 'not in the tree'),
    ('daemon/i.c', GOOD + '#include <rig/rig.h>\n', 'check-includes.py', 'daemon may not use include'),
    ('tools/e.c', '/* SPDX-License-Identifier: ISC */\nint x;\n', 'check-sources.py', 'no comment that says'),
    ('tools/f.c', '/* Some other text. */\n', 'check-sources.py', 'does not start with'),
    ('tools/g.c', GOOD + 'int f(void)\n{\n' + '        ;\n' * 101 + '}\n', 'check-sources.py', '101 lines'),
    ('tools/h.c', GOOD + '/* TO' + 'DO */\n', 'check-sources.py', 'finish it or leave it out'),
)


def run(root, script, tree_root):
    path = os.path.join(root, 'tests/style', script)
    r = subprocess.run([sys.executable, path, tree_root], capture_output=True, text=True, check=False)
    return r.returncode, r.stdout + r.stderr


def main():
    root = sys.argv[1]
    wrong = 0
    for path, text, script, word in MISTAKES:
        with tempfile.TemporaryDirectory() as folder:
            for top in tree.FOLDERS:
                shutil.copytree(os.path.join(root, top), os.path.join(folder, top),
                                ignore=shutil.ignore_patterns('corpus', '__pycache__'))
            target = os.path.join(folder, path)
            with open(target, 'w', encoding='utf-8') as f:
                f.write(text)
            status, said = run(root, script, folder)
            if status == 0 or path not in said or word not in said:
                print(f'{script} did not complain of {path} ({word}); it said:\n{said}')
                wrong += 1
    print(f'{len(MISTAKES)} mistakes, {wrong} not found')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
