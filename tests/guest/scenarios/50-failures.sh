# SPDX-License-Identifier: ISC
#
# A rigd that hangs, dies, or is stopped while it works: it is back, and its clients get an error.
. /share/in/lib.sh

drop_in() {
        mkdir -p /run/systemd/system/rigd.service.d
        printf '[Service]\n%s\n' "$1" >/run/systemd/system/rigd.service.d/test.conf
        systemctl daemon-reload
}

no_drop_in() {
        rm -rf /run/systemd/system/rigd.service.d
        systemctl daemon-reload
        systemctl reset-failed rigd.service || true
        systemctl restart rigd
}

watchdog() {
        drop_in WatchdogSec=4
        systemctl restart rigd
        pid=$(main_pid)
        mark_journal
        kill -STOP "$pid"
        until_ok 120 another_pid "$pid"
        in_journal 'Watchdog timeout'
        hello
}

watchdog_is_fed() {
        drop_in WatchdogSec=4
        systemctl restart rigd
        pid=$(main_pid)
        start_load
        before=$(property WatchdogTimestampMonotonic)
        until_ok 60 sh -c "[ \$(systemctl show -P WatchdogTimestampMonotonic rigd) -gt $((before + 6000000)) ]"
        [ "$(main_pid)" = "$pid" ]
        kill $load
}

killed() {
        start_load
        pid=$(main_pid)
        restarts=$(property NRestarts)
        kill -KILL "$pid"
        load_got_error
        until_ok 60 another_pid "$pid"
        [ "$(property NRestarts)" -gt "$restarts" ]
        hello
}

# TimeoutStopSec= would end it with SIGKILL, and the result would be a timeout.
stopped_under_load() {
        start_load
        mark_journal
        systemctl stop rigd.service
        inactive
        [ "$(property Result)" = success ]
        load_got_error
        not in_journal 'timed out'
        hello
}

too_often() {
        drop_in "$(printf 'ExecStart=\nExecStart=/bin/false\nRestartSec=100ms\n')"
        systemctl stop rigd.service
        insider timeout 200 $bin/01-hello >/tmp/said 2>&1 && return 1
        [ $? != 124 ]
        cat /tmp/said
        [ "$(wc -l </tmp/said)" = 1 ]
}

promise 'a rigd that stands still misses its watchdog, is killed and started anew' watchdog
promise 'a rigd that is busy feeds its watchdog' watchdog_is_fed
no_drop_in
promise 'a killed rigd is started anew, and its client gets an error' killed
promise 'systemctl stop ends a busy rigd without a timeout, and its client gets an error' stopped_under_load
promise 'a client of a rigd that cannot start gets an error, and does not hang' too_often
no_drop_in
systemctl restart rigd.socket rigd.service
finish
