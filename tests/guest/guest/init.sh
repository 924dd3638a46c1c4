#!/bin/busybox sh
# SPDX-License-Identifier: ISC
#
# The initrd's init: loads what the root file system needs, lays a tmpfs over it, starts systemd. Whatever fails
# here is on the console, and the guest then says nothing more: machine.py gives up at its deadline.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
while read -r module; do
        $b insmod "/modules/$module"
done </modules/list
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 1000 ]; do
        $b usleep 10000
        tries=$((tries + 1))
done
$b mount -t tmpfs -o mode=0755,size=75% top /top
$b mkdir /top/below /top/above /top/work
$b mount -t ext4 -o ro,noatime /dev/vda /top/below
$b mount -t overlay -o lowerdir=/top/below,upperdir=/top/above,workdir=/top/work root /root
$b mount --move /dev /root/dev
$b mount --move /proc /root/proc
exec $b switch_root /root /lib/systemd/systemd
