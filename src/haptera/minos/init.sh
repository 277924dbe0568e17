#!/bin/sh
# The first process of a minOS: network by the boot parameters, clock from the parent; then it is
# what starts the agent, and again whenever that ends.
export PATH=/bin PYTHONPATH=/app PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1 HOME=/root
# A container runtime calls pivot_root, which refuses the initramfs as the old root: it has no mount
# above it. So it is mounted over itself once.
if [ "$1" != mounted ]; then
    mount --bind / /mnt
    cd /mnt && mount --move . / && exec chroot . /init mounted
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /run /tmp /sys/fs/cgroup
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup

say() { echo "minos: $*"; }

# `haptera.NAME=VALUE` on the kernel's command line
parameter() { sed -n "s/.*\bhaptera\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }

while read -r driver; do insmod "$driver" || say "$driver is not loaded"; done </lib/drivers/order

name=$(parameter name) address=$(parameter address) mac=$(parameter mac)
boot=$(parameter boot) router=$(parameter router)
hostname "$name"

card() { grep -lix "$mac" /sys/class/net/*/address 2>/dev/null | cut -d/ -f5; }
for _ in $(seq 100); do
    [ -z "$(card)" ] || break
    sleep 0.1
done
[ -n "$(card)" ] || say "no driver found the network card $mac"
ip link set lo up
ip link set "$(card)" up
ip address add "$address" dev "$(card)"
[ -z "$router" ] || ip route add default via "$router"

umask 077
# The power button, by which a BMC asks to shut down: see off.sh.
acpid -l /dev/console

# An SSH server, if it was built in: with a host key of this boot only, and without passwords. Its
# shells have this environment, in which haptera runs.
if [ -x /bin/dropbear ]; then
    dropbearkey -t ed25519 -f /run/ssh_key | sed -n 's/^Fingerprint:/minos: its SSH key is/p'
    dropbear -r /run/ssh_key -p "${address%/*}:22" -e -s -j -k
fi

# fetch NAME FILE: until the parent answers. (wget -T of this static busybox crashes.)
fetch() {
    until timeout 60 wget -q -O "$2" "$boot/$1"; do
        say "$1 cannot be fetched; again in 1 s"
        sleep 1
    done
}

fetch clock /run/clock
date -s "@$(cat /run/clock)" >/dev/null
fetch invitation /run/invitation
say "$name starts its agent at $address"
exec python3 -m haptera agent --respawn --dir /run/haptera --address "${address%/*}" \
    --invitation /run/invitation
