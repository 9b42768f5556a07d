#!/bin/sh
# Installs a package in a fresh Debian 12, runs a night on a file that comes with the source as the package's user, once by hand and once as
# the service under a systemd that was booted there, purges it, and looks for what is left:  packaging/deb-test.sh FILE.deb [MIRROR].
# Wants root, debootstrap and a network, and systemd-nspawn (package systemd-container) to boot.
set -eu
deb=$1
mirror=${2:-http://deb.debian.org/debian}
root=$(mktemp -d)
chmod 755 "$root" # it becomes / for a user who is not root
machine=
trap '[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null || true; umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates,systemd-sysv,dbus bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; exit 74; }
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

# ---- under systemd: the unit as it is, but for the file it reads ----
fail() {
	echo "$1" >&2
	within journalctl --no-pager -u kernelindex.service | tail >&2
	exit 1
}
within() { nsenter -t "$init" -a "$@"; }
night() { # night FILE COMMIT - the service, once, on a file; its exit code
	mkdir -p "$root/run" "$root/etc/systemd/system/kernelindex.service.d"
	printf '[Service]\nExecStart=\nExecStart=/usr/bin/ki nightly --quiet --strict --store /var/lib/kernelindex --snapshot %s --commit %s\n' "$1" "$2" \
		>"$root/etc/systemd/system/kernelindex.service.d/test.conf"
	within systemctl daemon-reload
	within systemctl start kernelindex.service >/dev/null 2>&1 || true
	within systemctl show -P ExecMainStatus kernelindex.service
}
boot() {
	umount "$root/proc"
	systemd-nspawn -D "$root" --boot --register=no --keep-unit --link-journal=no --private-network \
		--system-call-filter='landlock_create_ruleset landlock_add_rule landlock_restrict_self' </dev/null >"$root.log" 2>&1 &
	machine=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		sleep 2
		init=$(pgrep -P $machine | head -1)
		[ -n "$init" ] && within systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' && return
	done
	tail "$root.log" >&2
	echo 'systemd did not come up' >&2
	exit 1
}
stop() {
	within systemctl poweroff >/dev/null 2>&1 || true
	wait "$machine" || true
	machine=
	mount -t proc proc "$root/proc"
}
if command -v systemd-nspawn >/dev/null; then
	printf 'not,a,table\n' >"$root/srv/damaged.csv"
	sed 's/24.104448318481445/nan/' "$root/srv/example.csv" >"$root/srv/rows.csv"
	boot
	[ "$(within systemctl is-enabled kernelindex.timer) $(within systemctl is-active kernelindex.timer)" = 'enabled active' ] || fail 'the timer does not run'
	echo "timer: next $(within systemctl show -P NextElapseUSecRealtime kernelindex.timer)"
	code=$(night /srv/example.csv 1111111111111111111111111111111111111111)
	[ "$code $(within systemctl show -P Result kernelindex.service)" = '0 success' ] || fail "the service ended with $code"
	code=$(night /srv/rows.csv 2222222222222222222222222222222222222222)
	[ "$code $(within systemctl show -P Result kernelindex.service)" = '1 success' ] || fail "malformed rows: the service ended with $code"
	code=$(night /srv/damaged.csv 3333333333333333333333333333333333333333)
	[ "$code $(within systemctl show -P Result kernelindex.service)" = '65 exit-code' ] || fail "a damaged table: the service ended with $code"
	within journalctl -q --no-pager -o cat -p err -u kernelindex.service | grep -q 'ki-normalize: .*header not recognised' || fail 'the journal does not say why'
	within setpriv --reuid=kernelindex --regid=kernelindex --clear-groups ki check --store /var/lib/kernelindex || fail 'the store'
	[ "$(within stat -c %U /var/lib/kernelindex/report.json)" = kernelindex ] || fail 'the report belongs to another'
	within systemd-analyze verify --man=no kernelindex.service kernelindex.timer || fail 'the units'
	within systemd-analyze security --no-pager kernelindex.service | tail -1
	rm -r "$root/etc/systemd/system/kernelindex.service.d" # as it is installed; there is no network, so it tries again later
	within systemctl daemon-reload
	within systemctl start kernelindex.service >/dev/null 2>&1 || true
	state=$(within systemctl show -P ExecMainStatus -P ActiveState -P SubState kernelindex.service | sort | tr '\n' ' ')
	[ "$state" = '75 activating auto-restart ' ] || fail "without a network: $state"
	echo 'service: 0, 1 with malformed rows, 65 with a damaged table, 75 and another try without a network'
	stop
else
	echo 'not booted: no systemd-nspawn here'
fi

inside apt-get purge -y -qq kernelindex >"$root.log" 2>&1 || { tail "$root.log"; exit 1; }
left=$(listing | grep -vE 'deb-systemd-helper|/sysusers.d/' || true)
[ -z "$left" ] || { echo "left after purging:" "$left" >&2; exit 1; }
echo 'purged: nothing is left but the user, as Debian has it'
rm -f "$root.log"
