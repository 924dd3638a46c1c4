# SPDX-License-Identifier: ISC
"""What rigd's configuration comes to, said a second time and slowly, from systemd's pages alone.

Where each rule is from:

 - systemd-system.conf(5), "Configuration directories and precedence": the main file is read first; drop-ins have
   higher precedence and override it; they are sorted by their file name in lexicographic order, regardless of which
   folder they are in; the entry in the file sorted last wins; a link to /dev/null with the same name disables one.
   systemd.unit(5): a file in /etc takes precedence over those in /run and these over those in /usr/lib, and with the
   same name hides them. Newer pages look for the main file in the same four folders and take the first.
 - systemd.syntax(7): sections and Key=Value; blanks right before and after the = are ignored; empty lines and lines
   that start with # or ; are ignored; a line that ends in a backslash is joined to the following line, and the
   backslash becomes a blank; comments that follow such a line are ignored; an empty value resets.

What the pages leave open is rigd's: where two backslashes stand at the end of a line none continues it; an empty line
ends a continued one; what is continued has the number of its first line; keys before any section are wrong.
"""

import os
import re

FOLDERS = ('etc/rig', 'run/rig', 'usr/local/lib/rig', 'usr/lib/rig')
BLANKS = ' \t\r\n'
DEFAULTS = {'PollUSec': 50, 'LogLevel': 'info', 'ClientsMax': 1024, 'ClientObjectsMax': 16384,
            'ClientMemoryMax': None, 'ClientRunsMax': 16384, 'ClientCacheMax': 256 << 20, 'ClientQueueMax': 1 << 20,
            'ClientTraceMax': 16 << 20, 'AdapterMemoryMax': None}
LEAST = {'ClientsMax': 1, 'ClientObjectsMax': 1, 'ClientMemoryMax': 1, 'ClientRunsMax': 1, 'ClientQueueMax': 65536,
         'AdapterMemoryMax': 1}
SIZES = ('ClientMemoryMax', 'ClientCacheMax', 'ClientQueueMax', 'ClientTraceMax', 'AdapterMemoryMax')
UNITS = {'size': {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40},
         'time': {'': 1, 'us': 1, 'ms': 1000, 's': 1000000}, 'count': {'': 1}}
LARGEST = (1 << 64) - 1


def value_of(key, text):
    """The value of a text: a number, None for no limit, a level; ValueError where it is wrong."""
    if key == 'LogLevel':
        if text not in ('err', 'warning', 'notice', 'info', 'debug'):
            raise ValueError
        return text
    if text == 'infinity':
        return None
    kind = 'size' if key in SIZES else 'time' if key == 'PollUSec' else 'count'
    blank = '[ \t]*' if kind == 'time' else ''
    found = re.fullmatch('([0-9]+)' + blank + '([A-Za-z]*)', text)
    if not found or found[2] not in UNITS[kind]:
        raise ValueError
    number = int(found[1]) * UNITS[kind][found[2]]
    if number > LARGEST or number < LEAST.get(key, 0):
        raise ValueError
    return None if number == LARGEST else number


def printed(value):
    """The same as --print-config's text gives, so that both can be compared as values."""
    return 'infinity' if value is None else value


def whole_lines(text):
    """(number of its first line, line) of a file, with continued lines joined."""
    lines = text.split('\n')
    if lines[-1] == '':
        lines.pop()
    joined, first = None, 0
    for number, line in enumerate(lines, 1):
        line = line.removesuffix('\r').lstrip(BLANKS)
        if line[:1] in ('#', ';'):
            continue
        if joined is None:
            joined, first = '', number
        joined += line
        if re.search(r'(?<!\\)(\\\\)*\\$', line):
            joined = joined[:-1] + ' '
            continue
        yield first, joined.strip(BLANKS)
        joined = None
    if joined is not None:
        yield first, joined.strip(BLANKS)


class Configuration:
    """Values, where they come from, and the lines that are wrong, of a tree."""

    def __init__(self):
        self.values = dict(DEFAULTS)
        self.origins = {key: 'default' for key in DEFAULTS}
        self.wrong = []

    def read_file(self, path):
        with open(path, encoding='utf-8', newline='') as f:
            text = f.read()
        section = None
        for number, line in whole_lines(text):
            if line == '':
                continue
            if line.startswith('['):
                section = line[1:-1] if line.endswith(']') else 'broken'
                if not line.endswith(']') or not (section == 'Daemon' or section.startswith('X-')):
                    self.wrong.append(f'{path}:{number}')
            elif section in (None, 'Daemon'):
                self.assign(path, number, section, line)

    def assign(self, path, number, section, line):
        key, equals, text = (part.strip(BLANKS) for part in line.partition('='))
        where = f'{path}:{number}'
        try:
            if not equals or section is None:
                raise ValueError
            if key.startswith('X-'):
                return
            if key not in self.values:
                raise ValueError
            self.values[key] = value_of(key, text) if text else DEFAULTS[key]
            self.origins[key] = f'from {where}'
        except ValueError:
            self.wrong.append(where)

    def read_tree(self, root):
        folders = [os.path.join(root, folder) for folder in FOLDERS]
        mains = [f'{folder}/rigd.conf' for folder in folders if os.path.exists(f'{folder}/rigd.conf')]
        for path in mains[:1]:
            self.read_file(path)
        drop_ins = {}
        for folder in reversed(folders):  # a later one takes the place of its namesake
            if os.path.isdir(f'{folder}/rigd.conf.d'):
                for name in os.listdir(f'{folder}/rigd.conf.d'):
                    if name.endswith('.conf'):
                        drop_ins[name] = f'{folder}/rigd.conf.d/{name}'
        for name in sorted(drop_ins):
            self.read_file(drop_ins[name])
        return self
