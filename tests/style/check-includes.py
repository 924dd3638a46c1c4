# SPDX-License-Identifier: ISC
"""Holds every #include to the tables of docs/architecture.md, and the tables to the tree.

Usage: check-includes.py ROOT
"""

import os
import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
GENERATED = 'protocol'  # gen/ is what protocol/ makes


def rows(text, first_header):
    """The cells of the table whose header starts with first_header."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f'| {first_header} |'))
    for line in lines[start + 2:]:
        if not line.startswith('|'):
            return
        yield [cell.strip() for cell in line.strip().strip('|').split('|')]


def names(cell):
    return set(re.findall(r'`([^`]+)`', cell))


class Tables:
    def __init__(self, root):
        text = tree.read(root, 'docs/architecture.md')
        self.uses, self.used_by, self.libraries = {}, {}, {}
        for folder, _, uses, used_by in rows(text, 'folder'):
            name = names(folder).pop()
            self.uses[name], self.used_by[name] = names(uses), names(used_by)
        for header, folders in rows(text, 'header'):
            self.libraries[names(header).pop()] = names(folders)

    def complaints(self, root):
        for name, uses in self.uses.items():
            if not os.path.exists(os.path.join(root, name)):
                yield f'docs/architecture.md: {name} is not in the tree'
            for other in uses | self.used_by[name]:
                if other not in self.uses:
                    yield f'docs/architecture.md: {name} names {other}, which has no row'
        for a in self.uses:
            for b in self.uses:
                if (b in self.uses[a]) != (a in self.used_by[b]):
                    yield f'docs/architecture.md: whether {a} may use {b}, their rows disagree'

    def owner(self, path):
        """The row a file belongs to: the longest one that leads to it."""
        fitting = [n for n in self.uses if path == n or path.startswith(n + '/')]
        return max(fitting, key=len, default=None)


def target(root, path, quote, name):
    """The file of the tree that an include names, 'gen' for a generated one, or None for a system's."""
    if name.startswith('gen/'):
        return 'gen'
    if quote == '<':
        inside = os.path.join('include', name)
        return inside if os.path.exists(os.path.join(root, inside)) else None
    beside = os.path.join(os.path.dirname(path), name)
    if os.path.exists(os.path.join(root, name)):
        return name
    return beside if os.path.exists(os.path.join(root, beside)) else None


def check(root, tables, path):
    owner = tables.owner(path)
    if owner is None:
        yield f'{path}: belongs to no folder of docs/architecture.md'
        return
    for quote, name in INCLUDE.findall(re.sub(r'/\*.*?\*/', '', tree.read(root, path), flags=re.S)):
        found = target(root, path, quote, name)
        if found is None and quote == '"' and '/' in name:
            yield f'{path}: includes "{name}", which is not in the tree'
        elif found is not None:
            used = GENERATED if found == 'gen' else tables.owner(found)
            if used != owner and used not in tables.uses[owner]:
                yield f'{path}: includes {name}, but {owner} may not use {used}'
        for header, folders in tables.libraries.items():
            if (name == header or name.startswith(header)) and quote == '<' and owner not in folders:
                yield f'{path}: includes <{name}>, which is for {", ".join(sorted(folders))}'


def main():
    root = sys.argv[1]
    tables = Tables(root)
    complaints = list(tables.complaints(root))
    paths = tree.files(root, ('.c', '.h'))
    for path in paths:
        complaints += check(root, tables, path)
    return tree.report('includes', complaints, len(paths))


if __name__ == '__main__':
    sys.exit(main())
