# SPDX-License-Identifier: ISC
"""Runs the bench in rounds and prints a table: floors, rig, peers, ratios, and the goals.

Every ratio is of a subject and a floor of the same round; shown are the median of the rounds and the best one.
It says whether a goal is met and never fails for one: only for a program that fails. Besides the table it
writes everything, round by round, as JSON.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

SPIN, SEQPACKET, MEMCPY = 'floor spin', 'floor seqpacket', 'floor memcpy 4 KiB'
PROFILED = 'chain on one buffer, profiled'
CHAIN, STARPU = 'chain on one buffer', 'peer StarPU chain'
AWAKE_SPIN_USEC = 0.15


def over(subject, floor):
    return lambda r: r[subject] / r[floor] if r[floor] else None


def chain_goal(r):
    return r[CHAIN] if r[SPIN] < AWAKE_SPIN_USEC else None


def copy_over(r):
    return r['copy of 4 KiB, submit and wait'] / (r['submit and wait, ring'] + r[MEMCPY] / 1000)


# name; unit; what is compared with the goal, of one round; at most or at least; the goal; in words
GOALS = (
    ('submit and wait, ring', 'us', over('submit and wait, ring', SPIN), '<=', 5, 'x spin'),
    ('submit and wait, words', 'us', over('submit and wait, words', SEQPACKET), '<=', 1, 'x polled seqpacket'),
    ('submit and wait, socket', 'us', over('submit and wait, socket', SEQPACKET), '<=', 1, 'x polled seqpacket'),
    ('copy of 4 KiB, submit and wait', 'us', copy_over, '<=', 1.2, 'x (submit and wait + memcpy)'),
    (CHAIN, 'ns', chain_goal, '<=', 100, f'ns, where spin < {AWAKE_SPIN_USEC} us'),
    (CHAIN, 'ns', over(STARPU, CHAIN), '>=', 15, 'x faster than StarPU'),
    (PROFILED, 'ns', lambda r: r[PROFILED] - r[CHAIN], '<=', 150, 'ns more than without'),
    ('independent, 1024 buffers', 'ns', lambda r: r['independent, 1024 buffers'], '<=', 100, 'ns'),
    ('submit cost, 4 accesses, batch 64', 'ns', lambda r: r['submit cost, 4 accesses, batch 64'], '<=', 55, 'ns'),
    ('connect to first run done', 'us', lambda r: r['connect to first run done'], '<=', 1000, 'us'),
    ('exec to listening', 'us', lambda r: r['exec to listening'], '<=', 1000, 'us'),
    ('rss idle', 'KiB', lambda r: r['rss idle'], '<=', 2253, 'KiB'),
    ('rss of a client', 'KiB', lambda r: r['rss of a client'], '<=', 96, 'KiB'),
    ('wake-ups of an idle rigd', '', lambda r: r['wake-ups of an idle rigd'], '<=', 0, ''),
)


def run_program(command):
    """The lines of a program as {name: value}, and their units. None where it says it cannot run (77)."""
    r = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if r.returncode == 77:
        return None
    if r.returncode:
        sys.exit(f'{os.path.basename(command[0])} failed with {r.returncode}')
    return {name: float(value) for name, _, value in (line.split('\t') for line in r.stdout.splitlines())}


def run_rounds(build, rounds, scale):
    bench = os.path.join(build, 'tests/bench/rig-bench')
    starpu = os.path.join(build, 'tests/bench/starpu-bench')
    rigd = os.path.join(build, 'daemon/rigd')
    found = []
    for i in range(rounds):
        values = run_program([bench, rigd, str(scale)])
        if values is None:
            sys.exit(77)
        if os.path.exists(starpu):
            values.update(run_program([starpu, str(scale)]))
        found.append(values)
        print(f'round {i + 1} of {rounds}: spin {values[SPIN]:.3f} us', file=sys.stderr)
    return found


def judge(rounds):
    rows = []
    for name, unit, compared, sign, goal, words in GOALS:
        values = [r[name] for r in rounds]
        try:
            compared_values = [c for c in map(compared, rounds) if c is not None]
        except KeyError:
            compared_values = []
        row = {'name': name, 'unit': unit, 'median': statistics.median(values), 'best': min(values),
               'goal': f'{sign} {goal:g} {words}'.strip(), 'compared': None, 'compared_best': None, 'met': None}
        if compared_values:
            best = min if sign == '<=' else max
            row['compared'] = statistics.median(compared_values)
            row['compared_best'] = best(compared_values)
            row['met'] = row['compared'] <= goal if sign == '<=' else row['compared'] >= goal
        rows.append(row)
    return rows


def table(rounds, rows):
    lines = [f'{"floor or peer":36} {"median":>10} {"best":>10}']
    units = {SPIN: 'us', SEQPACKET: 'us', MEMCPY: 'ns', 'floor spin, after': 'us', STARPU: 'ns'}
    for name, unit in units.items():
        values = [r[name] for r in rounds if name in r]
        if values:
            lines.append(f'{name:36} {statistics.median(values):10.4g} {min(values):10.4g} {unit}')
        else:
            lines.append(f'{name:36} {"skipped: its library was not there at build time":>21}')
    lines.append('')
    lines.append(f'{"rig":36} {"median":>10} {"best":>10} {"":4} {"compared":>9} {"best":>9}  goal')
    for r in rows:
        met = {None: 'not judged here', True: 'met', False: 'NOT met'}[r['met']]
        compared = ' '.join(f'{v:9.3g}' if v is not None else f'{"-":>9}'
                            for v in (r['compared'], r['compared_best']))
        lines.append(f'{r["name"]:36} {r["median"]:10.4g} {r["best"]:10.4g} {r["unit"]:4} {compared}  '
                     f'{r["goal"]}: {met}')
    return '\n'.join(lines)


def machine():
    model = platform.machine()
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        for line in f:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    return {'cpu': model, 'cpus': os.cpu_count(), 'kernel': platform.release(), 'load': os.getloadavg()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--json', required=True)
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--quick', action='store_true', help='one short round: does it work at all')
    a = parser.parse_args()
    about = machine()
    rounds = run_rounds(a.build, 1 if a.quick else a.rounds, 0.02 if a.quick else 1)
    rows = judge(rounds)
    print(f'{about["cpu"]}, {about["cpus"]} processors, Linux {about["kernel"]}, load {about["load"][0]:.1f}; '
          f'{len(rounds)} round(s)')
    print(table(rounds, rows))
    with open(a.json, 'w', encoding='utf-8') as f:
        json.dump({'machine': about, 'quick': a.quick, 'rounds': rounds, 'rows': rows}, f, indent=1)
    with open(a.json, encoding='utf-8') as f:
        again = json.load(f)
    if len(again['rows']) != len(GOALS) or not all(r['median'] >= 0 for r in again['rows']):
        sys.exit(f'{a.json} does not hold what was measured')
    return 0


if __name__ == '__main__':
    sys.exit(main())
