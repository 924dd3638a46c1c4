# SPDX-License-Identifier: ISC
"""Holds what the bus, polkit and the journal read to those who read it, and to each other.

journalctl reads the catalog into a database in a temporary folder. What names a thing twice (actions, services, users)
names it alike.

Usage: check-policies.py ROOT BUILD
"""

import configparser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

NAME = 'org.rig.Rig1'
ACTIONS = {f'org.rig.rig1.{what}' for what in ('set-limits', 'trace', 'reload', 'set-log-level')}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def tree(path):
    return xml.etree.ElementTree.parse(path).getroot()


def actions(folder):
    """Each action has a description and a message, and nobody gets one without an admin's password."""
    found = tree(folder / 'org.rig.rig1.policy').findall('action')
    names = {action.get('id') for action in found}
    wrong = [] if names == ACTIONS else [f'polkit: {sorted(names ^ ACTIONS)} are missing, or too much']
    for action in found:
        for what in ('description', 'message'):
            if not (action.findtext(what) or '').strip():
                wrong.append(f'polkit: {action.get("id")} has no {what}')
        for who in ('allow_any', 'allow_inactive', 'allow_active'):
            if action.findtext('defaults/' + who) not in ('no', 'auth_admin', 'auth_admin_keep'):
                wrong.append(f'polkit: {action.get("id")}: {who} is {action.findtext("defaults/" + who)}')
    return wrong


def interface(root):
    """The comments of the interface name each action; nothing else names one that is not there."""
    text = (root / 'daemon/bus/org.rig.Rig1.xml').read_text(encoding='utf-8')
    named = set(re.findall(r'org\.rig\.rig1\.[a-z-]+', text))
    tree(root / 'daemon/bus/org.rig.Rig1.xml')
    return [f'the interface names the actions {sorted(named)}'] if named != ACTIONS else []


def bus(folder):
    policy = tree(folder / 'org.rig.Rig1.conf')
    owners = [p.get('user') for p in policy.findall('policy') if any(a.get('own') == NAME for a in p.findall('allow'))]
    wrong = [] if 'rigd' in owners and set(owners) <= {'rigd', 'root'} else [f'the bus lets {owners} own {NAME}']
    activation = configparser.ConfigParser()
    activation.optionxform = str
    activation.read(folder / 'org.rig.Rig1.service')
    section = dict(activation['D-BUS Service'])
    if section.get('Name') != NAME or section.get('SystemdService') != 'rigd.service':
        wrong.append(f'the bus activates {section}')
    return wrong


def catalog(path):
    """journalctl takes the catalog, and lists as many entries as the file has."""
    text = path.read_text(encoding='utf-8')
    ids = re.findall(r'(?m)^-- ([0-9a-f]{32})$', text)
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, 'usr/lib/systemd/catalog')
        place.mkdir(parents=True)
        pathlib.Path(folder, 'var/lib/systemd/catalog').mkdir(parents=True)
        shutil.copy(path, place / 'rigd.catalog')
        r = run('journalctl', f'--root={folder}', '--update-catalog')
        listed = run('journalctl', f'--root={folder}', '--list-catalog')
    found = [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
    if r.returncode or r.stderr.strip():
        return [f'journalctl --update-catalog: {r.stderr}']
    return [] if ids and sorted(found) == sorted(ids) else [f'the catalog has {ids}, journalctl lists {found}']


def main():
    root = pathlib.Path(sys.argv[1])
    folder = root / 'systemd'
    wrong = actions(folder) + interface(root) + bus(folder)
    if shutil.which('journalctl'):
        wrong += catalog(folder / 'rigd.catalog')
    else:
        print('skipped: no journalctl to read the catalog')
    print('\n'.join(wrong) or 'all as expected')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
