# SPDX-License-Identifier: ISC
"""What the checks of manual pages share: a page in mdoc(7), read by its macros, and where pages are.

It reads the few macros that the pages of this tree use, and no more; that the pages are well formed is for mandoc
and groff to say (check-lint.py).
"""

import pathlib
import re
import shlex

ESCAPES = {r'\e': '\\', r'\(aq': "'", r'\(ga': '`', r'\(ha': '^', r'\(ti': '~', r'\-': '-', r'\&': ''}
ESCAPE = re.compile(r'\\(?:\(..|.)')


def plain(text):
    """Text as a reader sees it. An escape that is none of ESCAPES is left."""
    return ESCAPE.sub(lambda m: ESCAPES.get(m.group(0), m.group(0)), text)


def squeeze(code):
    """C without comments, and with blanks only where they part words."""
    code = re.sub(r'/\*.*?\*/', ' ', code, flags=re.S)
    code = re.sub(r'\s+', ' ', code).strip()
    return re.sub(r' ?([*,;(){}\[\]]) ?', r'\1', code)


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name, _, self.section = self.path.name.rpartition('.')
        self.lines = self.path.read_text(encoding='utf-8').splitlines()

    def __str__(self):
        return self.path.name

    def macros(self, within=None):
        """Each line's macro and arguments, of one section or of all; text lines have the macro ''."""
        section = None
        for line in self.lines:
            if line.startswith('.\\"'):
                continue
            macro, arguments = '', line
            if line.startswith('.'):
                macro, _, arguments = line[1:].partition(' ')
            if macro == 'Sh':
                section = arguments
            elif within is None or within == section:
                yield macro, arguments

    def words(self, within=None):
        """The arguments of each macro, as (macro, [argument ...])."""
        for macro, arguments in self.macros(within):
            if macro:
                yield macro, shlex.split(arguments.replace("'", r"\'"))

    def sections(self):
        return [line[4:] for line in self.lines if line.startswith('.Sh ')]

    def names(self):
        return [words[0] for macro, words in self.words('NAME') if macro == 'Nm']

    def named(self, macro):
        """Every word that is marked with a macro that may stand inside of a line: Er, Dv, Fl, Cm, Va."""
        found = set()
        for _, arguments in [(m, f'{m} {a}') for m, a in self.macros() if m]:
            found |= set(re.findall(rf'(?<!\S){macro} (\S+)', arguments))
        return found

    def references(self):
        return {(words[0], words[1]) for macro, words in self.words() if macro == 'Xr'}

    def prototypes(self):
        """{function: 'type name(arguments)'} of the synopsis."""
        found, kind, name, arguments = {}, None, None, []
        for macro, words in self.words('SYNOPSIS'):
            if macro == 'Ft':
                kind = ' '.join(words)
            elif macro == 'Fo':
                name, arguments = words[0], []
            elif macro == 'Fa':
                arguments += words
            elif macro == 'Fn':
                found[words[0]] = f'{kind} {words[0]}({", ".join(words[1:])})'
            elif macro == 'Fc':
                found[name] = f'{kind} {name}({", ".join(arguments)})'
        return {n: squeeze(p) for n, p in found.items()}

    def displays(self, within=None):
        """The text of each literal display, as it is read."""
        text = None
        for macro, arguments in self.macros(within):
            if macro == 'Bd' and arguments.startswith('-literal'):
                text = []
            elif macro == 'Ed' and text is not None:
                yield '\n'.join(text) + '\n'
                text = None
            elif text is not None:
                text.append(plain(arguments if not macro else f'.{macro} {arguments}'))

    def items(self, within=None):
        """(what the tag of a list has, the text up to the next tag), marks left out."""
        tag, text = None, []
        for macro, arguments in self.macros(within):
            if macro == 'It':
                if tag is not None:
                    yield tag, ' '.join(text)
                tag, text = arguments, []
            elif tag is not None:
                text.append(plain(arguments))
        if tag is not None:
            yield tag, ' '.join(text)


def pages(root):
    return [Page(p) for p in sorted(pathlib.Path(root, 'docs/man').iterdir()) if p.suffix[1:].isdigit()]


def report(what, complaints, looked_at):
    """Prints what is wrong. Return: the exit status; a check that looked at nothing fails too."""
    for complaint in complaints:
        print(complaint)
    print(f'{what}: looked at {looked_at}, {len(complaints)} wrong')
    return 1 if complaints or not looked_at else 0
