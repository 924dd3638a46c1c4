#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The generator: the same files each time, the schema's numbers in them, and errors that name the line.

    test-generate.py GENERATOR SCHEMA
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

GENERATOR, SCHEMA = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

# The least there may be around a message under test, which is on line 9 and may name a type on line 10.
FRAME = """packet = [+ message]
message = ordered / request / answer / event
ordered = run / host-done / buffer-drop / buffer-view
request = sync
answer = done
event = other
run = [1, {1 => a: uint}] host-done = [2, {1 => a: uint}] buffer-drop = [3, {1 => a: uint}]
buffer-view = [4, {1 => a: uint}] sync = [5, {0 => serial: uint .le 9}] done = [6, {0 => serial: uint .le 9}]
"""


def generate(text, folder):
    path = os.path.join(folder, "schema")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return subprocess.run([sys.executable, GENERATOR, path, folder], capture_output=True, text=True)


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


class Errors(unittest.TestCase):
    def refused(self, text, line, sentence):
        with tempfile.TemporaryDirectory() as folder:
            done = generate(FRAME + text, folder)
            self.assertNotEqual(done.returncode, 0, "accepted: " + text)
            self.assertIn("line %d: %s" % (line, sentence), done.stderr)
            self.assertEqual(os.listdir(folder), ["schema"], "an error writes nothing")

    def accepted(self, text):
        with tempfile.TemporaryDirectory() as folder:
            done = generate(FRAME + text, folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            return read(folder, "rig-proto.h")

    def test_a_small_schema_is_accepted(self):
        header = self.accepted("other = [7, {1 => of: [0*3 pair], ? 2 => text: tstr .size (0..9)}]\n"
                               "pair = [left: uint .le 9, right: uint]\nleft-over = 5 ; a constant\n")
        self.assertIn("struct rig_msg_pair of[3];", header)
        self.assertIn("uint32_t n_of;", header)
        self.assertIn("bool has_text;", header)
        self.assertIn("#define RIG_PROTO_LEFT_OVER 5u", header)
        self.assertIn("RIG_MSG_OTHER = 7,", header)

    def test_what_is_not_understood(self):
        self.refused("other = [7, {1 => a: float}]", 9, "float is not defined")
        self.refused("other = [7, {1 => a: uint .ge 5}]", 9, "cannot read '.ge 5}]'")
        self.refused("other = [7, {1 => a: int}]", 9, "int is not defined")
        self.refused("other = [7, {a: uint}]", 9, "expected a number, found 'a'")
        self.refused("other = [7, {* 1 => a: uint}]", 9, "expected a number, found '*'")
        self.refused("other = [7, {1 => a: tstr}]", 9, "expected '.size', found '}'")
        self.refused("other = [7, {1 => a: \"text\"}]", 9, "cannot read")
        self.refused("other = [7, {1 => a: uint / tstr .size (0..3)}]", 9, "a choice cannot be here")
        self.refused("other = [7, {1 => a: {1 => b: uint}}]", 9, "a map cannot be here")
        self.refused("other = [7, {1 => a: [x: uint, y: uint]}]", 9, "a tuple cannot be here")
        self.refused("other = [7, {1 => a: [2*5 b: [0*2 uint]]}]", 9, "an array of arrays")
        self.refused("other = [7, {1 => a: uint}", 9, "expected ']'")

    def test_what_contradicts_itself(self):
        self.refused("other = [7, {2 => a: uint, 1 => b: uint}]", 9, "keys ascend: 1 follows 2")
        self.refused("other = [7, {1 => a: uint, 1 => b: uint}]", 9, "keys ascend: 1 follows 1")
        self.refused("other = [7, {1 => a: uint, 2 => a: uint}]", 9, "two fields have one name")
        self.refused("other = [7, {24 => a: uint}]", 9, "keys are 0 to 23")
        self.refused("other = [7, {1 => uint}]", 9, "a field needs a label")
        self.refused("other = [7, {1 => for: uint}]", 9, "for means something in C")
        self.refused("other = [7, {1 => a: tstr .size (5..3)}]", 9, "a size from 5 to 3 admits nothing")
        self.refused("other = [7, {1 => a: [4*2 uint]}]", 9, "an array of 4 to 2 items admits nothing")
        self.refused("other = [7, {}]", 9, "no fields")
        self.refused("other = [0, {1 => a: uint}]", 9, "message types are 1 to 255")
        self.refused("other = [6, {1 => a: uint}]", 9, "done and other have one number")
        self.refused("other = [7, {0 => serial: uint .le 9}]", 9, "key 0 is the serial of requests")
        self.refused("other = {1 => a: uint}", 9, "other is not a message")
        self.refused("other = [7, {1 => a: pair}]\npair = [b: pair]", 10, "pair contains itself")
        self.refused("other = [7, {1 => a: uint}]\nother = 5", 10, "other is defined twice")
        self.refused("other = [7, {1 => a: uint}]\nidle = uint", 10, "idle is not used")
        self.refused("", 6, "other is not defined")

    def test_a_request_needs_its_serial(self):
        with tempfile.TemporaryDirectory() as folder:
            text = FRAME.replace("sync = [5, {0 => serial: uint .le 9}]", "sync = [5, {1 => a: uint}]")
            done = generate(text + "other = [7, {1 => a: uint}]", folder)
            self.assertIn("line 8: key 0 is the serial of requests", done.stderr)


class Whole(unittest.TestCase):
    def test_the_same_files_each_time(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for folder, seed in ((one, "1"), (two, "2")):
                subprocess.run([sys.executable, GENERATOR, SCHEMA, folder], check=True,
                               env=dict(os.environ, PYTHONHASHSEED=seed))
            names = sorted(os.listdir(one))
            self.assertEqual(names, ["rig-proto-fast.h", "rig-proto.c", "rig-proto.dict", "rig-proto.h"])
            for name in names:
                self.assertEqual(read(one, name), read(two, name))

    def test_every_number_of_the_schema_is_a_constant(self):
        with open(SCHEMA, encoding="utf-8") as f:
            schema = re.sub(r";[^\n]*", "", f.read())
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, GENERATOR, SCHEMA, folder], check=True)
            header = read(folder, "rig-proto.h")
        constants = re.findall(r"^([a-z-]+) *= *(\d+) *$", schema, re.M)
        bounds = re.findall(r"^([a-z-]+) *= *uint \.le (\d+) *$", schema, re.M)
        self.assertGreater(len(constants), 5)
        self.assertGreater(len(bounds), 5)
        for name, value in constants + [(n + "-max", v) for n, v in bounds]:
            name = name.upper().replace("-", "_")
            self.assertRegex(header, r"#define RIG_PROTO_%s (UINT64_C\()?%s[u)]" % (name, value))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
