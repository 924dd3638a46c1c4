# SPDX-License-Identifier: ISC
"""What include/rig/rig.h says, as the checks of its pages need it.

A comment belongs to the declarations that follow it directly: those before the next comment of that column.
"""

import re

import mdoc

TOKEN = re.compile(r'(?P<comment>/\*.*?\*/)|(?P<code>(?:(?!/\*).)+)', re.S)
DECLARATION = re.compile(r'RIG_API\s+(?P<prototype>[^;]*?\b(?P<name>rig_\w+)\([^;]*\));', re.S)


class Header:
    def __init__(self, path):
        text = path.read_text(encoding='utf-8')
        self.prototypes, self.errors = {}, {}
        comment = ''
        for token in TOKEN.finditer(text):
            if token.group('comment'):
                comment = token.group('comment')
                continue
            for found in DECLARATION.finditer(token.group('code')):
                self.prototypes[found.group('name')] = mdoc.squeeze(found.group('prototype'))
                self.errors[found.group('name')] = set(re.findall(r'-(E[A-Z0-9]+)\b', comment))
        bare = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
        self.structs = {m.group(1): mdoc.squeeze(m.group(0))
                        for m in re.finditer(r'^struct (\w+) \{.*?^\};', bare, re.S | re.M)}
        self.constants = set(re.findall(r'^#define (RIG_\w+)\b', bare, re.M)) - {'RIG_RIG_H', 'RIG_API'}


def map_functions(path):
    text = path.read_text(encoding='utf-8')
    return set(re.findall(r'^\s+(rig_\w+);', text.split('global:')[1].split('local:')[0], re.M))
