# SPDX-License-Identifier: ISC
"""mandoc and groff take every manual page without a warning, man-db finds in it the names that it is to be found by,
and what a reader copies from it is what is meant.

Usage: check-lint.py ROOT. mandoc, groff and lexgrog are others' programs: what a page is comes from them.
"""

import re
import shutil
import subprocess
import sys

import mdoc

CHECKERS = {
    'mandoc': ['mandoc', '-Tlint', '-W', 'warning'],
    'groff': ['groff', '-ww', '-mdoc', '-Tutf8'],
}
# In code, roff makes other characters of these: an apostrophe a closing quote, a hyphen no minus.
BARE = re.compile(r"^(?!\.).*?(?<!\\)(?<!\(a)(['`^~]|(?<!\\)-)")


def complaints_of(checker, page):
    run = subprocess.run([*CHECKERS[checker], str(page.path)], capture_output=True, text=True, check=False)
    said = run.stdout + run.stderr if checker == 'mandoc' else run.stderr
    # That a line of a narrow column cannot be stretched to its margin is no mistake of the page's.
    said = [line for line in said.splitlines() if 'cannot adjust line' not in line]
    return [f'{page}: {checker}: {line}' for line in said] or (
        [f'{page}: {checker}: status {run.returncode}'] if run.returncode else [])


def names_found(page):
    """man-db's own view of the NAME section, which apropos(1) and whatis(1) are made of."""
    run = subprocess.run(['lexgrog', str(page.path)], capture_output=True, text=True, check=False)
    names = re.findall(r'^[^:]+: "(\S+) - ', run.stdout, re.M)
    return [] if names == page.names() else [f'{page}: man-db finds it as {names}, and its NAME has {page.names()}']


def code(page):
    inside = False
    for number, line in enumerate(page.lines, 1):
        if line.startswith('.Bd -literal'):
            inside = True
        elif line.startswith('.Ed'):
            inside = False
        elif inside and BARE.search(line):
            yield f'{page}:{number}: {BARE.search(line).group(1)!r} in code is to be escaped'


def form(page):
    """What each page has, beside being well formed."""
    sections = page.sections()
    wanted = ['NAME', 'DESCRIPTION', 'SEE ALSO'] + (['SYNOPSIS'] if page.section != '7' else [])
    wanted += {'3': ['LIBRARY', 'EXAMPLES'], '1': ['EXIT STATUS', 'EXAMPLES'], '8': ['EXIT STATUS', 'EXAMPLES'],
               '5': ['EXAMPLES']}.get(page.section, [])
    if page.section == '3' and page.prototypes():
        wanted += ['RETURN VALUES']
    yield from (f'{page}: has no section {s}' for s in wanted if s not in sections)
    if page.name not in page.names():
        yield f'{page}: its NAME lacks {page.name}'
    if 'SPDX-License-Identifier: ISC' not in page.lines[0]:
        yield f'{page}: does not start with its licence'
    if f'.Dt {page.name.upper()} {page.section}' not in page.lines:
        yield f'{page}: its .Dt is not {page.name.upper()} {page.section}'


def main():
    missing = [p for p in ('mandoc', 'groff', 'lexgrog') if not shutil.which(p)]
    if missing:
        print(f'skipped: {", ".join(missing)} is not installed')
        return 77
    complaints, pages = [], mdoc.pages(sys.argv[1])
    for page in pages:
        for checker in CHECKERS:
            complaints += complaints_of(checker, page)
        complaints += names_found(page)
        complaints += form(page)
        complaints += code(page)
    return mdoc.report('manual pages', complaints, len(pages))


if __name__ == '__main__':
    sys.exit(main())
