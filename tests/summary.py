# SPDX-License-Identifier: ISC
"""Says how the tests of one or more builds went.

Reads a file of lines that ./dev test wrote: "LOG title: testlog.json" for a build whose tests ran, and
"FAILED title: reason" for one that could not be tested, which counts as a failed test. A Criterion program
counts as the tests it says it ran, one that numbers its results (TAP) as those, any other program as one. A
test that exits 77 was skipped, and its last line says why. The last line printed is "N passed, N failed"; the
exit status is 1 where any failed.
"""

import json
import re
import sys

SYNTHESIS = re.compile(r'Tested:\s*(\d+)\D+Passing:\s*(\d+)\D+Failing:\s*(\d+)\D+Crashing:\s*(\d+)')
TAP = re.compile(r'^(not )?ok \d+ ', re.M)
COLOURS = re.compile(r'\x1b\[[0-9;]*m')


def counts(test):
    """(passed, failed) of one entry of a testlog.json that was not skipped."""
    good = test['result'] in ('OK', 'EXPECTEDFAIL')
    output = COLOURS.sub('', test.get('stdout', '') + '\n' + test.get('stderr', ''))
    found, results = SYNTHESIS.search(output), TAP.findall(output)
    if results:
        wrong = sum(1 for r in results if r)
        return len(results) - wrong, wrong or (0 if good else 1)
    if not found:
        return (1, 0) if good else (0, 1)
    tested, passing = int(found.group(1)), int(found.group(2))
    # A program that fails although its tests pass (a leak found at its end) is a failure of its own.
    return passing, (tested - passing) or (0 if good else 1)


def reason(test):
    lines = (test.get('stdout', '') + '\n' + test.get('stderr', '')).strip().splitlines()
    return lines[-1].strip() if lines else 'it gave no reason'


def main():
    passed = failed = 0
    skipped, failures = [], []
    with open(sys.argv[1], encoding='utf-8') as results:
        for line in results:
            kind, rest = line.rstrip('\n').split(' ', 1)
            title, what = rest.split(': ', 1)
            if kind == 'FAILED':
                failed += 1
                failures.append(f'{title}: {what}')
                continue
            with open(what, encoding='utf-8') as log:
                for test in map(json.loads, log):
                    if test['result'] == 'SKIP':
                        skipped.append(f'{title}: {test["name"]}: {reason(test)}')
                        continue
                    p, f = counts(test)
                    passed, failed = passed + p, failed + f
                    if f:
                        failures.append(f'{title}: {test["name"]} ({test["result"].lower()})')
    print()
    for text in failures:
        print(f'failed: {text}')
    for text in skipped:
        print(f'skipped: {text}')
    if not skipped:
        print('skipped: none')
    if not passed and not failed:
        failed = 1
        print('failed: no test ran')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
