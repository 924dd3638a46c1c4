# SPDX-License-Identifier: ISC
"""The bus comes and goes, and rigd is on it whenever it is there; without it, rigd serves its clients.

Usage: test-connection.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import os
import select
import socket
import subprocess
import sys

import harness
from harness import RIGD, call, eventually


def serves(stage):
    """It does a client's work."""
    p = stage.program()
    p.do('device', 'memory:M')
    p.do('buffer', 0, 4096)
    p.do('fill', 0, 'served')
    p.end()


def test_a_bus_that_starts_later_is_found(stage):
    stage.kill_bus()
    os.unlink(stage.bus_path)
    stage.start_rigd(wait=False)
    stage.logs('started')
    serves(stage)
    stage.start_bus()
    eventually('the name is there', stage.has_name)
    assert stage.get('Adapters') == 3


def test_a_bus_whose_folder_is_made_later_is_found(stage):
    stage.kill_bus()
    folder = f'{stage.folder}/later'
    stage.bus_path = f'{folder}/bus'
    stage.address = f'unix:path={stage.bus_path}'
    stage.start_rigd(wait=False)
    stage.logs('started')
    os.mkdir(folder)
    with open(f'{stage.folder}/bus.conf', 'w', encoding='utf-8') as f:
        f.write(harness.CONFIG.format(stage.bus_path))
    stage.start_bus()
    eventually('the name is there', stage.has_name)


def test_a_bus_that_dies_is_found_again_as_often_as_it_does(stage):
    stage.start_rigd()
    p = stage.program()
    p.do('device', 'memory:M')
    p.do('buffer', 0, 4096)
    for _ in range(5):
        stage.kill_bus()
        p.do('fill', 0, 'meanwhile')
        stage.start_bus()
        eventually('the name is back', stage.has_name)
        assert stage.client(p)['Number'] == 1
    log = stage.log()
    assert log.count('has ended the connection') == 5 and log.count('is on the bus') == 6, log


def sleeps(rigd):
    """How often one of its threads has slept."""
    n = 0
    for task in os.listdir(f'/proc/{rigd.pid}/task'):
        with open(f'/proc/{rigd.pid}/task/{task}/status', encoding='utf-8') as f:
            n += sum(int(line.split()[1]) for line in f if line.startswith('voluntary_ctxt_switches'))
    return n


def asleep(rigd):
    with open(f'/proc/{rigd.pid}/stat', encoding='utf-8') as f:
        return f.read().rsplit(')', 1)[1].split()[0] == 'S'


def makes_no_wakeup(rigd):
    """
    Over a second that is let pass; as tests/e2e/test-idle.c counts. While a bus is away, the folders on the way to it
    are watched, and whoever makes a file in one of them (/tmp, here) wakes rigd: a quiet second is waited for.
    """
    eventually('it sleeps', lambda: asleep(rigd))

    def quiet():
        before = sleeps(rigd)
        select.select([], [], [], 1)
        return sleeps(rigd) == before

    eventually('a second without a wake-up', quiet)


def test_a_bus_that_is_not_there_wakes_nobody(stage):
    stage.kill_bus()
    os.unlink(stage.bus_path)
    rigd = stage.start_rigd(wait=False)
    stage.logs('started')
    serves(stage)
    makes_no_wakeup(rigd)


def test_a_bus_that_left_its_socket_wakes_nobody(stage):
    rigd = stage.start_rigd()
    stage.kill_bus()
    assert os.path.exists(stage.bus_path)
    stage.logs('has ended the connection')
    serves(stage)
    makes_no_wakeup(rigd)


def test_an_idle_bus_wakes_nobody(stage):
    rigd = stage.start_rigd()
    c = stage.connect()
    call(c, 'ListClients', 't', (0,))
    before = sleeps(rigd)
    makes_no_wakeup(rigd)
    call(c, 'ListClients', 't', (0,))
    eventually('what is counted counts', lambda: sleeps(rigd) > before)


def test_a_second_rigd_waits_for_the_name(stage):
    first = stage.start_rigd()
    pid = stage.connect()
    second = stage.start_rigd(socket=f'{stage.folder}/second.sock')
    stage.logs('another program has the bus name org.rig.Rig1')

    def owner():
        return pid.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus',
                        'GetConnectionUnixProcessID', 's', ('org.rig.Rig1',))[0]

    assert owner() == first.pid
    stage.stop_rigd(first)
    eventually('the second has it', lambda: stage.has_name() and owner() == second.pid)
    assert stage.get('Adapters') == 3
    assert stage.log().count('another program has the bus name') == 1


def test_a_bus_that_gives_no_name_is_logged(stage):
    stage.kill_bus()
    config = harness.CONFIG.format(stage.bus_path).replace(
        '</policy>', '<deny own="org.rig.Rig1"/></policy>')
    with open(f'{stage.folder}/bus.conf', 'w', encoding='utf-8') as f:
        f.write(config)
    stage.start_bus()
    stage.start_rigd(wait=False)
    stage.logs('the bus does not let rigd have the name org.rig.Rig1')
    serves(stage)


def test_what_is_no_bus_is_refused_at_the_start(stage):
    for address in 'nonsense', 'tcp:host=localhost,port=1', 'unixexec:path=/bin/true', 'unix:', \
            f'{stage.address};tcp:host=x,port=1', 'unix:nothing=1', '':
        done = subprocess.run([RIGD, '--socket', f'{stage.folder}/x.sock', '--bus', address], capture_output=True,
                              text=True, timeout=harness.WAIT_S, check=False)
        assert done.returncode == 1 and 'bus' in done.stderr, (address, done)


def test_what_does_not_answer_as_a_bus_holds_up_nobody(stage):
    path = f'{stage.folder}/mute'
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(path)
        mute.listen(64)
        rigd = stage.start_rigd(bus=f'unix:path={path}', wait=False)
        stage.logs('started')
        one, _ = mute.accept()
        serves(stage)
        # It ends the connection, says nonsense, and ends it again: each time rigd comes back.
        one.close()
        two, _ = mute.accept()
        two.recv(4096)
        two.sendall(b'\xff\0garbage\r\n' * 1000)
        three, _ = mute.accept()
        two.close()
        serves(stage)
        makes_no_wakeup(rigd)
        three.close()
    assert stage.log().count('ended the connection') == 1, 'it is logged once'


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
