# SPDX-License-Identifier: ISC
#
# Removed, then purged. The list of what was there before is 10-install.sh's.
. /share/in/lib.sh

eval "$(sed -n '/^listing() {/,/^}/p' /share/in/10-install.sh)"
packages=(rigd rig-tools librig-client0)

remove() {
        hello
        DEBIAN_FRONTEND=noninteractive apt-get remove -y "${packages[@]}"
        not pgrep -x rigd
        not test -e $socket
        not active rigd.socket
        not active rigd.service
        [ -z "$(systemctl --failed --plain --no-legend)" ]
}

settings_are_kept() { grep -q ClientObjectsMax=77 /etc/rig/rigd.conf.d/admin.conf; }

# A purge is told by dpkg, so that it is also right where the packages are removed already.
purge() {
        dpkg --purge "${packages[@]}"
        listing >/root/after
        diff /root/before /root/after
}

known_to_nobody() {
        systemctl daemon-reload
        [ "$(property LoadState rigd.service)" = not-found ]
        [ "$(property LoadState rigd.socket)" = not-found ]
        not busctl --activatable list --no-legend >/tmp/names || not grep org.rig /tmp/names
        not sh -c 'journalctl --list-catalog | grep -i " rig[d]*:"'
}

promise 'removing the packages stops rigd and takes its socket away' remove
promise 'settings outlive the removal' settings_are_kept
promise 'a purge leaves no file, no user and no group behind' purge
promise 'systemd and the bus know nothing of rigd any more' known_to_nobody
finish
