# SPDX-License-Identifier: ISC
"""Holds the pages of the programs to the programs: the options that each one's --help lists, and no others, are in
its page; so are rigctl's verbs with their own options; each setting of rigd is in rigd.conf(5) with its default;
org.rig.Rig1(5) has each member of the D-Bus interface with its signature, and each polkit action.

Usage: check-programs.py ROOT RIGD RIGCTL
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import mdoc

UNITS = {'K': 1, 'M': 2, 'G': 3, 'T': 4}
# What every verb of rigctl takes is described once, in the page's OPTIONS.
OPTION = re.compile(r'^\s+(?:-\w, )?--([a-z][a-z-]*)', re.M)


def output(*command):
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if run.returncode or not run.stdout:
        raise SystemExit(f'{command}: status {run.returncode}: {run.stderr}')
    return run.stdout


def page(root, name):
    return mdoc.Page(pathlib.Path(root, 'docs/man', name))


def options_of(page, within=None):
    """Long options that are the tag of an item, or of several: `.It Fl j , -json`."""
    tags = ' '.join(tag for tag, _ in page.items(within))
    return set(re.findall(r'(?:Fl|,) -([a-z][a-z-]*)', tags))


def check_options(page, program, helps, have):
    yield from (f'{page}: lacks --{o}, which {program} has' for o in sorted(helps - have))
    yield from (f'{page}: has --{o}, which {program} lacks' for o in sorted(have - helps))


def number(text):
    """A value as rigd.conf has it, as what it means: 256M and 268435456 are one."""
    found = re.fullmatch(r'(\d+)([KMGT]?)', text)
    return int(found.group(1)) << 10 * UNITS.get(found.group(2), 0) if found else text


def check_settings(page, rigd):
    text = output(rigd, '--config', '/dev/null', '--print-config')
    settings = dict(re.findall(r'^(\w+)=(.*)$', text, re.M))
    items = {tag[3:].rstrip('='): text for tag, text in page.items('DESCRIPTION') if re.fullmatch(r'Va \w+=', tag)}
    yield from (f'{page}: lacks {key}' for key in settings if key not in items)
    yield from (f'{page}: has {key}, which rigd lacks' for key in items if key not in settings)
    if list(items) != list(settings):
        yield f'{page}: has its settings in another order than rigd'
    for key in set(settings) & set(items):
        said = re.search(r'The default is (\w+)', items[key])
        if not said or number(said.group(1)) != number(settings[key]):
            yield f'{page}: {key}: has the default {said and said.group(1)}, and rigd {settings[key]}'


def signatures(interface):
    """What the interface's members are, as the page has them."""
    for member in interface.findall('method'):
        arguments = [f'"{a.get("direction")} {a.get("type")} {a.get("name")}"' for a in member.findall('arg')]
        yield ' '.join(['Fn', member.get('name'), *arguments])
    yield from (f'Va {p.get("name")} Pq Li {p.get("type")}' for p in interface.findall('property'))
    yield from (f'signal {s.get("name")}' for s in interface.findall('signal'))


def devices(root):
    """The dictionaries of ListDevices, which are no interface's: a comment of the XML has them."""
    text = pathlib.Path(root, 'daemon/bus/org.rig.Rig1.xml').read_text(encoding='utf-8')
    comment = re.search(r'Each has:(.*?)-->', text, re.S)
    members = re.sub(r'\(.*?\)', '', comment.group(1) if comment else '', flags=re.S)
    return [f'Va {name} Pq Li {kind}' for name, kind in re.findall(r'(\w+) ([a-z]\b)', members)]


def check_bus(page, root):
    parts, part = {}, None
    for macro, arguments in page.macros('DESCRIPTION'):
        if macro == 'Ss':
            part = arguments
        elif macro == 'It':
            parts.setdefault(part, []).append(arguments)
    tree = ET.parse(pathlib.Path(root, 'daemon/bus/org.rig.Rig1.xml'))
    wanted = {i.get('name'): list(signatures(i)) for i in tree.getroot().findall('interface')}
    wanted['Devices'] = devices(root)
    for name, members in wanted.items():
        have = parts.get(name, [])
        yield from (f'{page}: {name}: lacks "{m}"' for m in members if m not in have)
        yield from (f'{page}: {name}: has "{m}", which is not in the interface' for m in have if m not in members)
        if len(members) < 5:
            yield f'{name} has hardly any member: it was not read'
    xml = pathlib.Path(root, 'daemon/bus/org.rig.Rig1.xml').read_text(encoding='utf-8')
    text = mdoc.plain('\n'.join(page.lines))
    named = set(re.findall(r'org\.rig\.rig1\.[a-z-]+|org\.rig\.Rig1\.Error\.\w+', xml))
    yield from (f'{page}: lacks {n}' for n in sorted(named) if n not in text)


def check_rigctl(page, rigctl):
    text = output(rigctl, '--help')
    verbs = re.findall(r'^  ([a-z][a-z-]*)\b', text, re.M)
    shared = set(OPTION.findall(text))
    yield from check_options(page, 'rigctl', shared, options_of(page, 'OPTIONS'))
    tags = [tag for tag, _ in page.items('COMMANDS')]
    mentioned = {m.group(1) for tag in tags for m in [re.match(r'Cm ([a-z-]+)', tag)] if m}
    yield from (f'{page}: lacks the verb {v}' for v in verbs if v not in mentioned)
    yield from (f'{page}: has the verb {v}, which rigctl lacks' for v in sorted(mentioned) if v not in verbs)
    if len(verbs) < 8:
        yield f'rigctl --help lists hardly any verb: {verbs}'
    helps = set().union(*(set(OPTION.findall(output(rigctl, verb, '--help'))) for verb in verbs)) - shared
    yield from check_options(page, 'rigctl VERB', helps, options_of(page, 'COMMANDS') - shared)


def main():
    root, rigd, rigctl = sys.argv[1:4]
    rigd_page = page(root, 'rigd.8')
    complaints = [*check_options(rigd_page, 'rigd', set(OPTION.findall(output(rigd, '--help'))), options_of(rigd_page))]
    complaints += check_settings(page(root, 'rigd.conf.5'), rigd)
    complaints += check_bus(page(root, 'org.rig.Rig1.5'), root)
    complaints += check_rigctl(page(root, 'rigctl.1'), rigctl)
    return mdoc.report('programs', complaints, 4)


if __name__ == '__main__':
    sys.exit(main())
