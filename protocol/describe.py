#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Writes what docs/protocol.md says of the schema from the schema.

    describe.py ROOT            writes it anew
    describe.py --check ROOT    fails where the page says something else

The page is prose with marked places, each from a line <!-- schema: WHAT --> to a line <!-- end -->. What is
between them is made here, from protocol/rig.cddl as generate.py reads it and from the golden vectors, and is not
to be written by hand; the prose around it is not touched. WHAT is one of

    index              all messages by number
    messages CLASS     each message of a class: its comment and a table of its keys
    shapes             the tuples and maps that messages are made of, likewise
    types, bounds      the named types and the constants
    packet VECTOR      a packet of tests/protocol/vectors.txt, byte for byte

A key's meaning is the comment beside it in the schema, else the one beside its type. Where there is neither the
page cannot be written: a key that nobody explains is an error of the schema.
"""

import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import generate  # noqa: E402: no bytecode beside the sources

PAGE, SCHEMA, VECTORS = "docs/protocol.md", "protocol/rig.cddl", "tests/protocol/vectors.txt"
COLUMNS = 116
PLACE = re.compile(r"(<!-- schema: ([a-z -]+) -->\n)(.*?)(<!-- end -->)", re.S)
# A comment that is of no rule, but of one key of all messages of a class.
KEY_OF_CLASS = re.compile(r"Key (\d+) of an? (\w+): (.*)")


def fill(text):
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


class Page:
    """The schema, and how it reads."""

    def __init__(self, root):
        self.root = root
        with open(os.path.join(root, SCHEMA), encoding="utf-8") as f:
            tokens, comments = generate.tokenize(f.read())
        rules = generate.Parser(tokens, comments).rules()
        self.schema = generate.Schema(rules)
        self.messages = {m.name: m for m in self.schema.messages}
        self.keys_of_class = {}
        for text in comments.whole.values():
            found = KEY_OF_CLASS.match(text)
            if found:
                self.keys_of_class[found.group(2), int(found.group(1))] = found.group(3)

    # ------------------------------------------------------------------------------------------------ types

    def number(self, n):
        """A largest number, as it is easily read."""
        for bits in (32, 63, 64):
            if n == 2**bits - 1:
                return "< 2^%d" % bits
        return "≤ %d" % n

    def type(self, node):
        if node.what == "uint":
            return "uint " + self.number(node.max)
        if node.what in ("tstr", "bstr"):
            return "%s of ≤ %d bytes" % ({"tstr": "text", "bstr": "bytes"}[node.what], node.max)
        if node.what == "array":
            return "array of %d to %d: %s" % (node.min, node.max, self.type(node.of))
        rule = self.schema.rules[node.name]
        if rule.what in ("tuple", "map"):
            return "[%s](#%s)" % (node.name, node.name)
        if rule.what == "uint":
            return "%s %s" % (node.name, self.number(rule.max))
        return "%s, a %s" % (node.name, self.type(rule))

    def meaning(self, shape, field, group):
        node = field.node.of if field.node.what == "array" else field.node
        rule = self.schema.rules[node.name] if node.what == "name" else None
        text = field.beside or self.keys_of_class.get((group, field.key)) or (rule and rule.beside)
        if rule is not None and not text and rule.what in ("tuple", "map"):
            text = " ".join(rule.comment)
        if not text:
            raise generate.SchemaError(field.node.line, "key %d of %s, %s, has no comment"
                                       % (field.key, shape.name, field.name))
        return text

    # --------------------------------------------------------------------------------------------- messages

    def comment(self, shape):
        """What a message is, and the answer of a request."""
        text = " ".join(shape.comment)
        if not text:
            raise generate.SchemaError(1, "%s has no comment" % shape.name)
        said, _, answer = text.partition(" Answer: ")
        return said, answer.rstrip(".")

    def answer(self, message):
        _, answer = self.comment(message.shape)
        if message.group != "request" and not answer:
            return ""
        if message.group != "request" or answer not in self.messages or self.messages[answer].group != "answer":
            raise generate.SchemaError(self.schema.rules[message.name].line,
                                       "the answer of %s, \"%s\", is none" % (message.name, answer))
        return "[%s](#%s)" % (answer, answer)

    def table(self, shape, group):
        rows = ["| key | name | type | required | meaning |", "|---|---|---|---|---|"]
        for f in shape.fields:
            rows.append("| %d | `%s` | %s | %s | %s |" % (f.key, f.name, self.type(f.node), "yes" if f.required else
                                                        "no", self.meaning(shape, f, group)))
        return "\n".join(rows) + "\n"

    def message(self, message):
        said, _ = self.comment(message.shape)
        head = "Type %d." % message.number
        if message.group == "request":
            head += " Answer: %s." % self.answer(message)
        return "#### %s\n\n%s\n\n%s" % (message.name, fill(head + " " + said),
                                       self.table(message.shape, message.group))

    def messages_of(self, group):
        if group not in generate.CLASSES:
            raise generate.SchemaError(1, "there is no class %s" % group)
        return "\n".join(self.message(m) for m in self.schema.messages if m.group == group)

    def index(self):
        rows = ["| type | message | class | answer |", "|---|---|---|---|"]
        for m in self.schema.messages:
            rows.append("| %d | [%s](#%s) | %s | %s |" % (m.number, m.name, m.name, m.group, self.answer(m)))
        return "\n".join(rows) + "\n"

    def shapes(self):
        parts = []
        for shape in self.schema.shapes.values():
            if shape.name in self.messages:
                continue
            said, _ = self.comment(shape)
            if self.schema.rules[shape.name].what == "map":
                said, table = said + " A map:", "\n" + self.table(shape, "")
            else:
                items = ", ".join("`%s` (%s)" % (f.name, self.type(f.node)) for f in shape.fields)
                said, table = said + " An array of %d: %s." % (len(shape.fields), items), ""
            parts.append("#### %s\n\n%s\n%s" % (shape.name, fill(said), table))
        return "\n".join(parts)

    def types(self):
        rows = ["| type | is | meaning |", "|---|---|---|"]
        for name, rule in self.schema.bounds:
            rows.append("| %s | %s | %s |" % (name, self.type(rule), rule.beside))
        return "\n".join(rows) + "\n"

    def bounds(self):
        rows = ["| bound | value | of what |", "|---|---|---|"]
        for name, rule in self.schema.constants:
            rows.append("| %s | %d | %s |" % (name, rule.value, rule.beside))
        return "\n".join(rows) + "\n"

    # --------------------------------------------------------------------------------------------- a packet

    def vector(self, name):
        with open(os.path.join(self.root, VECTORS), encoding="utf-8") as f:
            found = re.search(r"^%s = .*\n((?: .*\n)+)" % re.escape(name), f.read(), re.M)
        if not found:
            raise generate.SchemaError(1, "there is no vector %s" % name)
        return bytes.fromhex(found.group(1))

    def packet(self, name):
        data = self.vector(name)
        walk = Walk(data)
        walk.message(self)
        rows = ["| bytes | mean |", "|---|---|"]
        rows += ["| `%s` | %s |" % (part.hex(" "), text) for part, text in walk.rows]
        return "```\n%s\n```\n\n%s\n" % (data.hex(" "), "\n".join(rows))

    # ----------------------------------------------------------------------------------------------- places

    def place(self, what):
        word, _, rest = what.partition(" ")
        makers = {"index": self.index, "shapes": self.shapes, "types": self.types, "bounds": self.bounds}
        if word in makers and not rest:
            return makers[word]()
        if word == "messages":
            return self.messages_of(rest)
        if word == "packet":
            return self.packet(rest)
        raise generate.SchemaError(1, "%s: nothing is called \"%s\"" % (PAGE, what))


class Walk:
    """A message's bytes, one item after the other, and what each is. A message in rig's own form only."""

    def __init__(self, data):
        self.data, self.at, self.rows = data, 0, []

    def head(self):
        """The type and the number of the item here. Moves behind its head."""
        first, size = self.data[self.at], 0
        n = first & 31
        if n > 23:
            size = 1 << (n - 24)
            n = int.from_bytes(self.data[self.at + 1:self.at + 1 + size], "big")
        self.at += 1 + size
        return first >> 5, n

    def note(self, start, text):
        self.rows.append((self.data[start:self.at], text))

    def value(self, field):
        start = self.at
        major, n = self.head()
        if major == 0:
            self.note(start, "%s: %d" % (field, n))
        elif major in (2, 3):
            self.note(start, "%s: a text of %d bytes" % (field, n))
            start, self.at = self.at, self.at + n
            self.note(start, "\"%s\"" % self.data[start:self.at].decode())
        else:
            self.note(start, "%s: an array of %d" % (field, n))
            for i in range(n):
                self.value("%s[%d]" % (field, i))

    def message(self, page):
        self.head()
        self.note(0, "a message: an array of 2")
        start = self.at
        _, number = self.head()
        message = [m for m in page.schema.messages if m.number == number][0]
        self.note(start, "its type: %d, %s" % (number, message.name))
        start = self.at
        _, keys = self.head()
        self.note(start, "a map of %d keys" % keys)
        for _ in range(keys):
            start = self.at
            _, key = self.head()
            field = [f for f in message.shape.fields if f.key == key][0]
            self.note(start, "key %d" % key)
            self.value("`%s`" % field.name)


def main(argv):
    check = argv[1:2] == ["--check"]
    if len(argv) != 2 + check:
        sys.exit("usage: describe.py [--check] ROOT")
    root = argv[-1]
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as f:
        old = f.read()
    try:
        page = Page(root)
        new = PLACE.sub(lambda m: m.group(1) + page.place(m.group(2)) + m.group(4), old)
    except generate.SchemaError as e:
        sys.exit("%s: %s" % (SCHEMA, e))
    if not check:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
    elif new != old:
        lines = zip(old.splitlines() + [""], new.splitlines() + [""])
        number, (is_there, due) = next((i, l) for i, l in enumerate(lines, 1) if l[0] != l[1])
        sys.exit("%s:%d: says\n  %s\nand the schema\n  %s\nRun protocol/describe.py . to write it anew."
                 % (PAGE, number, is_there, due))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
