# SPDX-License-Identifier: ISC
#
# The first client starts rigd; who may be one.
. /share/in/lib.sh

outsider_is_told() {
        status 1 as outsider $bin/01-hello
        grep -E 'group "?rig"?' /tmp/said
        inactive
}

first_client_starts() {
        usermod -aG rig insider
        inactive
        [ "$(as insider $bin/01-hello)" = hello ]
        active
        [ "$(ps -o user= -p "$(main_pid)")" = rigd ]
}

# CAP_SYS_PTRACE and the like would show here.
no_capability() {
        grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' "/proc/$(main_pid)/status"
        not grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' "/proc/$(main_pid)/status"
        grep -E '^NoNewPrivs:[[:space:]]*1' "/proc/$(main_pid)/status"
        grep -E '^Seccomp:[[:space:]]*2' "/proc/$(main_pid)/status"
}

same_rigd() {
        pid=$(main_pid)
        [ "$pid" -gt 0 ]
        hello
        hello
        [ "$(main_pid)" = "$pid" ]
}

root_may() { [ "$(RIG_ADDRESS=unix:$socket $bin/01-hello)" = hello ]; }

promise 'a user outside the group gets a sentence that names the group rig, and starts nothing' outsider_is_told
promise 'an unprivileged user of the group runs the hello, which starts rigd, as the user rigd' first_client_starts
promise 'rigd has no capability, gains none, and runs under its system call filter' no_capability
promise 'later clients are served by the same rigd' same_rigd
promise 'root is served as well' root_may
finish
