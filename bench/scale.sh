#!/bin/bash
# make bench-scale: what a store of many generated runs costs, at each of ROWS (default: 1, 2 and 5 million): seconds, those of the CPU,
# and anonymous memory of each command, sizes of what it leaves. Needs about 2 GB of disk for each million of rows, under TMPDIR.
set -eu
B=$(cd "${B:-build}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/ki-scale.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM
TIMEFORMAT='%R %U %S'

# Largest anonymous memory of all processes below one, in MB, sampled five times a second.
below() { # pid - it and its descendants
	local child
	echo "$1"
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do below "$child"; done
}
watch_memory() { # pid file
	local peak=0 now
	while [ -r "/proc/$1/smaps_rollup" ]; do
		now=$(for p in $(below "$1"); do cat "/proc/$p/smaps_rollup" 2>/dev/null; done | awk '/^Anonymous:/ { kb += $2 } END { print kb + 0 }')
		[ "${now:-0}" -gt "$peak" ] && peak=$now
		sleep 0.2
	done
	echo "$peak" >"$2"
}
measure() { # TITLE command… - one line of the table; the command's output in $dir/out
	local title=$1 pid watcher
	shift
	{ time "$@" >"$dir/out" 2>"$dir/err"; echo $? >"$dir/rc"; } 2>"$dir/time" & pid=$!
	watch_memory $pid "$dir/peak" & watcher=$!
	wait $pid $watcher
	[ "$(cat "$dir/rc")" -eq 0 ] || { echo "failed: $*"; cat "$dir/err"; exit 1; }
	awk -v t="$title" -v kb="$(cat "$dir/peak")" -v rows="$rows" \
		'{ printf "  %-46s %8.2f s %8.2f s CPU %7.1f MB   %6.2f us CPU a run\n", t, $1, $2 + $3, kb / 1024, ($2 + $3) * 1e6 / rows }' "$dir/time"
}
size() { # TITLE PATH…
	title=$1
	shift
	du -cb "$@" | awk -v t="$title" -v rows="$rows" 'END { printf "  %-44s %8.1f MB           %6.1f bytes a run\n", t, $1 / 1e6, $1 / rows }'
}
put() {
	"$B/bin/ki-normalize" --quiet --commit "$1" "$2" | "$B/bin/ki-store" --store "$store" --quiet put
}
stream_dump() {
	"$B/bin/ki" export --store "$store" --format store | zstd -q -1 -T1 >"$dir/dump.zst"
}

for rows in ${ROWS:-1000000 2000000 5000000}; do
	store=$dir/store
	rm -rf "$dir"/*
	echo "$rows runs"
	"$B/bench/generate" "$rows" 7 <bench/base.csv >"$dir/all.csv"
	head -2449 "$dir/all.csv" >"$dir/night.csv"
	measure 'publish, from CSV' put 2120862ba532 "$dir/all.csv"
	rm "$dir/all.csv"
	size 'data.mdb' "$store/data.mdb"
	measure 'publish 2,448 unchanged rows at a new commit' put 111111111111 "$dir/night.csv"
	measure 'check' "$B/bin/ki" check --store "$store"
	measure 'backup' "$B/bin/ki" backup --store "$store" "$dir/backup"
	size 'the backup' "$dir/backup"
	measure 'rehearse' "$B/bin/ki" rehearse "$dir/backup"
	measure 'export --format store, packed with zstd -1' stream_dump
	size 'its dump' "$dir/dump.zst"
	measure 'import' "$B/bin/ki" import --store "$dir/again" "$dir/dump.zst"
	size 'data.mdb of the import' "$dir/again/data.mdb"
	measure 'backup of the import' "$B/bin/ki" backup --store "$dir/again" "$dir/backup.again"
	[ "$(jq .holds.dump "$dir/backup.again/backup.json")" = "$(jq .holds.dump "$dir/backup/backup.json")" ] || echo '  the import differs from its dump'
	rm -rf "$dir/again" "$dir/backup" "$dir/backup.again" "$dir/dump.zst"
	measure 'export' "$B/bin/ki" export --store "$store" --out "$store/export"
	size 'its dump' "$store/export"
	measure 'a night of 2,448 unchanged rows' "$B/bin/ki" nightly --quiet --store "$store" --snapshot "$dir/night.csv" --commit 111111111111
done
