# SPDX-License-Identifier: ISC
"""A trace, read as Perfetto reads it.

What must hold of one is taken from the document "Trace Event Format" and from how Perfetto's importer works: it reads
times as doubles of microseconds which it multiplies by 1000 and cuts, has threads by their number alone, sorts by time
and keeps the order of the file otherwise, binds an arrow's end to the slice that is open on its track, and drops a
slice that overlaps another of its track without being in it. Importer follows it, and fails where something would be
dropped; Python's parser of JSON reads the file, told to take nothing that is not in the standard.
"""

import json


def no_constant(name):
    raise ValueError(f'{name} is not JSON')


def unique(pairs):
    assert len(dict(pairs)) == len(pairs), f'a key twice: {pairs}'
    return dict(pairs)


def nanoseconds(microseconds):
    """As Perfetto does."""
    return int(float(microseconds) * 1000.0)


REQUIRED = {
    'X': {'ph', 'pid', 'tid', 'ts', 'dur', 'cat', 'name'},
    'M': {'ph', 'pid', 'tid', 'name', 'args'},
    's': {'ph', 'pid', 'tid', 'ts', 'id', 'cat', 'name'},
    'f': {'ph', 'pid', 'tid', 'ts', 'id', 'cat', 'name', 'bp'},
    'C': {'ph', 'pid', 'ts', 'name', 'args'},
    'i': {'ph', 'pid', 's', 'ts', 'name'},
}


class Importer:
    def __init__(self, data):
        top = json.loads(data.decode('utf-8'), parse_constant=no_constant, object_pairs_hook=unique)
        assert set(top) == {'traceEvents', 'otherData'}, set(top)
        self.other = top['otherData']
        self.events = top['traceEvents']
        self.lines = data.decode('utf-8').removesuffix('\n').split('\n')
        # an event a line, between the first and the last two
        assert len(self.lines) == len(self.events) + 2, 'events and lines differ'
        self.processes, self.threads, self.sort_index = {}, {}, {}
        self.slices, self.flows, self.counters, self.instants = [], {}, [], []
        pids = {}
        for e in self.events:
            wanted = REQUIRED[e['ph']]
            assert wanted <= set(e) <= wanted | {'args'}, e
            if e['ph'] == 'X' and e['cat'] == 'run':
                assert pids.setdefault(e['tid'], e['pid']) == e['pid'], 'a thread of two processes'
            if e['ph'] == 'M':
                self.metadata(e)
        timed = [e for e in self.events if e['ph'] != 'M']
        for e in sorted(timed, key=lambda e: nanoseconds(e['ts'])):  # stable, as the importer's
            self.event(e)
        for flow in self.flows.values():
            assert set(flow) == {'s', 'f'}, 'half an arrow'

    def metadata(self, e):
        if e['name'] == 'process_name':
            self.processes[e['pid']] = e['args']['name']
        elif e['name'] == 'thread_name':
            self.threads[e['tid']] = e['args']['name']
        else:
            assert e['name'] == 'thread_sort_index', e
            self.sort_index[e['tid']] = e['args']['sort_index']

    def event(self, e):
        ts = nanoseconds(e['ts'])
        e['from'] = ts + self.other['epoch_nsec']
        track = [s for s in self.slices if s['tid'] == e['tid']] if 'tid' in e else []
        if e['ph'] == 'X':
            e['start'], e['end'] = ts, ts + nanoseconds(e['dur'])
            for s in track:
                inside = s['start'] <= e['start'] and e['end'] <= s['end']
                assert s['end'] <= e['start'] or inside, f'it would be dropped: {e} for {s}'
                assert not inside or e['cat'] == 'span', f'a run in a run: {e} in {s}'
            self.slices.append(e)
        elif e['ph'] in 'sf':
            around = [s for s in track if s['start'] <= ts < s['end']]
            assert len(around) == 1, f'an arrow that binds to {len(around)} slices: {e}'
            assert e['ph'] not in self.flows.setdefault(e['id'], {}), 'an arrow with two ends of a kind'
            assert e.get('bp', 'e') == 'e'
            self.flows[e['id']][e['ph']] = around[0]
        elif e['ph'] == 'C':
            self.counters.append(e)
        else:
            self.instants.append(e)

    def arrows(self):
        return sorted((f['s']['name'], f['f']['name']) for f in self.flows.values())

    def named(self, name):
        return [s for s in self.slices if s['name'] == name]
