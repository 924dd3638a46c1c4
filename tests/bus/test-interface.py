# SPDX-License-Identifier: ISC
"""What rigd serves is daemon/bus/org.rig.Rig1.xml, and every property of it can be read.

Usage: test-interface.py RIGD PROGRAM STEERED-RIGD XML [TEST...]
"""

import sys
import xml.etree.ElementTree as ElementTree

import harness
from harness import LOG, LOG_PATH, MANAGER, PATH, XML, eventually

EMITS = 'org.freedesktop.DBus.Property.EmitsChangedSignal'
INTROSPECTABLE = 'org.freedesktop.DBus.Introspectable'
OBJECTS = {'Manager': PATH, 'Adapter': PATH + '/adapter/memory', 'Client': PATH + '/client/1'}


def annotation(element, otherwise):
    for a in element.findall('annotation'):
        if a.get('name') == EMITS:
            return a.get('value')
    return otherwise


def interface(element):
    """What the D-Bus specification says an interface's introspection data mean, without what it leaves free."""
    emits = annotation(element, 'true')
    return {
        'methods': {m.get('name'): [(a.get('direction', 'in'), a.get('name'), a.get('type')) for a in m.findall('arg')]
                    for m in element.findall('method')},
        'signals': {s.get('name'): [a.get('type') for a in s.findall('arg')] for s in element.findall('signal')},
        'properties': {p.get('name'): (p.get('type'), p.get('access'), annotation(p, emits))
                       for p in element.findall('property')},
    }


def interfaces(text):
    return {i.get('name'): interface(i) for i in ElementTree.fromstring(text).findall('interface')}


def introspect(stage, path):
    return stage.busctl('call', 'org.rig.Rig1', path, INTROSPECTABLE, 'Introspect')['data'][0]


def test_introspection_is_the_interface_that_is_written_down(stage):
    stage.start_rigd()
    stage.program()
    with open(XML, encoding='utf-8') as f:
        written = interfaces(f.read())
    assert set(written) == {'org.rig.Rig1.' + name for name in OBJECTS}
    for name, path in OBJECTS.items():
        served = {n: i for n, i in interfaces(introspect(stage, path)).items() if n.startswith('org.rig.')}
        assert served == {'org.rig.Rig1.' + name: written['org.rig.Rig1.' + name]}, f'{path}: {served}'


def test_every_property_can_be_read_and_has_its_type(stage):
    stage.start_rigd()
    stage.program()
    with open(XML, encoding='utf-8') as f:
        written = interfaces(f.read())
    for name, path in OBJECTS.items():
        properties = written['org.rig.Rig1.' + name]['properties']
        for prop, (kind, _, _) in properties.items():
            got = stage.busctl('get-property', 'org.rig.Rig1', path, 'org.rig.Rig1.' + name, prop)
            assert got['type'] == kind, f'{name}.{prop} is {got}'
        every = stage.busctl('call', 'org.rig.Rig1', path, 'org.freedesktop.DBus.Properties', 'GetAll', 's',
                             'org.rig.Rig1.' + name)['data'][0]
        assert {p: v['type'] for p, v in every.items()} == {p: k for p, (k, _, _) in properties.items()}


def test_lists_have_the_properties_that_objects_have(stage):
    stage.start_rigd()
    stage.program().do('device', 'memory:M')
    for method, args, name in ('ListAdapters', (), 'Adapter'), ('ListClients', ('t', 0), 'Client'):
        one = stage.busctl('call', 'org.rig.Rig1', PATH, MANAGER, method, *map(str, args))['data'][0][0]
        every = stage.busctl('call', 'org.rig.Rig1', OBJECTS[name], 'org.freedesktop.DBus.Properties', 'GetAll', 's',
                             'org.rig.Rig1.' + name)['data'][0]
        assert {p: v['type'] for p, v in one.items()} == {p: v['type'] for p, v in every.items()}


def test_objects_are_found_by_walking(stage):
    stage.start_rigd()
    programs = [stage.program() for _ in range(3)]
    found = stage.paths()
    assert {PATH, LOG_PATH} <= found, found
    for kind, names in ('adapter', {'memory', 'host', 'disk'}), ('client', {'1', '2', '3'}):
        start = f'{PATH}/{kind}/'
        assert {p.removeprefix(start) for p in found if p.startswith(start)} == names, found
    programs[1].end()
    eventually('a client that is gone is no object', lambda: PATH + '/client/2' not in stage.paths())
    for path in PATH + '/client/2', PATH + '/client/01', PATH + '/client/9', PATH + '/adapter/none', PATH + '/adapter/_':
        text = harness.refused(lambda path=path: stage.get('Number', path, 'org.rig.Rig1.Client'), 'busctl')
        assert 'Unknown' in text, text


def test_introspection_of_many_clients_is_bounded(stage):
    stage.start_rigd('--set', 'PollUSec=0')
    import socket
    connections = []
    for _ in range(300):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(stage.socket)
        connections.append(s)
    eventually('all are clients', lambda: stage.get('Clients') == 300)
    nodes = ElementTree.fromstring(introspect(stage, PATH + '/client')).findall('node')
    assert len(nodes) == 256, len(nodes)
    assert stage.get('Number', PATH + '/client/300', 'org.rig.Rig1.Client') == 300, 'it is there all the same'
    for s in connections:
        s.close()


def test_the_log_level_is_read_and_set(stage):
    stage.start_rigd('--log-level', 'notice')
    assert stage.get('LogLevel', LOG_PATH, LOG) == 'notice'
    assert stage.get('LogTarget', LOG_PATH, LOG) == 'console'
    assert stage.get('SyslogIdentifier', LOG_PATH, LOG) == 'rigd'


if __name__ == '__main__':
    sys.exit(harness.main(globals()))
