#!/bin/sh
# Installs a package in a fresh Debian 12, runs a night on a file that comes with the source as the package's user, purges it, and looks
# for what is left:  packaging/deb-test.sh FILE.deb [MIRROR]. Wants root, debootstrap and a network.
set -eu
deb=$1
mirror=${2:-http://deb.debian.org/debian}
root=$(mktemp -d)
chmod 755 "$root" # it becomes / for a user who is not root
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates,systemd bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; exit 74; }
mount -t proc proc "$root/proc"
cp "$deb" "$root/kernelindex.deb"
cp fixtures/csv/example/input.csv "$root/srv/example.csv"
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
listing() { inside find /etc /usr /var/lib /lib -xdev \( -path '/var/lib/dpkg' -o -path '/var/lib/apt' -o -path /usr/share/mime \) -prune -o -name '*kernelindex*' -print; }
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /kernelindex.deb >"$root.log" 2>&1 || { tail "$root.log"; exit 74; }
echo "installed: $(inside dpkg-query -W kernelindex)"
echo "user: $(inside getent passwd kernelindex)"
inside setpriv --reuid=kernelindex --regid=kernelindex --clear-groups ki nightly --store /var/lib/kernelindex \
	--snapshot /srv/example.csv --commit 2120862ba532c9449e72d603ba6324310ae756e7 --metrics /var/lib/kernelindex/kernelindex.prom
inside setpriv --reuid=kernelindex --regid=kernelindex --clear-groups ki check --store /var/lib/kernelindex
inside setpriv --reuid=kernelindex --regid=kernelindex --clear-groups ki doctor --store /var/lib/kernelindex
owner=$(inside stat -c %U /var/lib/kernelindex/data.mdb)
[ "$owner" = kernelindex ] || { echo "the store belongs to $owner" >&2; exit 1; }
inside apt-get purge -y -qq kernelindex >"$root.log" 2>&1 || { tail "$root.log"; exit 1; }
left=$(listing | grep -vE 'deb-systemd-helper|/sysusers.d/' || true)
[ -z "$left" ] || { echo "left after purging:" "$left" >&2; exit 1; }
echo 'purged: nothing is left but the user, as Debian has it'
rm -f "$root.log"
