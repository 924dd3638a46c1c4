# SPDX-License-Identifier: ISC
"""Holds the message ids of daemon/log/ids.h, the code that logs them, and systemd/rigd.catalog to each other.

    check-catalog.py ROOT

The catalog's form is that of systemd's message catalogs: a line "-- ID", headers, an empty line, a text in which
@FIELD@ stands for a field of the line. Where journalctl is installed, it compiles the file and lists it too.
"""

import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The fields a line may have (daemon/log/log.h).
FIELDS = {'RIG_ADAPTER', 'RIG_DEVICE', 'RIG_CLIENT', 'RIG_PID', 'RIG_UID', 'RIG_SETTING'}
TEXT_WORDS = 25  # what happened, why and what to do take at least so many


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def ids_of(root):
    return re.findall(r'#define (RIG_LOG_\w+)\s+"([^"]*)"', read(os.path.join(root, 'daemon/log/ids.h')))


def entries_of(path):
    """(ID, headers, text) of each entry."""
    text = re.sub(r'(?m)^#.*\n', '', read(path))
    for entry in re.split(r'(?m)^-- ', text)[1:]:
        head, _, body = entry.partition('\n\n')
        first, *headers = head.split('\n')
        yield first, dict(h.split(': ', 1) for h in headers), body.strip()


def check_ids(root, ids):
    sources = ''.join(read(p) for p in glob.glob(os.path.join(root, 'daemon/**/*.c'), recursive=True))
    for what, n in collections.Counter(i for _, i in ids).items():
        if n > 1:
            yield f'daemon/log/ids.h: {what} stands for {n} messages'
    for name, i in ids:
        if not re.fullmatch('[0-9a-f]{32}', i):
            yield f'daemon/log/ids.h: {name}: "{i}" is no id'
        if not re.search(rf'\b{name}\b', sources):
            yield f'daemon/log/ids.h: {name} is logged nowhere'


def check_entry(headers, text, known_pages):
    if set(headers) != {'Subject', 'Defined-By', 'Documentation'}:
        yield f'its headers are {", ".join(headers)}'
    if headers.get('Defined-By') != 'rigd':
        yield 'it is not defined by rigd'
    if not re.fullmatch(r'man:[a-z.-]+\(\d\)( man:[a-z.-]+\(\d\))*', headers.get('Documentation', '')):
        yield 'its documentation is no list of pages'
    if not known_pages & set(headers.get('Documentation', '').split()):
        yield 'it names no page of rigd'
    if len(text.split()) < TEXT_WORDS:
        yield 'its text is too short to say what happened, why and what to do'
    for field in set(re.findall(r'@(\w+)@', text)) - FIELDS:
        yield f'it names the field {field}, which no line has'


def check_catalog(path, ids):
    names = {i: name for name, i in ids}
    entries = list(entries_of(path))
    pages = {'man:rigd(8)', 'man:rigd.conf(5)', 'man:rigctl(1)'}
    for i, n in collections.Counter(e[0] for e in entries).items():
        if n > 1:
            yield f'rigd.catalog: {i} has {n} entries'
    for i, headers, text in entries:
        if i not in names:
            yield f'rigd.catalog: {i} is no id of daemon/log/ids.h'
        for complaint in check_entry(headers, text, pages):
            yield f'rigd.catalog: {names.get(i, i)}: {complaint}'
    for i in set(names) - {e[0] for e in entries}:
        yield f'rigd.catalog: there is no entry for {names[i]}'


def check_journalctl(path):
    """What journalctl makes of it: every entry, by its subject. Return: complaints, or None where there is none."""
    if not shutil.which('journalctl'):
        return None
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, 'usr/lib/systemd/catalog'))
        os.makedirs(os.path.join(root, 'var/lib/systemd/catalog'))
        shutil.copy(path, os.path.join(root, 'usr/lib/systemd/catalog/rig.catalog'))
        made = subprocess.run(['journalctl', f'--root={root}', '--update-catalog'], capture_output=True, text=True,
                              check=False)
        listed = subprocess.run(['journalctl', f'--root={root}', '--list-catalog'], capture_output=True, text=True,
                                check=False)
    if made.returncode or made.stderr or listed.returncode:
        return [f'journalctl: {made.stderr}{listed.stderr}']
    expected = sorted(f'{i} rigd: {headers["Subject"]}' for i, headers, _ in entries_of(path))
    if sorted(listed.stdout.splitlines()) != expected:
        return [f'journalctl lists {listed.stdout}']
    return []


def main():
    root = sys.argv[1]
    path = os.path.join(root, 'systemd/rigd.catalog')
    ids = ids_of(root)
    complaints = [*check_ids(root, ids), *check_catalog(path, ids)]
    by_journalctl = check_journalctl(path)
    complaints += by_journalctl or []
    print(*complaints, sep='\n', end='\n' if complaints else '')
    print(f'{len(ids)} message ids, {len(complaints)} complaints'
          + (', and there is no journalctl to ask' if by_journalctl is None else ''))
    return 1 if complaints or not ids else 0


if __name__ == '__main__':
    sys.exit(main())
