# SPDX-License-Identifier: ISC
#
# A rigd of a user's own, under the user's systemd, beside the system's and without it.
. /share/in/lib.sh

as_user() {
        as "$1" env XDG_RUNTIME_DIR="/run/user/$(id -u "$1")" "${@:2}"
}

user_manager() {
        loginctl enable-linger outsider
        until_ok 120 active user@1001.service
        until_ok 60 as_user outsider systemctl --user is-active dbus.socket
}

user_service() {
        as_user outsider systemctl --user start rigd.socket
        as_user outsider test -S /run/user/1001/rig/rigd.sock
        not as_user outsider systemctl --user is-active rigd.service
        [ "$(as_user outsider env RIG_ADDRESS=unix:/run/user/1001/rig/rigd.sock $bin/01-hello)" = hello ]
        as_user outsider systemctl --user is-active rigd.service
        pid=$(as_user outsider systemctl --user show -P MainPID rigd.service)
        [ "$(ps -o user= -p "$pid")" = outsider ]
}

# Only its owner may: the folder is the user's.
others_are_kept_out() {
        status 1 insider env RIG_ADDRESS=unix:/run/user/1001/rig/rigd.sock $bin/01-hello
}

user_bus() {
        as_user outsider busctl --user get-property org.rig.Rig1 /org/rig/Rig1 org.rig.Rig1.Manager Version
        as_user outsider rigctl --user list | grep memory
        as_user outsider busctl --user call org.rig.Rig1 /org/rig/Rig1 org.rig.Rig1.Manager Reload
}

user_stop() {
        as_user outsider systemctl --user stop rigd.socket rigd.service
        not test -e /run/user/1001/rig/rigd.sock
}

promise "a user's systemd runs" user_manager
promise "a user's rigd is started by the first client of the user's socket, as that user" user_service
promise "another user cannot connect to it" others_are_kept_out
promise "it is on the user's bus, where the user may change what it does" user_bus
promise "it stops with its socket" user_stop
loginctl disable-linger outsider
finish
