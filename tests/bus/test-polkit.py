# SPDX-License-Identifier: ISC
"""Whoever is not root may change what polkit allows, and nothing else; and polkit holds up nobody.

The polkit is one of the test's own. Callers are another user than root; where the test is not root, they are its user.

Usage: test-polkit.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import os
import signal
import subprocess
import sys

import dbus
import harness
from harness import (ALLOW, CHALLENGE, DENY, LOG, LOG_PATH, NOBODY, OTHER, PATH, RIGD, Polkit, ask, call, eventually,
                     refused)

DENIED = 'org.freedesktop.DBus.Error.AccessDenied'
INTERACTIVE = 'org.freedesktop.DBus.Error.InteractiveAuthorizationRequired'
EXCEEDED = 'org.freedesktop.DBus.Error.LimitsExceeded'
ROOT = os.geteuid() == 0


def mortal(stage, uid=NOBODY):
    """A caller that is not root."""
    return stage.connect(uid if ROOT else None)


def reload(c, **kwargs):
    return call(c, 'Reload', **kwargs)


def test_root_needs_no_polkit(stage):
    if not ROOT:
        raise harness.Skipped('the test is not root')
    stage.start_rigd()
    reload(stage.connect())
    polkit = Polkit(stage, DENY)
    reload(stage.connect())
    assert polkit.checks == []


def test_reading_needs_no_polkit(stage):
    stage.start_rigd()
    p, c = stage.program(), mortal(stage)
    polkit = Polkit(stage, DENY)
    p.do('device', 'memory:M')
    assert call(c, 'ListClients', 't', (0,))[0][0]['PID'] == p.pid
    assert call(c, 'ListDevices', 't', (0,))[0][0]['Name'] == 'memory:M'
    assert len(call(c, 'ListAdapters')[0]) == 3
    assert c.call('org.rig.Rig1', LOG_PATH, 'org.freedesktop.DBus.Properties', 'Get', 'ss', (LOG, 'LogLevel')) == [
        'info']
    assert polkit.checks == []


def test_without_polkit_only_root_may(stage):
    stage.start_rigd()
    refused(lambda: reload(mortal(stage)), DENIED, 'only root may have rigd read its configuration again',
            'polkit is not running')


def test_polkit_is_asked_about_the_caller_and_the_action(stage):
    stage.start_rigd()
    p, c = stage.program(), mortal(stage)
    polkit = Polkit(stage, ALLOW)
    number = call(c, 'ListClients', 't', (0,))[0][0]['Number']
    call(c, 'SetClientLimits', 'ta{st}', (number, {'RunsMax': 7}))
    assert call(c, 'ListClients', 't', (0,))[0][0]['RunsMax'] == 7
    reload(c, flags=dbus.ALLOW_INTERACTIVE)
    set_level(c, 'debug')
    assert stage.get('LogLevel', LOG_PATH, LOG) == 'debug'
    refused(lambda: call(c, 'StartTrace', 'ht', (0, 0), fds=[p.process.stdin.fileno()]),
            'org.freedesktop.DBus.Error.InvalidArgs', 'the ring')
    subject = ('system-bus-name', {'name': c.name})
    assert [(s, a, d, f) for s, a, d, f, _ in polkit.checks] == [
        (subject, 'org.rig.rig1.set-limits', {}, 0), (subject, 'org.rig.rig1.reload', {}, 1),
        (subject, 'org.rig.rig1.set-log-level', {}, 0), (subject, 'org.rig.rig1.trace', {}, 0)], polkit.checks
    assert len({token for *_, token in polkit.checks}) == 4


def set_level(c, level, **kwargs):
    return c.call('org.rig.Rig1', LOG_PATH, 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                  (LOG, 'LogLevel', ('s', level)), **kwargs)


def test_what_polkit_denies_is_not_done(stage):
    stage.start_rigd()
    stage.program()
    c = mortal(stage)
    Polkit(stage, DENY)
    number = call(c, 'ListClients', 't', (0,))[0][0]['Number']
    refused(lambda: call(c, 'SetClientLimits', 'ta{st}', (number, {'RunsMax': 7})), DENIED,
            'polkit does not allow you to set limits of a client', 'org.rig.rig1.set-limits')
    refused(lambda: set_level(c, 'debug'), DENIED, 'set rigd\'s log level')
    refused(lambda: reload(c), DENIED)
    assert call(c, 'ListClients', 't', (0,))[0][0]['RunsMax'] != 7
    assert stage.get('LogLevel', LOG_PATH, LOG) == 'info'


def test_who_would_have_to_authenticate_is_told(stage):
    stage.start_rigd()
    Polkit(stage, CHALLENGE)
    refused(lambda: reload(mortal(stage)), INTERACTIVE, 'you have to authenticate', 'org.rig.rig1.reload')


def test_answers_that_are_none_allow_nothing(stage):
    stage.start_rigd()
    polkit = Polkit(stage, 'nonsense')
    refused(lambda: set_level(mortal(stage), 'debug'), DENIED, 'its answer is none')
    polkit.answer = 'error'
    refused(lambda: set_level(mortal(stage), 'debug'), DENIED, 'polkit says: it is broken')
    assert stage.get('LogLevel', LOG_PATH, LOG) == 'info'


def test_nobody_is_asked_about_what_cannot_be_done(stage):
    stage.start_rigd()
    polkit, c = Polkit(stage, ALLOW), mortal(stage)
    refused(lambda: call(c, 'SetClientLimits', 'ta{st}', (9, {'RunsMax': 7})), 'org.rig.Rig1.Error.NoSuchClient')
    refused(lambda: set_level(c, 'loud'), 'org.freedesktop.DBus.Error.InvalidArgs', 'no level "loud"',
            'err, warning, notice, info and debug')
    refused(lambda: c.call('org.rig.Rig1', LOG_PATH, 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                           (LOG, 'LogLevel', ('u', 7))), 'org.freedesktop.DBus.Error.InvalidArgs')
    refused(lambda: c.call('org.rig.Rig1', LOG_PATH, 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                           (LOG, 'LogTarget', ('s', 'kmsg'))), 'org.freedesktop.DBus.Error.NotSupported',
            'StandardError=')
    assert polkit.checks == []


def test_a_polkit_that_does_not_answer_holds_up_nobody(stage):
    stage.start_rigd()
    polkit, c, other = Polkit(stage, None), mortal(stage), mortal(stage, OTHER)
    serials = [ask(c, 'Reload') for _ in range(5)]
    refused(lambda: c.answer(serials[4]), EXCEEDED, 'wait until one is answered')
    eventually('polkit has the others', lambda: len(polkit.checks) == 4)
    p = stage.program()
    p.do('device', 'memory:M')
    p.do('buffer', 0, 4096)
    p.do('fill', 0, 'served')
    assert len(call(other, 'ListClients', 't', (0,))[0]) == 1
    if ROOT:
        reload(stage.connect())
    # Who is gone is not asked for any more, and makes room.
    c.close()
    eventually('polkit is told', lambda: sorted(polkit.cancelled) == sorted(args[4] for args in polkit.checks))
    polkit.answer = ALLOW
    reload(mortal(stage))


def test_a_user_has_so_many_checks_at_once(stage):
    stage.start_rigd()
    polkit = Polkit(stage, None)
    callers = [mortal(stage) for _ in range(5)]
    for i, c in enumerate(callers[:4]):
        for _ in range(4):
            ask(c, 'Reload')
        eventually('polkit has them', lambda i=i: len(polkit.checks) == 4 * (i + 1))
    refused(lambda: reload(callers[4]), EXCEEDED, '16 requests of user')
    if ROOT:
        polkit.answer = ALLOW
        reload(mortal(stage, OTHER))  # it is no other user's trouble


def test_a_polkit_that_never_answers_denies_in_the_end(stage):
    stage.start_rigd()
    Polkit(stage, None)
    refused(lambda: reload(mortal(stage)), DENIED, 'timed out')


def test_a_polkit_that_dies_denies(stage):
    stage.start_rigd()
    polkit, c = Polkit(stage, None), mortal(stage)
    serial = ask(c, 'Reload')
    eventually('polkit has it', lambda: polkit.checks)
    polkit.leave()
    refused(lambda: c.answer(serial), DENIED)


def test_rigd_stops_while_polkit_is_asked(stage):
    rigd = stage.start_rigd()
    polkit, c = Polkit(stage, None), mortal(stage)
    serial = ask(c, 'Reload')
    eventually('polkit has it', lambda: polkit.checks)
    stage.stop_rigd(rigd)
    refused(lambda: c.answer(serial), 'org.freedesktop.DBus.Error.NoReply')


def test_the_bus_goes_while_polkit_is_asked(stage):
    stage.start_rigd()
    polkit, c = Polkit(stage, None), mortal(stage)
    ask(c, 'Reload')
    eventually('polkit has it', lambda: polkit.checks)
    stage.kill_bus()
    stage.logs('has ended the connection')
    stage.start_bus()
    eventually('the name is back', stage.has_name)
    Polkit(stage, ALLOW)
    reload(mortal(stage))


def can_run_as_another():
    """Another user may run rigd where the build is."""
    return ROOT and subprocess.run(['test', '-x', RIGD], user=NOBODY, group=NOBODY, extra_groups=[],
                                   check=False).returncode == 0


def test_on_the_bus_of_a_user_that_user_may(stage):
    as_user = {}
    if ROOT and not can_run_as_another():
        raise harness.Skipped('the test is root, and no other user can run the rigd that was built')
    if ROOT:
        os.chmod(stage.folder, 0o777)
        as_user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
    environment = {**os.environ, 'DBUS_SESSION_BUS_ADDRESS': stage.address}
    stage.start_rigd(bus='user', env=environment, **as_user)
    reload(mortal(stage))
    if ROOT:
        refused(lambda: reload(mortal(stage, OTHER)), DENIED, 'polkit is not running')
        reload(stage.connect())


def test_a_bus_that_stands_still_holds_up_no_client(stage):
    stage.start_rigd()
    p, c = stage.program(), mortal(stage)
    stage.daemon.send_signal(signal.SIGSTOP)
    try:
        serial = ask(c, 'Reload')
        p.do('device', 'memory:M')
        p.do('buffer', 0, 4096)
        for _ in range(100):
            p.do('fill', 0, 'served')
    finally:
        stage.daemon.send_signal(signal.SIGCONT)
    refused(lambda: c.answer(serial), DENIED)
    assert stage.get('Adapters', PATH) == 3


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
