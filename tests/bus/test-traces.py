# SPDX-License-Identifier: ISC
"""Traces that admins record hold what was run, and end with whoever records them.

The ring is made and read here, by what trace/trace.h says of it.

Usage: test-traces.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import fcntl
import mmap
import os
import struct
import sys

import dbus
import harness
from harness import admin, call, eventually, refused

PAGE, RECORD = 4096, 128
DEVICE, RUN, WAIT, MEMORY = 1, 2, 3, 4
F_ADD_SEALS, SHRINK, GROW, SEAL, WRITE = 1033, 2, 4, 1, 8
KIB = 1024


class Ring:
    def __init__(self, records=1024, seals=SHRINK | GROW | SEAL, size=None):
        self.fd = os.memfd_create('trace', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        size = PAGE + records * RECORD if size is None else size
        os.posix_fallocate(self.fd, 0, size)
        self.n, self.tail = records, 0
        self.map = mmap.mmap(self.fd, size) if seals & WRITE == 0 else None
        fcntl.fcntl(self.fd, F_ADD_SEALS, seals)

    def head(self):
        return struct.unpack_from('<Q', self.map, 0)[0]

    def read(self):
        """The records that came since the last time: kind, device, and what is behind."""
        found = []
        for at in range(self.tail, self.head()):
            start = PAGE + at % self.n * RECORD
            raw = self.map[start:start + RECORD]
            found.append((*struct.unpack_from('<II', raw), raw[8:]))
        self.tail = self.head()
        struct.pack_into('<Q', self.map, 64, self.tail)
        return found


def text(raw):
    return raw.split(b'\0')[0].decode()


def device(raw):
    client, pid, number, queues, _, name, command = struct.unpack_from('<QIIII64s16s', raw)
    return {'client': client, 'pid': pid, 'id': number, 'queues': queues, 'name': text(name), 'command': text(command)}


def run(raw):
    value, accepted, started, ended, copied, filled, launches, queues, error, _, name = struct.unpack_from(
        '<QQQQQQIIiI48s', raw)
    assert 0 < accepted <= started <= ended, (accepted, started, ended)
    return {'value': value, 'copied': copied, 'filled': filled, 'launches': launches, 'queues': queues, 'error': error,
            'name': text(name)}


def start(c, ring, client=0):
    return call(c, 'StartTrace', 'ht', (0, client), fds=[ring.fd])


def two_programs(stage):
    programs = stage.program(), stage.program()
    for p in programs:
        p.do('device', 'memory:M')
        p.do('buffer', 0, 64 * KIB)
        p.do('buffer', 0, 64 * KIB)
    return programs


def test_a_trace_has_what_was_run(stage):
    c, ring = admin(stage), Ring()
    stage.start_rigd()
    p, q = two_programs(stage)
    p.do('fill', 0, 'before')
    start(c, ring)
    assert stage.get('Traces') == 1
    p.do('fill', 0, 'zeroes')
    p.do('copy', 1, 0, 'there')
    q.do('fill', 1, 'others')
    q.do('device', 'host')
    call(c, 'StopTrace')
    assert stage.get('Traces') == 0
    p.do('fill', 0, 'after')
    records = ring.read()
    devices = {number: device(raw) for kind, number, raw in records if kind == DEVICE}
    listed = {d['Number']: d for d in stage.list('ListDevices', 't', 0)}
    assert set(devices) == set(listed), (devices, listed)
    for number, d in devices.items():
        assert (d['client'], d['id'], d['name']) == (
            listed[number]['Client'], listed[number]['Id'], listed[number]['Name']), (d, listed[number])
        assert d['pid'] in (p.pid, q.pid) and d['command'] == 'bus-program', d
    of = {d['Client']: n for n, d in listed.items() if d['Adapter'] == 'memory'}
    runs = [(number, run(raw)) for kind, number, raw in records if kind == RUN]
    mine, other = of[stage.client_of(p)], of[stage.client_of(q)]
    assert [(n, r['name'], r['value'], r['copied'], r['filled'], r['error']) for n, r in runs] == [
        (mine, 'zeroes', 2, 0, 64 * KIB, 0), (mine, 'there', 3, 64 * KIB, 0, 0), (other, 'others', 1, 0, 64 * KIB, 0),
    ], runs
    assert struct.unpack_from('<Q', ring.map, 8) == (0,), 'some were dropped'


def test_a_trace_of_one_client_has_no_other(stage):
    c, ring = admin(stage), Ring()
    stage.start_rigd()
    p, q = two_programs(stage)
    start(c, ring, stage.client_of(q))
    p.do('fill', 0, 'hidden')
    q.do('fill', 0, 'shown')
    call(c, 'StopTrace')
    records = ring.read()
    assert [run(raw)['name'] for kind, _, raw in records if kind == RUN] == ['shown'], records
    assert {device(raw)['pid'] for kind, _, raw in records if kind == DEVICE} == {q.pid}, records


def test_a_trace_ends_with_its_caller(stage):
    c, ring = admin(stage), Ring()
    stage.start_rigd()
    p, _ = two_programs(stage)
    start(c, ring)
    p.do('fill', 0, 'traced')
    c.close()
    eventually('no trace is left', lambda: stage.get('Traces') == 0)
    head = ring.head()
    p.do('fill', 0, 'untraced')
    assert ring.head() == head


def test_a_trace_ends_with_a_caller_that_left_while_it_started(stage):
    admin(stage)
    stage.start_rigd()
    for _ in range(50):
        c = stage.connect()
        harness.ask(c, 'StartTrace', 'ht', (0, 0), fds=[Ring(256).fd])
        c.close()
    eventually('no trace is left', lambda: stage.get('Traces') == 0)


def test_a_trace_ends_with_the_bus(stage):
    c, ring = admin(stage), Ring()
    stage.start_rigd()
    p, _ = two_programs(stage)
    start(c, ring)
    stage.kill_bus()
    stage.logs('has ended the connection')
    stage.start_bus()
    eventually('the name is back', stage.has_name)
    assert stage.get('Traces') == 0
    head = ring.head()
    p.do('fill', 0, 'untraced')
    assert ring.head() == head
    again = admin(stage)
    start(again, Ring())
    call(again, 'StopTrace')


def test_a_caller_has_one_trace(stage):
    c, other = admin(stage), stage.connect()
    stage.start_rigd()
    refused(lambda: call(c, 'StopTrace'), 'org.rig.Rig1.Error.NotTracing', 'you have no trace')
    start(c, Ring())
    refused(lambda: start(c, Ring()), 'org.rig.Rig1.Error.AlreadyTracing', 'StopTrace first')
    refused(lambda: call(other, 'StopTrace'), 'org.rig.Rig1.Error.NotTracing')
    start(other, Ring())
    assert stage.get('Traces') == 2
    call(c, 'StopTrace')
    start(c, Ring())


def test_there_are_few_traces(stage):
    admin(stage)
    stage.start_rigd()
    callers = [stage.connect() for _ in range(9)]
    for c in callers[:8]:
        start(c, Ring(256))
    refused(lambda: start(callers[8], Ring(256)), 'org.freedesktop.DBus.Error.LimitsExceeded', '8 traces')
    call(callers[3], 'StopTrace')
    start(callers[8], Ring(256))


def test_what_is_no_ring_is_refused_with_its_reason(stage):
    c = admin(stage)
    stage.start_rigd()
    invalid = 'org.freedesktop.DBus.Error.InvalidArgs'
    for what, ring in (('unsealed', Ring(seals=0)), ('may grow', Ring(seals=SHRINK | SEAL)),
                       ('odd', Ring(size=PAGE + 1000 * RECORD + 1)), ('three', Ring(size=PAGE + 3 * RECORD)),
                       ('empty', Ring(size=0x1000)), ('sealed', Ring(seals=SHRINK | GROW | SEAL | WRITE))):
        sentence = refused(lambda ring=ring: start(c, ring), invalid, 'the ring cannot be recorded into: ')
        assert len(sentence) > 50, f'{what}: {sentence}'
        os.close(ring.fd)
    with open('/dev/null', 'rb') as f, open(__file__, 'rb') as g:
        for file in f, g:
            refused(lambda file=file: call(c, 'StartTrace', 'ht', (0, 0), fds=[file.fileno()]), invalid)
    refused(lambda: start(c, Ring(), 77), 'org.rig.Rig1.Error.NoSuchClient', 'client 77')
    try:
        call(c, 'StartTrace', 'ht', (3, 0), fds=[Ring().fd])  # a descriptor that the message has not
    except (dbus.Failed, dbus.Closed):
        pass
    eventually('it serves on', stage.has_name)
    assert stage.get('Traces') == 0


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
