# SPDX-License-Identifier: ISC
"""Holds the library's pages to its header: each exported function has a page that names it, declares it with the
header's types, and lists the errors that the header's comment gives it; each public struct is shown as it is, and
each public constant is named. No page declares what there is not.

Usage: check-library.py ROOT
"""

import errno
import pathlib
import re
import sys

import mdoc
from header import Header, map_functions


def check_functions(header, exported, pages):
    where = {}
    for page in pages:
        for name, prototype in page.prototypes().items():
            if name not in page.names():
                yield f'{page}: declares {name}, which is not in its NAME'
            if name in where:
                yield f'{page}: declares {name}, as {where[name]} does'
            where[name] = page
            if name not in header.prototypes:
                yield f'{page}: declares {name}, which rig.h does not'
            elif prototype != header.prototypes[name]:
                yield f'{page}: has {prototype}, and rig.h has {header.prototypes[name]}'
        for name in page.names():
            if name not in page.prototypes() and not name.startswith('lib'):
                yield f'{page}: names {name}, and does not declare it'
    for name in sorted(exported | set(header.prototypes)):
        if name not in where:
            yield f'no page has {name}'
        elif not header.errors.get(name, set()) <= where[name].named('Er'):
            missing = ', '.join(sorted(header.errors[name] - where[name].named('Er')))
            yield f'{where[name]}: lacks {missing}, which rig.h gives {name}'


def check_types(header, pages):
    shown, named = {}, set()
    for page in pages:
        named |= {re.sub(r'\W+$', '', word) for word in page.named('Dv')}
        for name in page.named('Er'):
            if not hasattr(errno, name):
                yield f'{page}: there is no error {name}'
        for display in page.displays('SYNOPSIS'):
            for found in re.finditer(r'^struct (\w+) \{.*?^\};', display, re.S | re.M):
                shown[found.group(1)] = mdoc.squeeze(found.group(0))
                if mdoc.squeeze(found.group(0)) != header.structs.get(found.group(1)):
                    yield f'{page}: struct {found.group(1)} is not as rig.h has it'
    yield from (f'no page shows struct {name}' for name in sorted(set(header.structs) - set(shown)))
    yield from (f'no page names {name}' for name in sorted(header.constants - named))
    yield from (f'{name} is in a page, and not in rig.h' for name in sorted(named - header.constants)
                if name.startswith('RIG_'))


def main():
    root = pathlib.Path(sys.argv[1])
    header = Header(root / 'include/rig/rig.h')
    exported = map_functions(root / 'libclient/librig-client.sym')
    pages = [p for p in mdoc.pages(root) if p.section == '3']
    complaints = [] if len(header.structs) > 5 else ['rig.h has hardly any struct: it was not read']
    complaints += check_functions(header, exported, pages)
    complaints += check_types(header, pages)
    return mdoc.report('functions', complaints, min(len(exported), len(header.prototypes)))


if __name__ == '__main__':
    sys.exit(main())
