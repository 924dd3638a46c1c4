# SPDX-License-Identifier: ISC
"""What the style checks share: the tree's files, and a C file without its comments and strings."""

import os
import re

FOLDERS = ('base', 'include', 'trace', 'protocol', 'libclient', 'daemon', 'tools', 'systemd', 'docs', 'tests')


def files(root, endings):
    """Paths below root of the tree's own files with one of the endings, sorted."""
    found = []
    for top in FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f not in ('__pycache__', 'corpus'))
            found += [os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(endings)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        return f.read()


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def bare(text):
    """The text with comments blanked and strings emptied; lines stay where they are."""
    def blank(match):
        token = match.group(0)
        if token[0] in '"\'':
            return token[0] + token[0]
        return '\n' * token.count('\n') or ' '
    return TOKEN.sub(blank, text)


def report(what, complaints, looked_at):
    """Prints complaints. Return: the exit status; a check that looked at nothing fails too."""
    for c in complaints:
        print(c)
    if not looked_at:
        print(f'{what}: found nothing to look at')
        return 1
    print(f'{what}: looked at {looked_at}, {len(complaints)} wrong')
    return 1 if complaints else 0
