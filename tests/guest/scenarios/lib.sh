# SPDX-License-Identifier: ISC
#
# What scenarios share; each begins with `. /share/in/lib.sh` and ends with `finish`. A scenario is a list of promises:
#
#       promise 'what must hold' COMMAND ...        runs it traced, stopping at the first command that fails
#
# Results go to /share/out/NAME.results, "ok TEXT" or "not ok TEXT", and `finish` says that nothing was left out:
# run.py takes a scenario without that for failed. Nothing sleeps to wait: until_ok polls with a deadline. Deadlines
# are for a guest without KVM on a busy machine, and only mean "it hangs".

scenario=$(basename "$0" .sh)
results=/share/out/$scenario.results
socket=/run/rig/rigd.sock
bin=/share/in/bin
: >"$results"
export LC_ALL=C.UTF-8 PAGER=cat SYSTEMD_COLORS=0

promise() {
        local text=$1
        shift
        printf '\n==== %s\n' "$text" >&2
        local began=$SECONDS
        (
                trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT
                exec 9>&1
                BASH_XTRACEFD=9
                set -ex
                "$@"
        ) 2>&1
        if [ $? = 0 ]; then
                echo "ok $text" >>"$results"
        else
                echo "not ok $text" >>"$results"
        fi
        echo "took $((SECONDS - began)) s"
}

finish() {
        echo finished >>"$results"
}

# until_ok SECONDS COMMAND ...: again and again until it succeeds.
until_ok() (
        set +x
        deadline=$((SECONDS + $1))
        shift
        until "$@"; do
                [ $SECONDS -le $deadline ] || { echo "not in time: $*"; exit 1; }
                sleep 0.2
        done
)

# says TEXT COMMAND ...: that the command prints the text, to either of its outputs.
says() {
        local text=$1
        shift
        "$@" >/tmp/said 2>&1 || true
        cat /tmp/said
        grep -qF -- "$text" /tmp/said
}

# status N COMMAND ...: that the command exits with N; what it says is in /tmp/said.
status() {
        local wanted=$1 got=0
        shift
        "$@" >/tmp/said 2>&1 || got=$?
        cat /tmp/said
        [ "$got" = "$wanted" ]
}

# not COMMAND ...: that it fails. `! COMMAND` would not end a function run with set -e.
not() {
        if "$@"; then return 1; fi
}

# as USER COMMAND ...: with the user's groups as they are now.
as() { setpriv --reuid "$1" --regid "$1" --init-groups --reset-env -- "${@:2}"; }
# With an address, so that no program is served by a private rigd where the system's does not do what it should.
insider() { as insider env RIG_ADDRESS=unix:$socket "$@"; }
outsider() { as outsider env RIG_ADDRESS=unix:$socket "$@"; }
property() { systemctl show -P "$1" "${2:-rigd.service}"; }
main_pid() { property MainPID; }
active() { systemctl is-active --quiet "${1:-rigd.service}"; }
inactive() { [ "$(property ActiveState "${1:-rigd.service}")" = inactive ]; }
hello() { [ "$(insider $bin/01-hello)" = hello ]; }

# another_pid PID: that rigd runs, and is not the one that had that number.
another_pid() { active && [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]; }

# start_load [PAUSE_MSEC]: a program that keeps submitting until its connection breaks; its number is in $load.
start_load() {
        insider $bin/load "${1:-0}" >/tmp/load 2>&1 &
        load=$!
        until_ok 60 sh -c "grep -q '^busy' /tmp/load || ! kill -0 $load"
        cat /tmp/load
        grep -q '^busy' /tmp/load
}

# It ends with 0 only where its connection broke; 124 is a program that hangs.
load_got_error() {
        timeout 60 tail --pid=$load -f /dev/null
        wait $load
        cat /tmp/load
        grep '^ended after' /tmp/load
}

# journal [FILTER ...]: what was logged since mark_journal, as text unless -o is among the filters. By time: with a
# filter, --after-cursor of systemd 252 leaves out the first line that it should give.
mark_journal() { echo "@$(date +%s.%6N)" >/tmp/since; }
journal() { journalctl -q --sync && journalctl -q -o cat --since "$(cat /tmp/since)" "$@"; }
in_journal() {
        local text=$1
        shift
        journal -u rigd.service "$@" | grep -F -- "$text"
}
