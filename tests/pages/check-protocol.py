# SPDX-License-Identifier: ISC
"""Holds docs/protocol.md to the schema, to the headers of the shared pages and to itself.

    check-protocol.py ROOT COMPILER [ARGUMENT...]

The tables of messages are made again from the schema (protocol/describe.py --check). Of each struct that the page
lists, the compiler says where its fields are and how long they are. The packets on the page are decoded by the
decoder of docs/examples/client.py, and are golden vectors. Every link leads somewhere.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT, COMPILER = sys.argv[1], sys.argv[2:]
sys.path[:0] = [os.path.join(ROOT, 'docs/examples'), os.path.join(ROOT, 'protocol')]
import client  # noqa: E402
import describe  # noqa: E402

HEADERS = ('protocol/shared.h', 'trace/trace.h')
STRUCT = re.compile(r'<!-- struct (\w+) of (\S+) -->\n\|[^\n]*\n\|[-|]*\n((?:\|[^\n]*\n)+)')
ROW = re.compile(r'\| (\d+) \| (\d+) \| `(\w+)` \|')


def check_schema():
    said = subprocess.run([sys.executable, os.path.join(ROOT, 'protocol/describe.py'), '--check', ROOT],
                          capture_output=True, text=True, check=False)
    if said.returncode:
        yield said.stderr.strip()


def check_demands():
    """A schema that explains less than the page needs is refused, with the line."""
    with open(os.path.join(ROOT, describe.SCHEMA), encoding='utf-8') as f:
        schema = f.read()
    for text, instead, sentence in (('; from 0\n', '\n', 'key 1 of adapter-list, index, has no comment'),
                                    (' Answer: entry-done.', '', 'the answer of image-entry, "", is none'),
                                    ('; Loads code for a device. Answer: done.\n', '', 'image-load has no comment')):
        with tempfile.TemporaryDirectory() as folder:
            for path in (describe.PAGE, describe.SCHEMA, describe.VECTORS):
                os.makedirs(os.path.dirname(os.path.join(folder, path)))
                shutil.copy(os.path.join(ROOT, path), os.path.join(folder, path))
            with open(os.path.join(folder, describe.SCHEMA), 'w', encoding='utf-8') as f:
                f.write(schema.replace(text, instead, 1))
            said = subprocess.run([sys.executable, os.path.join(ROOT, 'protocol/describe.py'), '--check', folder],
                                  capture_output=True, text=True, check=False)
        if schema.count(text) == 0 or said.returncode == 0 or sentence not in said.stderr:
            yield f'without "{text.strip()}" the schema is taken: {said.stderr}'


def layouts(structs):
    """What the compiler says of each field: (struct, field) and where it is, how long it is."""
    lines = [f'#include "{h}"\n' for h in HEADERS] + ['#include <stdio.h>\nint main(void)\n{\n']
    for struct, _, rows in structs:
        lines.append(f'printf("{struct} . 0 %zu\\n", sizeof(struct {struct}));\n')
        for _, _, field in ROW.findall(rows):
            lines.append(f'printf("{struct} {field} %zu %zu\\n", offsetof(struct {struct}, {field}), '
                         f'sizeof(((struct {struct} *)0)->{field}));\n')
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'layout.c'), os.path.join(folder, 'layout')
        with open(source, 'w', encoding='utf-8') as f:
            f.write(''.join(lines) + 'return 0;\n}\n')
        subprocess.run([*COMPILER, '-I', ROOT, source, '-o', program], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {tuple(l.split()[:2]): tuple(map(int, l.split()[2:])) for l in said.splitlines()}


def check_structs(page):
    structs = STRUCT.findall(page)
    if {header for _, header, _ in structs} != set(HEADERS):
        yield 'the page has lost its tables of the shared pages'
    known = layouts(structs)
    for struct, header, rows in structs:
        end = 0
        for offset, length, field in ROW.findall(rows):
            offset, length = int(offset), int(length)
            if (offset, length) != known[struct, field]:
                yield f'{struct}.{field}: {length} bytes at {offset}, and {header} has {known[struct, field]}'
            if offset != end:
                yield f'{struct}: nothing is said of the bytes from {end} to {offset}'
            end = offset + length
        if end != known[struct, '.'][1]:
            yield f'{struct}: {known[struct, "."][1]} bytes, and the page ends at {end}'


def check_constants(page):
    """Numbers that the prose has from the headers: the length of the pages, the ring and the records."""
    text = ''.join(open(os.path.join(ROOT, h), encoding='utf-8').read() for h in HEADERS)
    for name, value in re.findall(r'#define (RIG_(?:WORDS|RING|TRACE_PAGE|TRACE_RECORD)_BYTES) +(\d+)u', text):
        if not re.search(rf'\b{value}\b', page):
            yield f'{name} is {value}: the page does not say it'


def check_packets(page):
    packets = re.findall(r'<!-- schema: packet ([a-z-]+) -->\n```\n([0-9a-f ]+)\n```', page)
    if not packets:
        yield 'the page has no packet'
    root = describe.Page(ROOT)
    for name, text in packets:
        data = bytes.fromhex(text)
        (kind, fields), at = client.decode(data, 0)
        if at != len(data) or client.encode([kind, fields]) != data:
            yield f'{name}: client.py reads {kind} {fields} and {len(data) - at} bytes more'
        if data != root.vector(name):
            yield f'{name} is not the golden vector'


def check_links(page):
    anchors = {re.sub(r'[^\w -]', '', h).strip().lower().replace(' ', '-')
               for h in re.findall(r'^#+ (.*)$', page, re.M)}
    for target, anchor in re.findall(r'\]\(([^)#]*)(?:#([^)]*))?\)', page):
        if target and not os.path.exists(os.path.join(ROOT, 'docs', target)):
            yield f'a link to {target}, which is not there'
        if not target and anchor not in anchors:
            yield f'a link to #{anchor}, which is no heading'
    headings = re.findall(r'^#+ (.*)$', page, re.M)
    for h in sorted({h for h in headings if headings.count(h) > 1}):
        yield f'two headings are "{h}": links reach only the first'


def main():
    with open(os.path.join(ROOT, describe.PAGE), encoding='utf-8') as f:
        page = f.read()
    complaints = [*check_schema(), *check_demands(), *check_structs(page), *check_constants(page), *check_packets(page),
                  *check_links(page)]
    for c in complaints:
        print(f'{describe.PAGE}: {c}')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
