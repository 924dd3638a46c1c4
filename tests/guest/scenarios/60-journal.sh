# SPDX-License-Identifier: ISC
#
# What rigd writes to the journal: fields to select by, and explanations.
. /share/in/lib.sh

# A client that wants more than its limit of connections is turned away: one line that names who and which setting.
refuse_one() {
        printf '[Daemon]\nClientsMax=1\n' >/etc/rig/rigd.conf.d/50-test.conf
        systemctl restart rigd
        start_load
        mark_journal
        status 1 insider $bin/01-hello
        kill $load
        rm /etc/rig/rigd.conf.d/50-test.conf
        systemctl reload rigd
        in_journal ClientsMax
        [ "$(journal -u rigd.service -p warning | wc -l)" = 1 ]
}

fields() {
        journal -u rigd.service _SYSTEMD_UNIT=rigd.service RIG_UID=1000 -o json >/tmp/json
        python3 - <<'END'
import json
lines = [json.loads(line) for line in open('/tmp/json')]
refused = [line for line in lines if line.get('RIG_SETTING') == 'ClientsMax']
assert len(refused) == 1, lines
line = refused[0]
assert len(line['MESSAGE_ID']) == 32 and line['SYSLOG_IDENTIFIER'] == 'rigd' and int(line['PRIORITY']) <= 4, line
assert int(line['RIG_PID']) > 0 and line['CODE_FILE'].endswith('.c'), line
END
}

# journalctl -x adds the catalog's text, each line of it marked.
explained() {
        journal -o short -x -u rigd.service RIG_SETTING=ClientsMax >/tmp/explained
        cat /tmp/explained
        grep -c '^░░ ' /tmp/explained
        grep '^░░ Subject: ' /tmp/explained
        not grep '@RIG_\|@[A-Z_]*@' /tmp/explained
}

# Every message id of the catalog that the package brings is known to the system.
catalog_is_installed() {
        ids=$(grep -h '^-- [0-9a-f]' /usr/lib/systemd/catalog/rig*.catalog | cut -d' ' -f2)
        [ -n "$ids" ]
        for id in $ids; do journalctl --list-catalog "$id"; done
}

clients_by_number() {
        systemctl service-log-level rigd debug
        mark_journal
        hello
        systemctl service-log-level rigd info
        number=$(journal -u rigd.service -o json | sed -n 's/.*"RIG_CLIENT":"\([0-9]*\)".*/\1/p' | tail -n 1)
        [ "$number" -gt 0 ]
        journal "RIG_CLIENT=$number" -o json | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
assert lines and all(line["RIG_UID"] == "1000" for line in lines), lines'
}

mkdir -p /etc/rig/rigd.conf.d
promise 'a client that is turned away is one line, which names the setting' refuse_one
promise 'that line has fields: who it was, which setting, a message id' fields
promise 'journalctl -x explains it' explained
promise 'each message id of the catalog is known to journalctl after the installation' catalog_is_installed
promise 'the lines of one client can be selected by RIG_CLIENT=' clients_by_number
systemctl restart rigd
finish
