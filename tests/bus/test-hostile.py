# SPDX-License-Identifier: ISC
"""Callers send what they like, as much as they like, and leave when they like: rigd serves everybody else.

Usage: test-hostile.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import os
import random
import sys
import threading

import dbus
import harness
from harness import LOG, LOG_PATH, MANAGER, NOBODY, PATH, ask, call, eventually

ROOT = os.geteuid() == 0
PATHS = [PATH, LOG_PATH, PATH + '/adapter', PATH + '/adapter/memory', PATH + '/client', PATH + '/client/1',
         PATH + '/client/18446744073709551615', PATH + '/adapter/_', PATH + '/adapter/_ff', '/', '/org/freedesktop']
PROPERTIES = 'org.freedesktop.DBus.Properties'
INTERFACES = [MANAGER, 'org.rig.Rig1.Adapter', 'org.rig.Rig1.Client', LOG, PROPERTIES,
              'org.freedesktop.DBus.Introspectable', 'org.freedesktop.DBus.Peer', 'org.freedesktop.DBus.ObjectManager']
MEMBERS = ['ListAdapters', 'ListClients', 'ListDevices', 'SetClientLimits', 'StartTrace', 'StopTrace', 'Reload', 'Get',
           'Set', 'GetAll', 'Introspect', 'Ping', 'GetMachineId', 'GetManagedObjects', 'Nothing']
TYPES = ['t', 'u', 's', 'v', 'a{st}', 'a{sv}', 'as', 'o', 'g', 'b', 'ay', 'd', '(ss)', 'aa{sv}', 'x', 'y', 'n']
TEXTS = ['', 'LogLevel', 'State', 'Number', 'RunsMax', 'x' * 500, 'é', LOG, MANAGER, 'org.rig.Rig1.Client', 'debug']


def value(r, kind, depth=0):
    c = kind[0]
    if c == 'v':
        inner = r.choice(TYPES if depth < 3 else ['t', 's'])
        return inner, value(r, inner, depth + 1)
    if c == 'a':
        n = r.choice([0, 1, 2, 9])
        if kind[1] == '{':
            return [(r.choice(TEXTS), value(r, kind[3:-1], depth + 1)) for _ in range(n)]
        return [value(r, kind[1:], depth + 1) for _ in range(n)]
    if c == '(':
        return [value(r, k, depth + 1) for k in dbus.split(kind[1:-1])]
    return {'s': lambda: r.choice(TEXTS), 'o': lambda: r.choice(PATHS), 'g': lambda: r.choice(['', 'a{sv}', 't']),
            'b': lambda: r.randrange(2), 'd': r.random, 'y': lambda: r.randrange(256),
            'n': lambda: r.randrange(-9, 9), 'x': lambda: r.randrange(-9, 9),
            'u': lambda: r.choice([0, 1, 2**32 - 1]), 't': lambda: r.choice([0, 1, 2, 2**63, 2**64 - 1])}[c]()


def well(stage, *programs):
    """It answers, and works for its clients."""
    assert stage.get('Adapters') == 3
    for p in programs:
        p.do('fill', 0, 'served')


def busy_program(stage, **kwargs):
    p = stage.program(**kwargs)
    p.do('device', 'memory:M')
    p.do('buffer', 0, 4096)
    return p


def test_random_calls_do_no_harm(stage):
    seed = int.from_bytes(os.urandom(4), 'little')
    print(f'seed {seed}')
    r = random.Random(seed)
    stage.start_rigd()
    p = busy_program(stage)
    c = stage.connect(NOBODY if ROOT else None)
    for i in range(3000):
        signature = ''.join(r.choice(TYPES) for _ in range(r.choice([0, 0, 1, 1, 2, 3, 4])))
        args = [value(r, k) for k in dbus.split(signature)]
        fds = [1] * r.choice([0, 0, 0, 0, 1, 3])
        kind = r.choice([dbus.METHOD_CALL] * 6 + [dbus.SIGNAL, dbus.METHOD_RETURN, dbus.ERROR])
        fields = {dbus.DESTINATION: 'org.rig.Rig1'}
        if kind in (dbus.METHOD_CALL, dbus.SIGNAL):
            fields.update({dbus.PATH: r.choice(PATHS), dbus.INTERFACE: r.choice(INTERFACES),
                           dbus.MEMBER: r.choice(MEMBERS)})
            if kind == dbus.METHOD_CALL and r.randrange(4) == 0:
                del fields[dbus.INTERFACE]
        else:
            fields[dbus.REPLY_SERIAL] = r.choice([1, 2, 3, 4, 5, 10, i + 1])
        if kind == dbus.ERROR:
            fields[dbus.ERROR_NAME] = 'org.freedesktop.DBus.Error.Failed'
        c.send(kind, fields, signature, args, r.choice([0, 1, 2, 4, 7]), fds)
        if i % 100 == 99:
            c.call('org.rig.Rig1', PATH, 'org.freedesktop.DBus.Peer', 'Ping')
            c.queue.clear()
    well(stage, p)
    assert stage.log().count('is on the bus') == 1, 'the bus ended the connection'


def test_bodies_that_are_not_their_signature_do_no_harm(stage):
    r = random.Random(11)
    stage.start_rigd()
    p = busy_program(stage)
    for member, signature in (('SetClientLimits', 'ta{st}'), ('ListClients', 't'), ('StartTrace', 'ht')):
        for _ in range(20):
            c = stage.connect()
            try:
                ask(c, member, signature, body=r.randbytes(r.choice([0, 3, 8, 16, 40])))
                c.call('org.rig.Rig1', PATH, 'org.freedesktop.DBus.Peer', 'Ping')
            except (dbus.Closed, dbus.Failed, OSError):
                pass  # the bus reads bodies, too, and ends whoever sends such
            c.close()
    well(stage, p)


def fds_of(rigd):
    return len(os.listdir(f'/proc/{rigd.pid}/fd'))


def test_descriptors_that_nobody_wants_are_closed(stage):
    rigd = stage.start_rigd()
    p, c = busy_program(stage), stage.connect()
    call(c, 'ListAdapters')
    before = fds_of(rigd)
    for _ in range(50):
        call(c, 'ListAdapters', fds=[0] * 10)
        for member in 'StopTrace', 'Reload', 'Nothing':
            try:
                call(c, member, fds=[0] * 10)
            except dbus.Failed:
                pass
    eventually('none is left', lambda: fds_of(rigd) == before)
    well(stage, p)


def test_long_calls_are_refused(stage):
    stage.start_rigd()
    p, c = busy_program(stage), stage.connect()
    harness.refused(lambda: call(c, 'SetClientLimits', 'ta{st}', (1, [('RunsMax', 5)] * 200000)),
                    'org.freedesktop.DBus.Error.InvalidArgs', 'RunsMax is given twice')
    harness.refused(lambda: c.call('org.rig.Rig1', LOG_PATH, PROPERTIES, 'Set', 'ssv',
                                   (LOG, 'LogLevel', ('s', 'x' * 10000000))),
                    'org.freedesktop.DBus.Error.InvalidArgs', 'no level')
    well(stage, p)


def test_a_flood_shuts_nobody_out(stage):
    stage.start_rigd()
    programs = [busy_program(stage, transport=t) for t in ('ring', 'socket')]
    over = threading.Event()
    sent = []

    def flood(uid):
        c = stage.connect(uid)
        n = 0
        try:
            while not over.is_set() and n < 5000:
                ask(c, 'ListClients', 't', (0,), flags=dbus.NO_REPLY_EXPECTED)
                n += 1
        except OSError:
            pass  # the bus has had enough
        sent.append(n)

    threads = [threading.Thread(target=flood, args=(None,)) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(200):
            for p in programs:
                p.do('fill', 0, 'served')
    finally:
        over.set()
        for t in threads:
            t.join()
    assert sum(sent) > 1000, f'{sent} are no flood'
    well(stage, *programs)  # the bus queues what was sent before


def test_busy_clients_shut_no_admin_out(stage):
    stage.start_rigd()
    programs = [busy_program(stage, transport=t) for t in ('ring', 'words', 'socket', 'socket')]
    over = threading.Event()

    def work(p):
        while not over.is_set():
            p.do('fill', 0, 'busy')

    threads = [threading.Thread(target=work, args=(p,)) for p in programs]
    for t in threads:
        t.start()
    try:
        c = stage.connect()
        for _ in range(200):
            assert 1 <= len(call(c, 'ListClients', 't', (0,))[0]) <= 4
    finally:
        over.set()
        for t in threads:
            t.join()


def test_a_caller_that_reads_nothing_costs_nobody(stage):
    stage.start_rigd()
    p, c = busy_program(stage), stage.connect()
    for _ in range(3000):
        ask(c, 'ListAdapters')
    well(stage, p)
    c.close()
    well(stage, p)


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
