# SPDX-License-Identifier: ISC
"""Records that tests show: a usual rigd, and one with all that is odd."""

import os
import pwd

from stand import World

ROOT = pwd.getpwuid(0).pw_name
NO_LIMIT = 2**64 - 1


def manager(**changes):
    return dict({
        'Version': '0.1.0', 'StartUSec': 1700000000000000, 'Settings': {'PollUSec': '50', 'ClientsMax': '256'},
        'Clients': 2, 'Devices': 3, 'Adapters': 2, 'Connections': 12, 'ConnectionsRefused': 1, 'ConnectionsBroken': 0,
        'RunsAccepted': 1005, 'RunsReached': 1000, 'RunsFailed': 3, 'RunsLost': 2, 'CopiedBytes': 1610612736,
        'Sleeps': 77, 'Traces': 0, 'LogLinesDropped': 0,
    }, **changes)


def adapter(name, **changes):
    return dict({
        'Name': name, 'Driver': name.split(':')[0], 'About': 'memory of the host', 'State': 'ready', 'Reason': '',
        'Unavailable': '', 'BudgetBytes': 8 << 30, 'LiveBytes': 1536 << 10, 'CachedBytes': 65536, 'Devices': 2,
        'RunsReached': 900, 'RunsFailed': 3, 'CopiedBytes': 1610612736, 'BusyUSec': 2500000,
    }, **changes)


def client(number, **changes):
    return dict({
        'Number': number, 'PID': 1000 + number % 1000, 'UID': 0, 'Command': 'hello', 'Unit': '', 'Library': 'librig-client 0.1.0',
        'Transport': 'ring', 'ConnectedUSec': 1700000000000000, 'Devices': 1, 'Objects': 3, 'ObjectsMax': 65536,
        'LiveBytes': 1536 << 10, 'MemoryMax': 1 << 30, 'CachedBytes': 0, 'CacheMax': 1 << 20, 'RunsInFlight': 0,
        'RunsMax': 4096, 'UnreadBytes': 0, 'QueueMax': 1 << 20, 'RunsReached': 10, 'RunsFailed': 0, 'CopiedBytes': 4096,
        'BusyUSec': 12345,
    }, **changes)


def device(number, of, **changes):
    return dict({
        'Number': number, 'Client': of, 'Id': 1, 'Name': 'memory:M', 'Adapter': 'memory', 'Arch': '', 'Queues': 1,
        'Submitted': 12, 'Handed': 11, 'Reached': 10, 'Failed': 0, 'CopiedBytes': 4096, 'BusyUSec': 12345, 'Lost': False,
        'Reason': '',
    }, **changes)


def usual():
    return World(
        manager(),
        [adapter('memory'),
         adapter('disk', About='files, through io_uring', Devices=1, BudgetBytes=NO_LIMIT, LiveBytes=0, CachedBytes=0,
                 RunsReached=100, RunsFailed=0, CopiedBytes=0, BusyUSec=0)],
        [client(1),
         client(3, PID=4321, UID=4000000000, Unit='render@3.service', Command='render', Transport='socket', Devices=2,
                Objects=40, LiveBytes=3 << 30, RunsInFlight=17, RunsReached=990, RunsFailed=3, CopiedBytes=1610608640,
                BusyUSec=3723000000, MemoryMax=NO_LIMIT)],
        [device(1, 1), device(4, 3, Id=1, Reached=880, Submitted=897, CopiedBytes=1610608640, BusyUSec=3723000000),
         device(5, 3, Id=2, Name='disk', Adapter='disk', Queues=2, Lost=True, Reason='the disk is gone')],
        ['level info'])


HOSTILE = 'a\x1b]0;pwned\x07\x9b31m\r\nb\u202ec'


def odd():
    """Lost adapters, absurd numbers, long names, names that are attacks, nobody's users."""
    return World(
        manager(Version='9.9-odd\x1b[2J', Clients=NO_LIMIT & 0xffffffff, CopiedBytes=NO_LIMIT, StartUSec=0,
                Sleeps=NO_LIMIT, Settings={}),
        [adapter('nv:0', State='lost', Reason='it fell off the bus\x1b[31m', BudgetBytes=NO_LIMIT,
                 LiveBytes=NO_LIMIT - 1, CachedBytes=NO_LIMIT, BusyUSec=NO_LIMIT, RunsReached=NO_LIMIT),
         adapter('a-' + 'very-' * 11 + 'long', About='long ' * 40, Devices=4294967295),
         adapter('disk', Unavailable='io_uring is switched off here', BudgetBytes=0, LiveBytes=0, Devices=0),
         adapter('größe:0', State='resetting', About='名前の長いアダプタ' * 4)],
        [client(1, Command=HOSTILE, Unit=HOSTILE, UID=4294967295, PID=4294967295, Library='"\\', Transport=''),
         client(2, Command='', Objects=NO_LIMIT, LiveBytes=NO_LIMIT, RunsInFlight=NO_LIMIT, BusyUSec=NO_LIMIT,
                CopiedBytes=NO_LIMIT, ConnectedUSec=NO_LIMIT),
         client(NO_LIMIT - 1, PID=77, Unit='unit-' + 'x' * 250 + '.service')],
        [device(4294967295, 1, Name=HOSTILE, Reason=HOSTILE, Lost=True)])


def crowd(n):
    """Hundreds of clients, with numbers that leave gaps."""
    clients = [client(3 * i + 1, PID=2000 + i, Objects=i, LiveBytes=(i * 7919) % 1000 << 10, UID=os.getuid())
               for i in range(n)]
    return World(manager(Clients=n), [adapter('memory')], clients,
                 [device(i + 1, 3 * i + 1, Name=f'memory:{i}') for i in range(n)])
