# SPDX-License-Identifier: ISC
"""Random trees of configuration files: rigd reads each as the model does, which was written from systemd's pages.

Where systemd-analyze(1) is installed, its cat-config says which files are read, and in which order.

    test-property.py RIGD [TREES [FIRST-SEED]]

A failure prints its seed and leaves the tree's files in the output.
"""

import random
import re
import shutil
import subprocess
import sys

import model
import rigd

NAMES = ('10-a.conf', '20-b.conf', '9-z.conf', 'A.conf', 'b.conf')
VALUES = ('1', '7', '65536', '70000', '1K', '64K', '3M', '2G', '1T', '0', '', 'infinity', '-1', 'x', '5x', '1 K', '1KK',
          '18446744073709551615', '18446744073709551616', '17179869184G', '3ms', '3 ms', '2s', '9us', 'info', 'debug',
          'loud', '\\', '1\\\\', '"5"')
FITTING = {'LogLevel': ('err', 'warning', 'notice', 'info', 'debug', ''),
           'PollUSec': ('0', '3ms', '3 ms', '2s', '9us', '')}
FITTING_OTHERS = ('1', '7', '70000', '65536', 'infinity', '')
KEYS = (*model.DEFAULTS, 'Nonsense', 'X-Other', 'clientsmax', '')
HOSTILE = (b'\0', b'\n', b'\\', b'=', b'[', b']', b'\xff', b'\r', b' ', b'9' * 30)
BLANKS = ('', '', '', ' ', '\t', '  ')


def a_line(r):
    kind = r.random()
    if kind < 0.7:
        key = r.choice(KEYS)
        value = r.choice(VALUES if r.random() < 0.3 else FITTING.get(key, FITTING_OTHERS))
        return (r.choice(BLANKS) + key + r.choice(BLANKS) + r.choice('=' * 20 + ' ') + r.choice(BLANKS) + value +
                r.choice(BLANKS))
    if kind < 0.8:
        return r.choice(BLANKS) + r.choice(('[Daemon]',) * 8 + ('[daemon]', '[X-Mine]', '[Daemon', '[]',
                                            '[Daemon] x', '[ Daemon]')) + r.choice(BLANKS)
    if kind < 0.9:
        return r.choice(BLANKS) + r.choice('#;') + 'ClientsMax=3' + r.choice(('', '\\'))
    return r.choice(('', ' ', '\t', 'ClientsMax', '=', '= 5', '\\', ' \\', 'ClientsMax=\\', '7', '\\\\'))


def a_file(r):
    lines = ['[Daemon]'] * (r.random() < 0.9) + [a_line(r) for _ in range(r.randrange(12))]
    text = ''.join(line + r.choice(('',) * 12 + ('\\',)) + r.choice(('\n', '\n', '\n', '\r\n')) for line in lines)
    return text.removesuffix('\n') if r.random() < 0.3 else text


def a_tree(r):
    tree = rigd.Tree()
    for folder in rigd.FOLDERS:
        for name in ('rigd.conf', *(f'rigd.conf.d/{n}' for n in NAMES)):
            kind = r.random()
            if kind < 0.25:
                tree.write(f'{folder}/{name}', a_file(r))
            elif kind < 0.3:
                tree.write(f'{folder}/{name}', '')
            elif kind < 0.35:
                tree.link(f'{folder}/{name}', '/dev/null')
    return tree


def as_value(key, text):
    return model.printed(model.value_of(key, text))


def read_by_systemd(tree):
    """The files that systemd's own tool finds, in the order in which it reads them; None where it is not here."""
    if not shutil.which('systemd-analyze'):
        return None
    r = subprocess.run(['systemd-analyze', '--no-pager', f'--root={tree.root}', 'cat-config', 'rig/rigd.conf'],
                       capture_output=True, text=True, check=False)
    return re.findall(rf'(?m)^# ({re.escape(tree.root)}/.*\.conf)$', r.stdout)


