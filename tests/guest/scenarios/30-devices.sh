# SPDX-License-Identifier: ISC
#
# Every device does its work under the unit's hardening: memory, host code, files by io_uring, signals by AIO.
# What the examples print is what tests/examples/ says they do.
. /share/in/lib.sh

example() {
        local name=$1 folder
        shift
        folder=$(insider mktemp -d)
        (cd "$folder" && insider "$bin/$name" "$@") >/tmp/printed
        diff "/share/in/expected/$name.out" /tmp/printed
}

# Its own tools check the result: tr, cmp, cksum, wc. rigd sees /home as an empty folder: it opens no path.
pipeline() {
        insider sh -c 'cd; head -c 3000001 /usr/bin/python3 >input'
        insider sh -c "cd; $bin/11-pipeline input output"
        [ "$(stat -c %s /home/insider/output)" = 3000001 ]
        not nsenter -t "$(main_pid)" -m test -e /home/insider/input
}

# What example 10 breaks on purpose is warned of; nothing else may be.
nothing_denied() {
        journal >/tmp/lines
        not grep -iE 'seccomp|SIGSYS|status=31/SYS|audit.*type=1326' /tmp/lines
        journal -u rigd.service -p warning >/tmp/lines
        not grep -v 'is lost: the program whose code it runs has ended' /tmp/lines
}

python_client() {
        insider python3 $bin/client.py >/tmp/printed
        cat /tmp/printed
        grep 'reached, and the target is hello' /tmp/printed
        grep 'then it is HELLO' /tmp/printed
}

mark_journal
promise 'files are read and written by io_uring under the filter of system calls (example 03)' example 03-files
promise 'eventfds are signalled by AIO under the filter of system calls (example 04)' example 04-timelines
for path in $bin/[0-9]*; do
        name=$(basename "$path")
        case $name in
        01-hello | 03-files | 04-timelines | 11-pipeline | *.so) ;;
        05-host-code) promise "example $name prints what it should" example $name $bin/$name-image.so ;;
        *) promise "example $name prints what it should" example $name ;;
        esac
done
promise 'the pipeline runs over a file in a home folder that rigd cannot see' pipeline
promise 'the client in Python is served' python_client
promise 'the filter denied nothing, and rigd had nothing to warn of' nothing_denied
finish
