# SPDX-License-Identifier: ISC
"""The pages in Markdown lead where they say: every relative link and every path in code is there. docs/security.md says
no more and no less than what it is about: each limit of a client is in it, each directive that it says the unit
has the unit has, and each directive of the unit's sandbox is in it or in the line for what is as usual.

Usage: check-prose.py ROOT RIGD
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
CODE = re.compile(r'`([^`\n]+)`')
# Paths in code that are of this tree start with one of its folders.
FOLDERS = ('base', 'daemon', 'debian', 'docs', 'include', 'libclient', 'protocol', 'systemd', 'tests', 'tools', 'trace')
PATH = re.compile(rf'(?:{"|".join(FOLDERS)})/[\w./*-]*')
DIRECTIVE = re.compile(r'\b([A-Z][A-Za-z]+)=')
UNIT = ('NoNewPrivileges', 'CapabilityBoundingSet', 'MemoryDenyWriteExecute', 'RestrictSUIDSGID', 'SystemCallFilter')


def pages(root):
    return sorted([*root.glob('*.md'), *(root / 'docs').glob('*.md')])


def check_paths(root, page):
    text = page.read_text(encoding='utf-8')
    name = page.relative_to(root)
    for link in LINK.findall(text):
        if '://' not in link and not (page.parent / link).exists():
            yield f'{name}: leads to {link}, which is not there'
    for code in CODE.findall(text):
        if PATH.fullmatch(code) and 'NAME' not in code and not list(root.glob(code.rstrip('/'))):
            yield f'{name}: names {code}, which is not there'


def check_security(root, rigd):
    text = (root / 'docs/security.md').read_text(encoding='utf-8')
    unit = (root / 'systemd/rigd.service.in').read_text(encoding='utf-8')
    run = [rigd, '--config', '/dev/null', '--print-config']
    config = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout
    settings = set(re.findall(r'^(\w+)=', config, re.M))
    yield from (f'security.md: lacks the limit {s}=' for s in sorted(settings) if s.endswith('Max') and s not in text)
    has = set(re.findall(r'^(\w+)=', unit, re.M))
    for directive in sorted(set(DIRECTIVE.findall(text)) - settings - {'MemoryMax'}):
        if directive not in has:
            yield f'security.md: says {directive}=, which the unit does not have'
    yield from (f'security.md: lacks {d}= of the unit' for d in UNIT if d in has and d not in text)


def main():
    root, rigd = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = pages(root)
    complaints = [c for page in found for c in check_paths(root, page)] + list(check_security(root, rigd))
    print(*complaints, sep='\n')
    print(f'prose: looked at {len(found)} pages, {len(complaints)} wrong')
    return 1 if complaints or len(found) < 6 else 0


if __name__ == '__main__':
    sys.exit(main())
