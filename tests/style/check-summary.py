# SPDX-License-Identifier: ISC
"""Holds tests/summary.py: what it counts, what it says was skipped, and that nothing wrong passes unseen.

Usage: check-summary.py ROOT
"""

import json
import os
import subprocess
import sys
import tempfile

CRITERION = '[\x1b[0;34m====\x1b[0m] \x1b[0;1mSynthesis: Tested: {} | Passing: {} | Failing: {} | Crashing: {} \x1b[0m'


def entry(name, result, stdout='', stderr=''):
    return {'name': name, 'result': result, 'stdout': stdout, 'stderr': stderr}


PASSES = [entry('plain', 'OK'), entry('suite', 'OK', stderr=CRITERION.format(12, 12, 0, 0))]
SKIPS = [entry('hardware', 'SKIP', 'looking for it\nno such device\n')]

# entries of the log, further lines of the results, the last line expected, the exit status, words expected
CASES = (
    (PASSES, '', '13 passed, 0 failed', 0, 'skipped: none'),
    (PASSES + SKIPS, '', '13 passed, 0 failed', 0, 'hardware: no such device'),
    (PASSES + [entry('wrong', 'FAIL')], '', '13 passed, 1 failed', 1, 'wrong (fail)'),
    (PASSES + [entry('slow', 'TIMEOUT')], '', '13 passed, 1 failed', 1, 'slow (timeout)'),
    ([entry('suite', 'FAIL', stderr=CRITERION.format(5, 3, 1, 1))], '', '3 passed, 2 failed', 1, 'suite (fail)'),
    ([entry('leaks', 'FAIL', stderr=CRITERION.format(5, 5, 0, 0))], '', '5 passed, 1 failed', 1, 'leaks (fail)'),
    ([entry('guest', 'OK', 'ok 1 - a\n# why\nok 2 - b\n')], '', '2 passed, 0 failed', 0, 'skipped: none'),
    ([entry('guest', 'FAIL', 'ok 1 - a\nnot ok 2 - b\n')], '', '1 passed, 1 failed', 1, 'guest (fail)'),
    ([entry('guest', 'FAIL', 'ok 1 - a\n')], '', '1 passed, 1 failed', 1, 'guest (fail)'),
    (PASSES, 'FAILED clang: the build failed\n', '13 passed, 1 failed', 1, 'clang: the build failed'),
    ([], '', '0 passed, 1 failed', 1, 'no test ran'),
)


def main():
    summary = os.path.join(sys.argv[1], 'tests/summary.py')
    wrong = 0
    for entries, more, last, status, words in CASES:
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, 'testlog.json')
            with open(log, 'w', encoding='utf-8') as f:
                f.writelines(json.dumps(e) + '\n' for e in entries)
            results = os.path.join(folder, 'results')
            with open(results, 'w', encoding='utf-8') as f:
                f.write(f'LOG gcc: {log}\n{more}')
            r = subprocess.run([sys.executable, summary, results], capture_output=True, text=True, check=False)
        if r.stdout.splitlines()[-1:] != [last] or r.returncode != status or words not in r.stdout:
            print(f'expected {last!r}, status {status} and {words!r}; got {r.returncode} and\n{r.stdout}{r.stderr}')
            wrong += 1
    print(f'{len(CASES)} cases, {wrong} wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