def differences(tree):
    """What rigd and the model, or systemd's own tool, say differently of a tree."""
    expected = model.Configuration().read_tree(tree.root)
    said = rigd.run('--config-root', tree.root, '--print-config')
    checked = rigd.run('--config-root', tree.root, '--check-config')
    files = re.findall('(?m)^# read: (.*)$', said.stdout)
    by_systemd = read_by_systemd(tree)
    if by_systemd is not None and files != by_systemd:
        yield f'files: {files}, not {by_systemd}, as systemd reads them'
    settings = rigd.settings_of(said.stdout)
    wrong = [re.match(r'(.*?:\d+): .', line)[1] for line in checked.stderr.splitlines()]
    if wrong != expected.wrong:
        yield f'wrong lines: {wrong}, not {expected.wrong}'
    if checked.returncode != (1 if expected.wrong else 0):
        yield f'--check-config exits {checked.returncode}'
    if set(settings) != set(expected.values):
        yield f'settings: {sorted(settings)}'
    for key, (text, origin) in settings.items():
        if as_value(key, text) != model.printed(expected.values[key]):
            yield f'{key} is {text}, not {expected.values[key]}'
        if origin != expected.origins[key]:
            yield f'{key} is {origin}, not {expected.origins[key]}'
    with open(tree.write('printed', said.stdout), encoding='utf-8') as printed:
        again = subprocess.run([rigd.PROGRAM, '--config', '/dev/stdin', '--print-config'], capture_output=True,
                               text=True, stdin=printed, check=False)
    if {k: v for k, (v, _) in rigd.settings_of(again.stdout).items()} != {k: v for k, (v, _) in settings.items()}:
        yield 'what it prints is read as something else'


def hostile(r):
    """A file of any bytes, or one that was right until some of its bytes were changed."""
    if r.random() < 0.3:
        return r.randbytes(r.randrange(300))
    text = bytearray(a_file(r).encode() + a_file(r).encode())
    for _ in range(r.randrange(8)):
        if text:
            at = r.randrange(len(text))
            text[at:at + r.randrange(3)] = r.choice(HOSTILE)
    return bytes(text)


def survives(tree, text):
    """Whatever a file holds, rigd says which lines are wrong and what counts, and ends as it should."""
    path = tree.write('hostile', text)
    r = subprocess.run([rigd.PROGRAM, '--config', path, '--check-config', '--print-config'], capture_output=True,
                       timeout=rigd.WAIT_SEC, check=False)
    complaints = r.stderr.split(b'\n')[:-1]
    assert r.returncode == (1 if complaints else 0), (r.returncode, text, r.stderr)
    numbers = [int(re.fullmatch(re.escape(path.encode()) + rb':(\d+): [^\0-\x1f]+', c)[1]) for c in complaints]
    assert all(0 < n <= text.count(b'\n') + 1 for n in numbers), (text, r.stderr)
    assert set(rigd.settings_of(r.stdout.decode())) == set(model.DEFAULTS), text


def main():
    trees = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    first = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    seen = {'wrong': 0, 'right': 0}
    for seed in range(first, first + trees):
        tree = a_tree(random.Random(seed))
        try:
            found = list(differences(tree))
            expected = model.Configuration().read_tree(tree.root)
            seen['wrong'] += len(expected.wrong)
            seen['right'] += sum(origin != 'default' for origin in expected.origins.values())
            if found:
                print(f'seed {seed}:', *found, sep='\n  ', flush=True)
                subprocess.run(['grep', '-rn', '', tree.root], check=False)
                return 1
        finally:
            tree.remove()
    tree = rigd.Tree()
    for seed in range(first, first + 2 * trees):
        survives(tree, hostile(random.Random(seed)))
    tree.remove()
    print(f'{trees} trees from seed {first}: {seen["right"]} settings and {seen["wrong"]} mistakes, as the model has')
    return 0 if seen['wrong'] and seen['right'] else 1


if __name__ == '__main__':
    sys.exit(main())
