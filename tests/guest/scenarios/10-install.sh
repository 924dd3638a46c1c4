# SPDX-License-Identifier: ISC
#
# The packages, installed as an admin does, by apt from files and without a network; and what is there then.
# The list of what /etc and /usr held before is for 90-purge.sh.
. /share/in/lib.sh

listing() {
        {
                find /etc /usr -xdev
                find /run /var -xdev -iname '*rig*' -o -path '/run/rig/*'
                getent passwd | sed 's/:.*//; s/^/user /'
                getent group | sed 's/:.*//; s/^/group /'
        } | sort
}

install_packages() {
        listing >/root/before
        DEBIAN_FRONTEND=noninteractive apt-get install -y /share/in/debs/*.deb
        for package in rigd rig-tools librig-client0; do
                [ "$(dpkg-query -W -f '${db:Status-Status}' "$package")" = installed ]
        done
        [ -z "$(dpkg --audit)" ]
}

socket_listens() {
        active rigd.socket
        [ "$(systemctl is-enabled rigd.socket)" = enabled ]
        [ "$(stat -c '%A %U %G' $socket)" = 'srw-rw---- root rig' ]
        inactive
}

accounts() {
        getent group rig
        getent passwd rigd
        [ "$(id -Gn rigd)" = rigd ]
        case $(getent passwd rigd | cut -d: -f7) in */nologin) ;; *) false ;; esac
}

units_verify() {
        systemd-analyze verify --man=no rigd.service rigd.socket >/tmp/verify 2>&1 || { cat /tmp/verify; false; }
        cat /tmp/verify
        not grep -i rig /tmp/verify
}

nothing_failed() { [ -z "$(systemctl --failed --plain --no-legend)" ]; }

promise 'the packages install with apt, without a network' install_packages
promise 'the socket listens after the installation, for the group rig, and rigd does not run yet' socket_listens
promise 'there is a group rig, and a user rigd that is in no other group and cannot log in' accounts
promise 'systemd-analyze verify finds nothing in the units' units_verify
promise 'no unit failed' nothing_failed
finish
