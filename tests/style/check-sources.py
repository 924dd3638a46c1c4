# SPDX-License-Identifier: ISC
"""Holds source files to the house style where a script can: licence, essay, length, words.

Usage: check-sources.py ROOT
"""

import os
import re
import sys

import tree

LICENCE = 'SPDX-License-Identifier: ISC'
FILE_LINES = 1000
FUNCTION_LINES = 100
LINE_COLUMNS = 120  # .clang-format aims at 109; a string that cannot be broken may pass it
ESSAY_WORDS = 8  # of a test, whose functions say what they hold: 3
# Split, so that this file does not find itself.
WORDS = re.compile(r'\b(?:TO' + r'DO|FIX' + r'ME|XX' + r'X|place' + r'holder)\b', re.I)
# A function's opening brace stands alone in the first column, and so does its closing one.
BODY = re.compile(r'^\{$.*?^\}$', re.M | re.S)


def essay(text):
    """The first comment after the licence's, which must come before any code."""
    found = re.match(r'\s*/\* SPDX[^\n]*\*/\s*/\*(.*?)\*/', text, re.S)
    return found.group(1) if found else ''


def says_what_it_is(root, path, text):
    """Whether a file starts with an essay, or names the header that has it: "See base/error.h."."""
    words = essay(text)
    named = re.search(r'\bSee (\S+\.h)\b', words)
    if named and os.path.exists(os.path.join(root, named.group(1))):
        words = essay(tree.read(root, named.group(1)))
    return len(words.split()) >= (3 if path.startswith('tests/') else ESSAY_WORDS)


def check_c(root, path, text):
    if path.endswith('.c') and not says_what_it_is(root, path, text):
        yield f'{path}: starts with no comment that says what it is'
    code = tree.bare(text)
    for body in BODY.finditer(code):
        lines = body.group(0).count('\n') - 1
        if lines > FUNCTION_LINES:
            first = code.count('\n', 0, body.start()) + 1
            yield f'{path}:{first}: a function of {lines} lines; {FUNCTION_LINES} is the most'
    if re.search(r'^\s*//|[^:"]//', re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', '', text, flags=re.S), re.M):
        yield f'{path}: has // comments'


def check(root, path, text):
    lines = text.splitlines()
    if LICENCE not in '\n'.join(lines[:2]):
        yield f'{path}: does not start with {LICENCE}'
    if len(lines) > FILE_LINES:
        yield f'{path}: {len(lines)} lines; {FILE_LINES} is the most'
    for number, line in enumerate(lines, 1):
        if WORDS.search(line):
            yield f'{path}:{number}: {WORDS.search(line).group(0)}: finish it or leave it out'
        if line != line.rstrip() or '\t' in line:
            yield f'{path}:{number}: a tab, or blanks at the end'
        if len(line) > LINE_COLUMNS and path.endswith(('.c', '.h')):
            yield f'{path}:{number}: {len(line)} columns'
    if path.endswith(('.c', '.h')):
        yield from check_c(root, path, text)


def main():
    root = sys.argv[1]
    complaints = []
    paths = tree.files(root, ('.c', '.h', '.py', '.cddl', '.sh', 'meson.build', '.sym'))
    for path in paths:
        complaints += check(root, path, tree.read(root, path))
    return tree.report('sources', complaints, len(paths))


if __name__ == '__main__':
    sys.exit(main())
