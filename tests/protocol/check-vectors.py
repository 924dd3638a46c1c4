#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Holds the bytes of vectors.txt to its diagnostic notation.

    check-vectors.py VECTORS SCHEMA

The encoder here was written from RFC 8949 (sections 3 and 4.2.1) alone and shares nothing with the
generator, the coders or libcbor, so the bytes that the C tests hold the coders to do not come from what they
test. Also fails where a message of the schema has no vector.
"""

import re
import struct
import sys

TOKEN = re.compile(r"""\s* (?: (?P<number>\d+) | h'(?P<hex>[0-9a-f]*)' | "(?P<text>[^"]*)"
    | (?P<mark>[\[\]{},:]) )""", re.X)


def parse(text):
    """The value that diagnostic notation describes: int, bytes, str, list, or a list of pairs in a tuple."""
    tokens, at = [], 0
    while text[at:].strip():
        m = TOKEN.match(text, at)
        if not m:
            raise ValueError("cannot read %r" % text[at:])
        tokens.append((m.lastgroup, m.group(m.lastgroup)))
        at = m.end()

    def value():
        kind, what = tokens.pop(0)
        if kind == "number":
            return int(what)
        if kind == "hex":
            return bytes.fromhex(what)
        if kind == "text":
            return what
        if what == "[":
            return items("]", value)
        if what == "{":
            return tuple(items("}", pair))
        raise ValueError("unexpected %r" % what)

    def pair():
        key = value()
        if tokens.pop(0)[1] != ":":
            raise ValueError("a key without a value")
        return key, value()

    def items(end, one):
        found = []
        while tokens[0][1] != end:
            found.append(one())
            if tokens[0][1] == ",":
                tokens.pop(0)
        tokens.pop(0)
        return found

    result = value()
    if tokens:
        raise ValueError("something follows the value")
    return result


def head(major, n):
    """RFC 8949, 3: three bits of type, five that are the number or say how many bytes of it follow."""
    if n <= 23:
        return bytes([major << 5 | n])
    for low, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if n < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | low]) + struct.pack(form, n)
    raise ValueError("%d does not fit" % n)


def encode(value):
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    return head(5, len(value)) + b"".join(encode(k) + encode(v) for k, v in value)


def vectors(path):
    """Name, notation and bytes of each vector."""
    name = notation = None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.split("#")[0].rstrip()
        if line and not line.startswith(" "):
            name, _, notation = line.partition(" = ")
            found = [name, notation, ""]
            yield found
        elif line and name is None:
            sys.exit("%s:%d: bytes of no vector" % (path, number))
        elif line:
            found[2] += line


def main(argv):
    wrong, seen = 0, set()
    for name, notation, data in list(vectors(argv[1])):
        value = parse(notation)
        seen.add(value[0])
        if encode(value) != bytes.fromhex(data):
            print("%s: should be %s" % (name, encode(value).hex(" ")))
            wrong += 1
    schema = re.sub(r";[^\n]*", "", open(argv[2], encoding="utf-8").read())
    for message, number in re.findall(r"([a-z-]+) *= *\[(\d+), *\{", schema):
        if int(number) not in seen:
            print("%s: no vector" % message)
            wrong += 1
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
