# SPDX-License-Identifier: ISC
#
# What an admin does with systemctl.
. /share/in/lib.sh

# Stopping the service leaves the socket, so the next client starts it again.
stop_and_start() {
        systemctl stop rigd.service
        inactive
        active rigd.socket
        hello
        active
        systemctl stop rigd.socket rigd.service
        not test -e $socket
        systemctl start rigd
        active
        active rigd.socket
        hello
}

restart() {
        pid=$(main_pid)
        systemctl restart rigd
        another_pid "$pid"
        hello
}

reload_applies() {
        mkdir -p /etc/rig/rigd.conf.d
        printf '[Daemon]\nClientObjectsMax=4321\n' >/etc/rig/rigd.conf.d/50-test.conf
        pid=$(main_pid)
        systemctl reload rigd
        [ "$(main_pid)" = "$pid" ]
        says 4321 busctl get-property org.rig.Rig1 /org/rig/Rig1 org.rig.Rig1.Manager Settings
        hello
}

# Both where it is wrong and what goes on: the right settings of the same file hold.
wrong_key_is_named() {
        printf '[Daemon]\nClientObjectsMax=1234\nNoSuchKey=1\nClientsMax=many\n' >/etc/rig/rigd.conf.d/50-test.conf
        mark_journal
        systemctl reload rigd
        in_journal '/etc/rig/rigd.conf.d/50-test.conf:3'
        in_journal NoSuchKey
        in_journal '/etc/rig/rigd.conf.d/50-test.conf:4'
        says 1234 busctl get-property org.rig.Rig1 /org/rig/Rig1 org.rig.Rig1.Manager Settings
        active
}

check_config_as_well() {
        status 1 rigd --check-config
        grep -F '/etc/rig/rigd.conf.d/50-test.conf:3' /tmp/said
        rm /etc/rig/rigd.conf.d/50-test.conf
        status 0 rigd --check-config
        systemctl reload rigd
}

# From the running system, as the issue of hardening is: the units on disk and their drop-ins.
hardened() {
        systemd-analyze security --threshold=30 --no-pager rigd.service >/tmp/security || { cat /tmp/security; false; }
        tail -n 1 /tmp/security
}

log_level() {
        [ "$(systemctl service-log-level rigd)" = info ]
        systemctl service-log-level rigd debug
        [ "$(systemctl service-log-level rigd)" = debug ]
        mark_journal
        hello
        [ -n "$(journal -u rigd.service -p debug..debug)" ]
        systemctl service-log-level rigd info
        [ "$(systemctl service-log-level rigd)" = info ]
}

promise 'systemctl stop leaves the socket, whose next client starts rigd; systemctl start starts both' stop_and_start
promise 'systemctl restart gives a new rigd that serves' restart
promise 'systemctl reload applies a changed rigd.conf, in the same process' reload_applies
promise 'a wrong key and a wrong value are named with file and line at a reload; the rest applies' wrong_key_is_named
promise 'rigd --check-config names the same, and is content once they are gone' check_config_as_well
promise 'systemd-analyze security gives rigd 3.0 or less' hardened
promise 'systemctl service-log-level shows and sets the level of the running rigd' log_level
finish
