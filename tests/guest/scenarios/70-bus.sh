# SPDX-License-Identifier: ISC
#
# rigd on the system's bus, asked by tools that are not rig's, and by rigctl as root and as somebody else.
. /share/in/lib.sh

object='org.rig.Rig1 /org/rig/Rig1'

bus_starts_it() {
        systemctl stop rigd.service
        inactive
        says '"0.1.0' outsider busctl get-property $object org.rig.Rig1.Manager Version
        active
}

interface_is_served() {
        busctl introspect $object org.rig.Rig1.Manager --no-legend >/tmp/members
        for member in ListAdapters ListClients ListDevices SetClientLimits StartTrace StopTrace Reload Version \
                Settings; do
                grep "^\.$member " /tmp/members
        done
        says '"memory"' outsider busctl call $object org.rig.Rig1.Manager ListAdapters
}

changes_are_denied() {
        says 'you have to authenticate' outsider busctl call $object org.rig.Rig1.Manager Reload
        says 'have to authenticate' outsider systemctl service-log-level rigd debug
        busctl call $object org.rig.Rig1.Manager Reload
        [ "$(systemctl service-log-level rigd)" = info ]
}

# The admin's rules decide, so an action can be given to somebody.
polkit_rule() {
        pkaction | grep org.rig.rig1
        [ "$(pkaction | grep -c '^org.rig.rig1')" = 4 ]
        cat >/etc/polkit-1/rules.d/50-test.rules <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.rig.rig1.reload" && subject.user == "insider") return polkit.Result.YES;
});
END
        until_ok 60 insider busctl call $object org.rig.Rig1.Manager Reload
        says 'you have to authenticate' outsider busctl call $object org.rig.Rig1.Manager Reload
}

lists() {
        start_load
        for who in root outsider; do
                as $who rigctl list | tee /tmp/list
                grep memory /tmp/list
                grep disk /tmp/list
                as $who rigctl clients | tee /tmp/clients
                grep insider /tmp/clients
                grep load /tmp/clients
                as $who rigctl top -b -n 2 | tee /tmp/top
                grep load /tmp/top
                as $who rigctl stats
        done
        rigctl list --json | python3 -m json.tool
        rigctl clients --json | python3 -c '
import json, sys
client, = json.load(sys.stdin)
assert client["Command"] == "load" and client["UID"] == 1000 and client["LiveBytes"] == 1 << 20, client'
        kill $load
}

denied_with_a_sentence() {
        start_load
        number=$(rigctl clients --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["Number"])')
        status 4 outsider rigctl trace --time 1 -o /tmp/denied.json
        grep -E 'root|sudo|polkit' /tmp/said
        status 4 outsider rigctl limits "$number" MemoryMax=1G
        grep -E 'root|sudo|polkit' /tmp/said
        status 4 outsider rigctl log-level debug
        rigctl limits "$number" MemoryMax=1G
        says 1073741824 busctl get-property org.rig.Rig1 "/org/rig/Rig1/client/$number" org.rig.Rig1.Client MemoryMax
        kill $load
}

traces() {
        start_load
        rigctl trace --time 2 -o /tmp/trace.json
        kill $load
        python3 - <<'END'
import json
trace = json.load(open('/tmp/trace.json'))
events = trace['traceEvents'] if isinstance(trace, dict) else trace
runs = [e for e in events if e.get('ph') in ('X', 'B') and 'fill' in e.get('name', '')]
assert runs, events[:20]
END
}

without_rigd() {
        systemctl stop rigd.socket rigd.service
        systemctl mask --runtime rigd.service
        status 3 rigctl list
        [ -s /tmp/said ]
        systemctl unmask --runtime rigd.service
        systemctl start rigd.socket
}

promise 'a call on the bus starts rigd' bus_starts_it
promise 'busctl sees the interface, and anybody may read' interface_is_served
promise 'on the bus, changes are denied to others than root' changes_are_denied
promise 'a rule of polkit gives one action to one user' polkit_rule
rm -f /etc/polkit-1/rules.d/50-test.rules
promise 'rigctl list, clients, top -b and stats show a known client, to root and to others' lists
promise 'rigctl denies changes to others with status 4 and a sentence; root makes them' denied_with_a_sentence
promise 'rigctl trace writes JSON with the runs of a client' traces
promise 'rigctl without a rigd says so, with status 3' without_rigd
finish
