# SPDX-License-Identifier: ISC
"""Holds the trace that docs/examples/12-profile.c writes to what that program does.

    check-example.py RIGD TRANSPORT EXAMPLE

The numbers below are the example's: 8 blocks of 4096 bytes, through 2 buffers in memory, on two devices.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from perfetto import Importer

BLOCKS, BLOCK = 8, 4096


def trace(rigd, transport, example):
    environment = dict(os.environ, RIG_RIGD=os.path.abspath(rigd), RIG_ADDRESS='private', RIG_TRANSPORT=transport)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.abspath(example)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)
        assert os.listdir(folder) == ['profile.json'], os.listdir(folder)
        return Importer(pathlib.Path(folder, 'profile.json').read_bytes())


def main():
    t = trace(*sys.argv[1:])
    runs = [s for s in t.slices if s['cat'] == 'run']
    spans = {s['name']: s for s in t.slices if s['cat'] == 'span'}
    tracks = {name: {t.threads[s['tid']] for s in t.named(name)} for name in ('load', 'upper', 'store')}
    assert len(runs) == 3 * BLOCKS, len(runs)
    assert all(len(names) == 1 for names in tracks.values()), tracks
    assert tracks['load'] == tracks['store'] and all(name.startswith('disk') for name in tracks['load']), tracks
    assert all(name.startswith('host') for name in tracks['upper']), tracks
    for name, copied, launches in (('load', BLOCK, 0), ('upper', 0, 1), ('store', BLOCK, 0)):
        slices = t.named(name)
        assert len(slices) == BLOCKS, name
        assert {(s['args']['copied_bytes'], s['args']['launches']) for s in slices} == {(copied, launches)}, name
        assert all('error' not in s['args'] for s in slices)

    # the program is one process, as the kernel names it, whose thread has the spans
    programs = {s['pid'] for s in t.slices}
    assert len(programs) == 1 and t.processes[programs.pop()] == '12-profile', t.processes
    assert set(spans) == {'the file', 'submit', 'wait'} and {s['tid'] for s in spans.values()} == {spans['wait']['pid']}
    assert spans['the file']['start'] <= spans['submit']['start'] <= spans['submit']['end'] <= spans['wait']['start']
    assert spans['wait']['end'] <= spans['the file']['end']
    assert all(spans['submit']['start'] <= s['start'] for s in runs), 'a run before it was submitted'

    # A stage follows the one before it on its block, and arrows say so where it had to wait: the stage before it may
    # have been over when it came.
    for earlier, later in (('load', 'upper'), ('upper', 'store')):
        for i in range(BLOCKS):
            assert t.named(earlier)[i]['end'] <= t.named(later)[i]['end']
    assert set(t.arrows()) <= {('load', 'upper'), ('upper', 'store'), ('store', 'upper'), ('upper', 'load')}, t.arrows()
    assert t.other['dropped'] == 0
    print(f'{len(runs)} runs, {len(t.flows)} arrows, {len(t.counters)} counts of memory')


if __name__ == '__main__':
    main()
