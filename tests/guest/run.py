#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Boots a Debian guest and holds the packages to their promises there, under systemd as PID 1.

Usage: run.py [--release NAME] [--work FOLDER] [--prepare [--give-to UID:GID]] [--only SCENARIO ...]

The packages are those in $RIG_PACKAGES, a folder of .deb files, else packages.py's, of this tree as it is now. The
guest is build.py's. Both are made where they are missing, which --prepare does and nothing more.

One boot runs scenarios/*.sh in their order, each within a limit; they tell a line for each promise, which are
printed here as TAP. A scenario that does not end, and a guest that does not answer, fail. What each scenario did,
the journal and the console are kept in FOLDER, which is in the guest's cache unless told.

Exit status: 0, 1 where a promise was not held, 77 where there is no QEMU, no guest or no way to make one.
"""

import argparse
import glob
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
import build  # noqa: E402
import machine  # noqa: E402
import packages  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 300  # for a scenario, in a guest without KVM beside other work
SKIP = 77


def say(text):
    print(f'# {text}', flush=True)


# ------------------------------------------------------------------------------------------------ the scenarios

class Report:
    """TAP, and what to exit with."""

    def __init__(self):
        self.count = self.failed = 0

    def add(self, held, text, why=''):
        self.count += 1
        self.failed += not held
        print(f'{"ok" if held else "not ok"} {self.count} - {text}', flush=True)
        for line in why.splitlines():
            say(line)


def excerpt(log, text):
    """What a promise did, from the scenario's log: the last lines before the next one begins."""
    part = log.partition(f'\n==== {text}\n')[2].partition('\n==== ')[0]
    return '\n'.join('    ' + line[:300] for line in part.strip().splitlines()[-12:])


def tell(report, guest, name, status, seconds):
    log = guest.out(name + '.sh.log')
    lines = guest.out(name + '.results').splitlines()
    for line in lines:
        if line.startswith('ok '):
            report.add(True, f'{name}: {line[3:]}')
        elif line.startswith('not ok '):
            report.add(False, f'{name}: {line[7:]}', excerpt(log, line[7:]))
    if lines[-1:] != ['finished']:
        report.add(False, f'{name}: the scenario runs to its end',
                   f'it ended with status {status} after {seconds:.0f} s; the end of its log:\n' + log[-1500:])
    say(f'{name}: {seconds:.1f} s')


def fill_share(guest, found, work):
    """What the guest finds in /share/in."""
    into = os.path.join(guest.share, 'in')
    for name in ('debs', 'debs-next', 'bin', 'expected'):
        os.makedirs(os.path.join(into, name))
    for name, path in found.items():
        if not name.endswith('-dev'):
            guest.put(path, f'debs/{os.path.basename(path)}')
            packages.make_next(path, os.path.join(into, 'debs-next'))
    examples = os.path.join(build.ROOT, 'docs/examples')
    sources = sorted(glob.glob(f'{examples}/[0-9]*.c')) + [os.path.join(HERE, 'load.c')]
    packages.compile_programs(found, sources, os.path.join(work, 'sysroot'), os.path.join(into, 'bin'))
    for path in glob.glob(f'{examples}/*.py'):
        guest.put(path, 'bin/' + os.path.basename(path))
    for path in glob.glob(os.path.join(build.ROOT, 'tests/examples/*.out')):
        guest.put(path, 'expected/' + os.path.basename(path))
    for path in glob.glob(os.path.join(HERE, 'scenarios/*.sh')):
        guest.put(path)
    with open(os.path.join(into, 'collect'), 'w', encoding='utf-8') as f:
        f.write('journalctl -q --sync; journalctl -q -b -o short-precise >/share/out/journal.txt\n')


def run_scenarios(guest, only, report):
    names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, 'scenarios/[0-9]*.sh')))
    started = time.monotonic()
    try:
        with guest:
            say(f'the guest is ready after {time.monotonic() - started:.1f} s')
            for name in names:
                if only and name not in only:
                    continue
                before = time.monotonic()
                status = guest.run(name + '.sh', SECONDS)
                tell(report, guest, name, status, time.monotonic() - before)
                if guest.out(name + '.results').startswith('not ok') and name == names[0]:
                    say('the packages do not install: nothing else is tried')
                    break
            guest.run('collect', 60)
    except machine.GuestError as e:
        report.add(False, 'the guest answers', str(e))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--release', help="Debian's, such as bookworm; this machine's unless told")
    parser.add_argument('--work', help='folder for logs')
    parser.add_argument('--prepare', action='store_true', help='make guest and packages, and no more')
    parser.add_argument('--give-to', metavar='UID:GID', help='whom what was made shall belong to')
    parser.add_argument('--only', nargs='*', help='names of scenarios')
    a = parser.parse_args()
    started = time.monotonic()
    report = Report()
    try:
        release = a.release or build.own_release()
        work = os.path.abspath(a.work or os.path.join(build.cache(), 'work-' + release))
        if not shutil.which('qemu-system-x86_64'):
            raise build.Cannot('there is no qemu-system-x86_64 (package qemu-system-x86)')
        folder = build.ensure(release)
        found = packages.in_folder(os.environ.get('RIG_PACKAGES') or packages.of_tree(release, say))
        if a.prepare:
            build.give(a.give_to)
            return 0
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        guest = machine.Machine(folder, work)
        fill_share(guest, found, work)
        say(f'guest and packages are there after {time.monotonic() - started:.1f} s')
        run_scenarios(guest, a.only, report)
    except build.Cannot as e:
        say(f'skipped: {e}')
        return SKIP
    except (packages.Failed, RuntimeError) as e:
        report.add(False, 'guest, packages and programs are made', str(e))
    print(f'1..{report.count}')
    say(f'{report.count - report.failed} promises held, {report.failed} not, in {time.monotonic() - started:.0f} s'
        + (f'; logs are in {work}' if report.failed else ''))
    return 1 if report.failed or not report.count else 0


if __name__ == '__main__':
    sys.exit(main())
