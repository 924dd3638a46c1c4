#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Writes the C of the protocol from its schema.

    generate.py SCHEMA FOLDER

reads a schema in the part of CDDL (RFC 8610) that protocol/rig.cddl uses, and writes into FOLDER:

    rig-proto.h       constants, a struct for each message, the enum of their types
    rig-proto.c       the field tables that protocol/codec-*.c work by, and the names
    rig-proto-fast.h  straight-line coders of the messages in FAST, of the same bytes
    rig-proto.dict    a dictionary for libFuzzer

The same schema gives the same files, byte for byte. What the schema says and this program does not
understand is an error that names the line; nothing is skipped silently.

What it understands: named rules; constants; `uint`, `uint .le N`, `tstr .size (A..B)`, `bstr .size (A..B)`;
maps with integer keys in ascending order, `? key => label: type`; tuples `[label: type, type]`; bounded
arrays `[A*B type]` as the value of a field; messages `name = [NUMBER, { fields }]`; the choices `ordered`,
`request`, `answer` and `event`, which together name every message once; `message` and `packet`.

Comments above a rule are its own and go into the C. Those beside a field or a rule say what the value is, for
protocol/describe.py; an indented line with nothing but a comment goes on with the one above it.
"""

import os
import re
import sys

CLASSES = ["ordered", "request", "answer", "event"]
# The messages of the hot path. Their types and keys are below 24, so that each is one byte.
FAST = ["run", "host-done", "buffer-drop", "buffer-view"]
UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
C_WORDS = set("""auto break case char const continue default do double else enum extern float for goto if
inline int long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while errno""".split())


class SchemaError(Exception):
    """What is wrong with the schema, and in which line."""

    def __init__(self, line, what):
        super().__init__("line %d: %s" % (line, what))


# --------------------------------------------------------------------------------------------------- reading

class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line


TOKEN = re.compile(r"""(?P<space>[ \t\r]+) | (?P<newline>\n) | (?P<comment>;[^\n]*)
    | (?P<number>0|[1-9][0-9]*) | (?P<name>[a-z](?:[a-z0-9-]*[a-z0-9])?)
    | (?P<mark>=>|\.\.|\.le|\.size|[=?,:\[\]{}()/*+])""", re.X)


class Comments:
    """By line: those that are all of a line, and those beside something."""

    def __init__(self):
        self.whole, self.beside = {}, {}
        self.last = 0  # the line of the last one beside something, where an indented one goes on with it

    def add(self, line, text, alone, indented):
        if alone and indented and self.last:
            self.beside[self.last] += " " + text
        elif alone:
            self.whole[line], self.last = text, 0
        else:
            self.beside[line] = text
            self.last = line


def tokenize(text):
    """The tokens of the schema, and its comments."""
    tokens, comments, at, line, fresh, start = [], Comments(), 0, 1, True, 0
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise SchemaError(line, "cannot read %r" % text[at:at + 20].split("\n")[0])
        at = m.end()
        kind = m.lastgroup
        if kind == "newline":
            line, fresh, start = line + 1, True, at
        elif kind == "comment":
            comments.add(line, m.group()[1:].strip(), fresh, m.start() > start)
        elif kind != "space":
            fresh, comments.last = False, 0
            tokens.append(Token(kind, m.group(), line))
    tokens.append(Token("end", "the end of the file", line))
    return tokens, comments


class Node:
    """A piece of the schema as written: what it is, where, and its parts."""

    def __init__(self, what, line, **parts):
        self.what, self.line = what, line
        self.__dict__.update(parts)


class Parser:
    def __init__(self, tokens, comments):
        self.tokens, self.comments, self.at = tokens, comments, 0

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self, text=None, kind=None):
        token = self.peek()
        if (text is not None and token.text != text) or (kind is not None and token.kind != kind):
            expected = repr(text) if text else "a " + kind
            raise SchemaError(token.line, "expected %s, found %r" % (expected, token.text))
        self.at += 1
        return token

    def accept(self, text):
        if self.peek().text != text:
            return False
        self.at += 1
        return True

    def number(self):
        return int(self.take(kind="number").text)

    def comment_above(self, line):
        lines = []
        while line - 1 in self.comments.whole:
            line -= 1
            lines.insert(0, self.comments.whole[line])
        # A line of dashes is a heading of the schema, and no remark on the rule below it.
        return [] if any(c.startswith("---") for c in lines) else [c for c in lines if c]

    def rules(self):
        rules = {}
        while self.peek().kind != "end":
            name = self.take(kind="name")
            if name.text in rules:
                raise SchemaError(name.line, "%s is defined twice" % name.text)
            self.take("=")
            rules[name.text] = self.type()
            rules[name.text].rule_line = name.line
            rules[name.text].comment = self.comment_above(name.line)
            rules[name.text].beside = self.beside(self.tokens[self.at - 1].line)
        return rules

    def beside(self, line):
        """The comment beside what ends here, unless something follows on its line: then it is about that."""
        return "" if self.peek().line == line else self.comments.beside.get(line, "")

    def type(self):
        first = self.one_type()
        if self.peek().text != "/":
            return first
        choice = Node("choice", first.line, of=[first])
        while self.accept("/"):
            choice.of.append(self.one_type())
        return choice

    def one_type(self):
        token = self.peek()
        if token.kind == "number":
            return Node("constant", token.line, value=self.number())
        if token.text == "[":
            return self.array()
        if token.text == "{":
            return self.map()
        name = self.take(kind="name")
        if name.text == "uint":
            return Node("uint", name.line, max=self.number() if self.accept(".le") else UINT64_MAX)
        if name.text in ("tstr", "bstr"):
            return self.sized(name)
        return Node("name", name.line, name=name.text)

    def sized(self, name):
        self.take(".size")
        self.take("(")
        low = self.number()
        self.take("..")
        high = self.number()
        self.take(")")
        if low > high:
            raise SchemaError(name.line, "a size from %d to %d admits nothing" % (low, high))
        return Node(name.text, name.line, min=low, max=high)

    def array(self):
        line = self.take("[").line
        if self.accept("+"):
            node = Node("sequence", line, of=self.type())
        elif self.peek().kind == "number" and self.peek(1).text == "*":
            low = self.number()
            self.take("*")
            high = self.number()
            self.label()
            node = Node("array", line, min=low, max=high, of=self.type())
            if low > high or high == 0:
                raise SchemaError(line, "an array of %d to %d items admits nothing" % (low, high))
        else:
            node = Node("tuple", line, items=[(self.label(), self.type())])
            while self.accept(",") and self.peek().text != "]":
                node.items.append((self.label(), self.type()))
        self.accept(",")
        self.take("]")
        return node

    def label(self):
        if self.peek().kind != "name" or self.peek(1).text != ":":
            return None
        name = self.take().text
        self.take(":")
        return name

    def map(self):
        node = Node("map", self.take("{").line, entries=[])
        while self.peek().text != "}":
            line = self.peek().line
            required = not self.accept("?")
            key = self.number()
            self.take("=>")
            label = self.label()
            entry = Node("entry", line, key=key, required=required, label=label, type=self.type())
            node.entries.append(entry)
            more = self.accept(",")
            entry.beside = self.beside(self.tokens[self.at - 1].line)
            if not more:
                break
        self.take("}")
        return node


# --------------------------------------------------------------------------------------------------- meaning

class Field:
    """One field of a message, a map or a tuple. `name` is as in the schema, `c` as in C."""

    def __init__(self, name, key, required, kind, node):
        self.name, self.key, self.required, self.type = name, key, required, kind
        self.c = name.replace("-", "_")
        self.node, self.beside = node, ""  # its type as written, and the comment beside it


class Type:
    """A kind of RIG_CODEC_..., its bounds, and what it is made of."""

    def __init__(self, kind, low=0, high=0, shape=None, element=None):
        self.kind, self.min, self.max, self.shape, self.element = kind, low, high, shape, element

    def c(self):
        if self.shape:
            return "struct " + self.shape.c
        return {"U32": "uint32_t", "U64": "uint64_t"}.get(self.kind, "struct rig_bytes")


class Shape:
    """The fields of a message, a map or a tuple."""

    def __init__(self, name, fields, comment):
        self.name, self.fields, self.comment = name, fields, comment
        self.c = "rig_msg_" + name.replace("-", "_")


class Message:
    def __init__(self, name, number, group, shape):
        self.name, self.number, self.group, self.shape = name, number, group, shape
        self.id = name.replace("-", "_")
        self.constant = "RIG_MSG_" + self.id.upper()


class Schema:
    """The schema's meaning: constants, bounds, shapes in the order of their use, messages by number."""

    def __init__(self, rules):
        self.rules, self.used, self.open = rules, set(), []
        self.shapes, self.messages = {}, []
        self.constants = [(n, r) for n, r in rules.items() if r.what == "constant"]
        self.check_frame()
        for group in CLASSES:
            self.read_class(group)
        self.messages.sort(key=lambda m: m.number)
        self.check_whole()
        self.bounds = [(n, r) for n, r in rules.items() if r.what in ("uint", "tstr", "bstr")]

    def rule(self, name, line):
        if name not in self.rules:
            raise SchemaError(line, "%s is not defined" % name)
        self.used.add(name)
        return self.rules[name]

    def check_frame(self):
        packet = self.rule("packet", 1)
        if packet.what != "sequence" or packet.of.what != "name" or packet.of.name != "message":
            raise SchemaError(packet.line, "packet is not [+ message]")
        if self.choice("message") != CLASSES:
            raise SchemaError(self.rules["message"].line, "message is not " + " / ".join(CLASSES))

    def choice(self, name):
        rule = self.rule(name, 1)
        of = rule.of if rule.what == "choice" else [rule]
        for one in of:
            if one.what != "name":
                raise SchemaError(one.line, "%s is a choice of names" % name)
        return [one.name for one in of]

    def read_class(self, group):
        for name in self.choice(group):
            if name in self.used:
                raise SchemaError(self.rules[group].line, "%s is named twice" % name)
            rule = self.rule(name, self.rules[group].line)
            items = rule.items if rule.what == "tuple" else []
            if len(items) != 2 or items[0][1].what != "constant" or items[1][1].what != "map":
                raise SchemaError(rule.line, "%s is not a message: [NUMBER, { fields }]" % name)
            number = items[0][1].value
            if not 0 < number < 256:
                raise SchemaError(rule.line, "message types are 1 to 255")
            shape = Shape(name, self.entries(items[1][1]), rule.comment)
            self.shapes[name] = shape
            self.messages.append(Message(name, number, group, shape))
            self.check_serial(rule, group, shape)

    def check_serial(self, rule, group, shape):
        first = shape.fields[0]
        has = first.key == 0 and first.name == "serial" and first.required and first.type.kind == "U32"
        if has != (group in ("request", "answer")):
            raise SchemaError(rule.line, "key 0 is the serial of requests and answers, and of nothing else")

    def check_whole(self):
        for a, b in zip(self.messages, self.messages[1:]):
            if a.number == b.number:
                raise SchemaError(self.rules[b.name].line, "%s and %s have one number" % (a.name, b.name))
        names = [m.name for m in self.messages]
        for name in FAST:
            if name not in names:
                raise SchemaError(1, "%s is to be fast, and is no message" % name)
        for name, rule in self.rules.items():
            if name not in self.used and rule.what != "constant":
                raise SchemaError(rule.rule_line, "%s is not used" % name)

    def entries(self, node):
        fields, last = [], -1
        for entry in node.entries:
            if entry.key <= last:
                raise SchemaError(entry.line, "keys ascend: %d follows %d" % (entry.key, last))
            if entry.key > 23:
                raise SchemaError(entry.line, "keys are 0 to 23, one byte each")
            last = entry.key
            fields.append(self.field(entry.label, entry.key, entry.required, entry.type))
            fields[-1].beside = entry.beside
        return self.distinct(fields, node)

    def field(self, label, key, required, node):
        name = label or (node.name if node.what == "name" else None)
        if not name:
            raise SchemaError(node.line, "a field needs a label")
        if name in C_WORDS:
            raise SchemaError(node.line, "%s means something in C: label the field" % name)
        return Field(name, key, required, self.type(node), node)

    def distinct(self, fields, node):
        if len({f.name for f in fields}) != len(fields):
            raise SchemaError(node.line, "two fields have one name")
        if not fields:
            raise SchemaError(node.line, "no fields")
        return fields

    def type(self, node, name=None):
        if node.what == "uint":
            return Type("U32" if node.max <= UINT32_MAX else "U64", 0, node.max)
        if node.what in ("tstr", "bstr"):
            return Type("TEXT" if node.what == "tstr" else "BYTES", node.min, node.max)
        if node.what == "array":
            element = self.type(node.of)
            if element.kind == "ARRAY":
                raise SchemaError(node.line, "an array of arrays: name the inner one's tuple")
            return Type("ARRAY", node.min, node.max, element=element)
        if node.what == "name":
            return self.named(node)
        raise SchemaError(node.line, "a %s cannot be here: give it a name" % node.what)

    def named(self, node):
        rule = self.rule(node.name, node.line)
        if node.name in self.open:
            raise SchemaError(rule.line, "%s contains itself" % node.name)
        if rule.what not in ("tuple", "map"):
            return self.type(rule)
        if node.name not in self.shapes:
            self.open.append(node.name)
            self.shapes[node.name] = Shape(node.name, self.shape_fields(rule), rule.comment)
            self.open.pop()
        return Type("TUPLE" if rule.what == "tuple" else "MAP", shape=self.shapes[node.name])

    def shape_fields(self, rule):
        if rule.what == "map":
            return self.entries(rule)
        fields = [self.field(label, i, True, kind) for i, (label, kind) in enumerate(rule.items)]
        for f in fields:
            if f.type.kind == "ARRAY":
                raise SchemaError(rule.line, "an array inside a tuple: use a map")
        return self.distinct(fields, rule)

    def shapes_ordered(self):
        """Shapes so that each follows what it is made of."""
        done = []

        def visit(shape):
            if shape in done:
                return
            for f in shape.fields:
                inner = f.type.element.shape if f.type.element else f.type.shape
                if inner:
                    visit(inner)
            done.append(shape)

        for m in self.messages:
            visit(m.shape)
        return done


# ----------------------------------------------------------------------------------------------- rig-proto.h

TOP = """/* SPDX-License-Identifier: ISC */
/* %s, made by protocol/generate.py from protocol/rig.cddl: change those. */
"""


def number_c(n):
    return "UINT64_C(%d)" % n if n > UINT32_MAX else "%du" % n


def upper(name):
    return name.replace("-", "_").upper()


def comment_c(lines, indent=""):
    if not lines:
        return ""
    text = [line.replace("*/", "* /") for line in lines]
    if len(text) == 1:
        return "%s/* %s */\n" % (indent, text[0])
    return "%s/*\n%s%s */\n" % (indent, "".join("%s * %s\n" % (indent, t) for t in text), indent)


def struct_c(shape):
    """Values first, then counts and flags, then arrays: what a short message uses is close together."""
    arrays = [f for f in shape.fields if f.type.kind == "ARRAY"]
    lines = ["        %s %s;" % (f.type.c(), f.c) for f in shape.fields if f not in arrays]
    lines += ["        uint32_t n_%s;" % f.c for f in arrays]
    lines += ["        bool has_%s;" % f.c for f in shape.fields if not f.required]
    lines += ["        %s %s[%d];" % (f.type.element.c(), f.c, f.type.max) for f in arrays]
    return "%sstruct %s {\n%s\n};\n" % (comment_c(shape.comment), shape.c, "\n".join(lines))


def bounds_c(schema):
    lines = []
    for name, rule in schema.constants:
        lines.append("#define RIG_PROTO_%s %s" % (upper(name), number_c(rule.value)))
    for name, rule in schema.bounds:
        lines.append("#define RIG_PROTO_%s_MAX %s" % (upper(name), number_c(rule.max)))
    return "\n".join(lines) + "\n"


HEADER_INTRO = """#ifndef RIG_PROTO_H
#define RIG_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of a message that were not copied: a text (UTF-8 without a NUL, and not ended by one) or a byte
 * string. They point into the packet that was decoded.
 */
struct rig_bytes {
        const uint8_t *data;
        size_t bytes;
};

"""

HEADER_FUNCTIONS = """
/* The message's name in the schema, such as "buffer-new"; NULL where no message has that type. */
const char *rig_msg_type_to_string(uint32_t type);

enum rig_msg_class {
        RIG_MSG_CLASS_UNKNOWN, /* no message has that type */
        RIG_MSG_CLASS_ORDERED, /* the client's, one-way, on the ring or the socket */
        RIG_MSG_CLASS_REQUEST, /* the client's, with a serial and one answer */
        RIG_MSG_CLASS_ANSWER,  /* rigd's, to a request */
        RIG_MSG_CLASS_EVENT,   /* rigd's, unasked */
        _RIG_MSG_CLASS_MAX,
};

enum rig_msg_class rig_msg_class(uint32_t type);
/* "ordered", "request" ...; NULL where there is no such class. */
const char *rig_msg_class_to_string(uint32_t msg_class);

/* The serial of a request or an answer; 0 of what has none. */
uint32_t rig_msg_serial(enum rig_msg_type type, const union rig_msg *msg);

#endif
"""


def header(schema):
    out = [TOP % "The messages", HEADER_INTRO]
    out += ["/* Bounds: what exceeds one is refused. */\n", bounds_c(schema)]
    out.append("\nenum rig_msg_type {\n")
    out += ["        %s = %d,\n" % (m.constant, m.number) for m in schema.messages]
    out.append("        _RIG_MSG_TYPE_MAX,\n};\n\n")
    out.append("""/*
 * Below, a field that a message may lack has a flag has_<field>, and reads as zero where it is absent; an
 * array is the first n_<field> elements of one of the most there may be.
 */

""")
    out.append("\n".join(struct_c(s) for s in schema.shapes_ordered()))
    out.append("\n/* Any message. */\nunion rig_msg {\n")
    out += ["        struct %s %s;\n" % (m.shape.c, m.id) for m in schema.messages]
    out.append("};\n" + HEADER_FUNCTIONS)
    return "".join(out)


# ----------------------------------------------------------------------------------------------- rig-proto.c

def type_c(t, owner):
    parts = [".kind = RIG_CODEC_" + t.kind]
    if t.kind == "ARRAY":
        parts.append(".element = &element_" + owner)
    else:
        parts.append(".bytes = sizeof(%s)" % t.c())
    if t.shape:
        parts.append(".shape = &shape_" + t.shape.c[len("rig_msg_"):])
    if t.min:
        parts.append(".min = %s" % number_c(t.min))
    if t.max:
        parts.append(".max = %s" % number_c(t.max))
    return "{%s}" % ", ".join(parts)


def shape_c(shape):
    own = shape.c[len("rig_msg_"):]
    out = []
    for f in shape.fields:
        if f.type.kind == "ARRAY":
            out.append("static const struct rig_codec_type element_%s_%s = %s;\n"
                       % (own, f.c, type_c(f.type.element, None)))
    out.append("static const struct rig_codec_field fields_%s[] = {\n" % own)
    for f in shape.fields:
        at = "offsetof(struct %s, %%s)" % shape.c
        line = "        {.name = \"%s\", .key = %d, .offset = %s" % (f.name, f.key, at % f.c)
        line += ",\n                .required = %s" % ("true" if f.required else "false")
        if not f.required:
            line += ", .has = " + at % ("has_" + f.c)
        if f.type.kind == "ARRAY":
            line += ", .count = " + at % ("n_" + f.c)
        out.append(line + ",\n                .type = %s},\n" % type_c(f.type, own + "_" + f.c))
    out.append("};\nstatic const struct rig_codec_shape shape_%s = {\"%s\", fields_%s, %d};\n"
               % (own, shape.name, own, len(shape.fields)))
    return "".join(out)


SOURCE_FUNCTIONS = """
const char *rig_msg_type_to_string(uint32_t type)
{
        return type < _RIG_MSG_TYPE_MAX ? names[type] : NULL;
}

enum rig_msg_class rig_msg_class(uint32_t type)
{
        return type < _RIG_MSG_TYPE_MAX ? (enum rig_msg_class)classes[type] : RIG_MSG_CLASS_UNKNOWN;
}

const char *rig_msg_class_to_string(uint32_t msg_class)
{
        return msg_class < _RIG_MSG_CLASS_MAX ? class_names[msg_class] : NULL;
}

uint32_t rig_msg_serial(enum rig_msg_type type, const union rig_msg *msg)
{
        enum rig_msg_class c = rig_msg_class(type);

        if (c != RIG_MSG_CLASS_REQUEST && c != RIG_MSG_CLASS_ANSWER)
                return 0;
        return msg->%s.serial;
}

const struct rig_codec_shape *rig_codec_shape(uint32_t type)
{
        return type < _RIG_MSG_TYPE_MAX ? shapes[type] : NULL;
}
"""


def by_number(title, schema, value):
    rows = "".join("        [%s] = %s,\n" % (m.constant, value(m)) for m in schema.messages)
    return "\nstatic %s[_RIG_MSG_TYPE_MAX] = {\n%s};\n" % (title, rows)


def source(schema):
    with_serial = [m for m in schema.messages if m.group in ("request", "answer")]
    out = [TOP % "The field tables of the messages"]
    out.append("#include \"protocol/codec.h\"\n\n#include <assert.h>\n\n")
    out.append("\n".join(shape_c(s) for s in schema.shapes_ordered()))
    out.append(by_number("const struct rig_codec_shape *const shapes", schema, lambda m: "&shape_" + m.id))
    out.append(by_number("const char *const names", schema, lambda m: "\"%s\"" % m.name))
    out.append(by_number("const uint8_t classes", schema, lambda m: "RIG_MSG_CLASS_" + m.group.upper()))
    out.append("\nstatic const char *const class_names[_RIG_MSG_CLASS_MAX] = {\n")
    out.append("        [RIG_MSG_CLASS_UNKNOWN] = \"unknown\",\n")
    out += ["        [RIG_MSG_CLASS_%s] = \"%s\",\n" % (c.upper(), c) for c in CLASSES]
    out.append("};\n\n/* rig_msg_serial() reads one message's serial for all. */\n")
    for m in with_serial:
        out.append("static_assert(offsetof(struct %s, serial) == 0, \"the serial is first\");\n" % m.shape.c)
    out.append(SOURCE_FUNCTIONS % with_serial[0].id)
    return "".join(out)


# ------------------------------------------------------------------------------------------ rig-proto-fast.h

def head_bytes(n):
    return 1 if n < 24 else 2 if n < 2**8 else 3 if n < 2**16 else 5 if n < 2**32 else 9


def bytes_max(t):
    """The most bytes a value of the type takes."""
    if t.kind in ("U32", "U64"):
        return head_bytes(t.max)
    if t.kind in ("TEXT", "BYTES"):
        return head_bytes(t.max) + t.max
    if t.kind == "ARRAY":
        return head_bytes(t.max) + t.max * bytes_max(t.element)
    fields = t.shape.fields
    return head_bytes(len(fields)) + sum(bytes_max(f.type) + (t.kind == "MAP") for f in fields)


def fast_put(t, value, indent):
    """Statements that append a value at `p`."""
    pad = " " * indent
    if t.kind in ("U32", "U64"):
        return "%sp = rig_fast_put(p, 0, %s);\n" % (pad, value)
    if t.kind in ("TEXT", "BYTES"):
        major = "0x60" if t.kind == "TEXT" else "0x40"
        return "%sp = rig_fast_put_bytes(p, %s, %s);\n" % (pad, major, value)
    if t.kind == "TUPLE":
        return "%s*p++ = 0x%02x;\n" % (pad, 0x80 + len(t.shape.fields)) + "".join(
            fast_put(f.type, value + "." + f.c, indent) for f in t.shape.fields)
    raise SchemaError(1, "a fast message has numbers, texts, tuples of them and arrays")


def fast_put_field(f):
    indent = 8 if f.required else 16
    pad = " " * indent
    out = ["%s*p++ = 0x%02x; /* %s */\n" % (pad, f.key, f.name)]
    if f.type.kind == "ARRAY":
        out.append("%srig_assert(m->n_%s <= %d);\n" % (pad, f.c, f.type.max))
        out.append("%sp = rig_fast_put(p, 0x80, m->n_%s);\n" % (pad, f.c))
        out.append("%sfor (uint32_t i = 0; i < m->n_%s; i++) {\n" % (pad, f.c))
        out.append(fast_put(f.type.element, "m->%s[i]" % f.c, indent + 8))
        out.append("%s}\n" % pad)
    else:
        out.append(fast_put(f.type, "m->" + f.c, indent))
    if f.required:
        return "".join(out)
    return "        if (m->has_%s) {\n%s        }\n" % (f.c, "".join(out))


def fast_encode(m):
    required = sum(f.required for f in m.shape.fields)
    keys = ["0x%02x" % (0xa0 + required)] + ["m->has_" + f.c for f in m.shape.fields if not f.required]
    most = 2 + bytes_max(Type("MAP", shape=m.shape))
    out = ["/* The most bytes of a %s. */\n" % m.name]
    out.append("#define RIG_FAST_%s_BYTES_MAX %du\n\n" % (m.id.upper(), most))
    out.append("static inline size_t rig_fast_%s_encode(" % m.id)
    out.append("const struct %s *m, uint8_t *out)\n{\n        uint8_t *p = out;\n\n" % m.shape.c)
    out.append("        *p++ = 0x82;\n        *p++ = 0x%02x; /* %s */\n" % (m.number, m.name))
    out.append("        *p++ = (uint8_t)(%s);\n" % " + ".join(keys))
    out += [fast_put_field(f) for f in m.shape.fields]
    out.append("        return (size_t)(p - out);\n}\n")
    return "".join(out)


def fast_get(t, target, indent):
    pad = " " * indent
    if t.kind in ("U32", "U64"):
        get = "rig_fast_get_%s(p, end, %s, &%s)" % (t.kind.lower(), number_c(t.max), target)
        return "%sp = %s;\n%sif (!p)\n%s        return 0;\n" % (pad, get, pad, pad)
    if t.kind == "TUPLE":
        out = "%sif (p == end || *p++ != 0x%02x)\n" % (pad, 0x80 + len(t.shape.fields))
        out += pad + "        return 0;\n"
        return out + "".join(fast_get(f.type, target + "." + f.c, indent) for f in t.shape.fields)
    # Texts are rare here, and have more rules than fit a straight line.
    return pad + "return 0;\n"


def fast_get_value(f, indent):
    if f.type.kind != "ARRAY":
        return fast_get(f.type, "m->" + f.c, indent)
    pad = " " * indent
    out = ["%sp = rig_fast_get_count(p, end, %d, &m->n_%s);\n" % (pad, f.type.max, f.c)]
    fewer = " || m->n_%s < %d" % (f.c, f.type.min) if f.type.min else ""
    out.append("%sif (!p%s)\n%s        return 0;\n" % (pad, fewer, pad))
    out.append("%sfor (uint32_t i = 0; i < m->n_%s; i++) {\n" % (pad, f.c))
    out.append(fast_get(f.type.element, "m->%s[i]" % f.c, indent + 8))
    out.append("%s}\n" % pad)
    return "".join(out)


def fast_absent(f):
    pad = " " * 16
    if f.type.kind == "ARRAY":
        return "%sm->n_%s = 0;\n" % (pad, f.c)
    if f.type.kind in ("U32", "U64"):
        return "%sm->%s = 0;\n" % (pad, f.c)
    return "%sm->%s = (%s){0};\n" % (pad, f.c, f.type.c())


def fast_get_field(f):
    if f.required:
        out = "        if (keys == 0 || p == end || *p++ != 0x%02x) /* %s */\n" % (f.key, f.name)
        return out + "                return 0;\n        keys--;\n" + fast_get_value(f, 8)
    out = "        m->has_%s = keys > 0 && p < end && *p == 0x%02x; /* %s */\n" % (f.c, f.key, f.name)
    out += "        if (m->has_%s) {\n" % f.c
    value = fast_get_value(f, 16)
    if f.type.kind in ("TEXT", "BYTES"):
        out += value
    else:
        out += "                p++;\n                keys--;\n" + value
    return out + "        } else {\n" + fast_absent(f) + "        }\n"


def fast_decode(m):
    optional = any(not f.required for f in m.shape.fields)
    out = ["static inline size_t rig_fast_%s_decode(const uint8_t *data, size_t bytes, struct %s *m)\n{\n"
           % (m.id, m.shape.c)]
    out.append("        const uint8_t *p, *end = data + bytes;\n        uint32_t keys;\n\n")
    out.append("        if (bytes < 4 || data[0] != 0x82 || data[1] != 0x%02x || " % m.number)
    out.append("(data[2] & 0xf8) != 0xa0)\n                return 0;\n")
    out.append("        p = data + 3;\n        keys = data[2] & 7;\n")
    if not optional:
        out.append("        if (keys != %d)\n                return 0;\n" % len(m.shape.fields))
    out += [fast_get_field(f) for f in m.shape.fields]
    out.append("        return keys == 0 ? (size_t)(p - data) : 0;\n}\n")
    return "".join(out)


FAST_INTRO = """#ifndef RIG_PROTO_FAST_H
#define RIG_PROTO_FAST_H

#include "protocol/fast.h"

/*
 * rig_fast_x_encode() writes the bytes that rig_codec_encode() would, and returns how many. The caller has
 * seen to it that `out` has room for RIG_FAST_X_BYTES_MAX of them, and that the message is within the bounds
 * of the schema.
 *
 * rig_fast_x_decode() reads a message whose keys ascend and are all known, which is how rig's own coders
 * write it, and returns its bytes. Anything else, malformed or only unusual, is 0, and `m` then holds nothing of
 * use: rig_codec_decode_table() decides, and says what is wrong.
 */

"""


def fast_dispatch(messages):
    out = ["/* Any of the above, by its type: its bytes, or 0 where rig_codec_decode_table() decides. */\n"]
    out.append("static inline size_t rig_fast_decode(\n")
    out.append("        const uint8_t *data, size_t bytes, union rig_msg *msg, ")
    out.append("enum rig_msg_type *ret_type)\n{\n        size_t n;\n\n")
    out.append("        if (bytes < 4)\n                return 0;\n")
    out.append("        switch (data[1]) {\n")
    for m in messages:
        out.append("        case %s:\n                n = rig_fast_%s_decode(data, bytes, &msg->%s);\n"
                   "                break;\n" % (m.constant, m.id, m.id))
    out.append("        default:\n                return 0;\n        }\n        if (n > 0)\n"
               "                *ret_type = (enum rig_msg_type)data[1];\n        return n;\n}\n")
    return "".join(out)


def fast(schema):
    messages = [m for m in schema.messages if m.name in FAST]
    for m in messages:
        if m.number > 23 or len(m.shape.fields) > 7:
            raise SchemaError(schema.rules[m.name].line,
                              "%s is to be fast: a type below 24, at most 7 keys" % m.name)
    out = [TOP % "Straight-line coders of the hot messages", FAST_INTRO]
    for m in messages:
        out += [fast_encode(m), "\n", fast_decode(m), "\n"]
    return "".join(out + [fast_dispatch(messages), "\n#endif\n"])


# -------------------------------------------------------------------------------------------- rig-proto.dict

def dictionary(schema):
    out = ["# SPDX-License-Identifier: ISC\n"]

    def entry(name, data):
        out.append("%s=\"%s\"\n" % (name.replace("-", "_"), "".join("\\x%02x" % b for b in data)))

    for m in schema.messages:
        kind = [m.number] if m.number < 24 else [0x18, m.number]
        entry(m.name, [0x82] + kind + [0xa0 + sum(f.required for f in m.shape.fields)])
        entry(m.name + "_all", [0x82] + kind + [0xa0 + len(m.shape.fields)])
    for name, rule in schema.bounds:
        if rule.what == "uint":
            size = head_bytes(rule.max) - 1
            head = [] if size == 0 else [{1: 0x18, 2: 0x19, 4: 0x1a, 8: 0x1b}[size]]
            entry(name + "_max", head + list(rule.max.to_bytes(max(size, 1), "big")))
    return "".join(out)


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: generate.py SCHEMA FOLDER")
    with open(argv[1], encoding="utf-8") as f:
        text = f.read()
    try:
        schema = Schema(Parser(*tokenize(text)).rules())
        files = [("rig-proto.h", header(schema)), ("rig-proto.c", source(schema)),
                 ("rig-proto-fast.h", fast(schema)), ("rig-proto.dict", dictionary(schema))]
    except SchemaError as e:
        sys.exit("%s: %s" % (argv[1], e))
    for name, content in files:
        with open(os.path.join(argv[2], name), "w", encoding="utf-8") as f:
            f.write(content)


if __name__ == "__main__":
    main(sys.argv)
