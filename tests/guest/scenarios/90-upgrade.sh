# SPDX-License-Identifier: ISC
#
# From one build of the packages to the next, while rigd runs and programs connect.
. /share/in/lib.sh

# Connects again and again; counts what failed.
connect_on() {
        set +x
        runs=0 failed=0
        while [ ! -e /tmp/enough ]; do
                if [ "$(insider $bin/01-hello 2>>/tmp/hello.err)" = hello ]; then
                        runs=$((runs + 1))
                else
                        failed=$((failed + 1))
                fi
                sleep 0.5 # leaves processors to the upgrade
        done
        echo "$runs $failed" >/tmp/counts
}

# A hello in the middle of a restart can lose its rigd, as any client of the old one does; a new connection cannot fail.
upgrade() {
        hello
        pid=$(main_pid)
        inode=$(stat -c %i $socket)
        rm -f /tmp/enough
        start_load 500
        connect_on &
        DEBIAN_FRONTEND=noninteractive apt-get install -y /share/in/debs-next/*.deb
        load_got_error
        touch /tmp/enough
        wait
        cat /tmp/hello.err
        read -r runs failed </tmp/counts
        echo "$runs programs ran during the upgrade, $failed lost their rigd"
        [ "$runs" -gt 0 ]
        [ "$(grep -c 'rig_connect\|no socket\|nobody listens\|cannot connect' /tmp/hello.err)" = 0 ]
        [ "$failed" -le 1 ]
}

new_one_runs() {
        dpkg-query -W rigd | grep '0.1.0+next'
        hello
        another_pid "$pid_before"
        [ "$(readlink "/proc/$(main_pid)/exe")" = "$(readlink -f "$(command -v rigd)")" ]
}

socket_stayed() {
        [ "$inode_before" -gt 0 ]
        [ "$(stat -c %i $socket)" = "$inode_before" ]
        [ "$(property ActiveEnterTimestampMonotonic rigd.socket)" = "$since_before" ]
}

settings_stayed() {
        grep -q ClientObjectsMax=77 /etc/rig/rigd.conf.d/admin.conf
        rigd --print-config | grep -E 'ClientObjectsMax=77'
}

mkdir -p /etc/rig/rigd.conf.d
printf '[Daemon]\nClientObjectsMax=77\n' >/etc/rig/rigd.conf.d/admin.conf
systemctl restart rigd
pid_before=$(main_pid)
inode_before=$(stat -c %i $socket)
since_before=$(property ActiveEnterTimestampMonotonic rigd.socket)
promise 'programs can connect all the while the packages are upgraded; one that used the old rigd gets an error' upgrade
promise 'then the new rigd runs' new_one_runs
promise 'the socket never went away' socket_stayed
promise "the admin's settings are kept" settings_stayed
finish
