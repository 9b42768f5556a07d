#!/bin/sh
# make bench-scale: what a store of many generated runs costs, at each of ROWS (default: 1, 2 and 5 million): seconds and anonymous
# memory of each command, sizes of what it leaves. Needs about 2 GB of disk for each million of rows, under TMPDIR.
set -eu
B=$(cd "${B:-build}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/ki-scale.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM

# Largest anonymous memory of a process and its children, in MB, sampled five times a second.
watch_memory() { # pid file
	peak=0
	while [ -r "/proc/$1/smaps_rollup" ]; do
		now=$(cat "/proc/$1/smaps_rollup" $(sed 's|[0-9][0-9]*|/proc/&/smaps_rollup|g' "/proc/$1/task/$1/children" 2>/dev/null) 2>/dev/null |
			awk '/^Anonymous:/ { kb += $2 } END { print kb + 0 }')
		[ "${now:-0}" -gt "$peak" ] && peak=$now
		sleep 0.2
	done
	echo "$peak" >"$2"
}
measure() { # TITLE command… - one line of the table; the command's output in $dir/out
	title=$1
	shift
	start=$(date +%s%N)
	"$@" >"$dir/out" 2>"$dir/err" & pid=$!
	watch_memory $pid "$dir/peak" & watcher=$!
	wait $pid || { echo "failed: $*"; cat "$dir/err"; exit 1; }
	end=$(date +%s%N)
	wait $watcher
	awk -v t="$title" -v ns=$((end - start)) -v kb="$(cat "$dir/peak")" -v rows="$rows" \
		'BEGIN { printf "  %-44s %8.2f s %7.1f MB   %6.2f us a run\n", t, ns / 1e9, kb / 1024, ns / 1e3 / rows }'
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
	measure 'a night of 2,448 unchanged rows, with dump' "$B/bin/ki" nightly --quiet --store "$store" --snapshot "$dir/night.csv" --commit 222222222222
	measure 'the same night again' "$B/bin/ki" nightly --quiet --store "$store" --snapshot "$dir/night.csv" --commit 222222222222
	measure 'check' "$B/bin/ki" check --store "$store"
	measure 'export' "$B/bin/ki" export --store "$store" --out "$dir/export"
	size 'its dump' "$dir/export"
	rm -rf "$dir/export" "$store/export"
	measure 'backup' "$B/bin/ki" backup --store "$store" "$dir/backup"
	size 'the backup' "$dir/backup"
	measure 'rehearse' "$B/bin/ki" rehearse "$dir/backup"
	rm -rf "$dir/backup"
	measure 'export --format store, zstd -1' stream_dump
	size 'its dump' "$dir/dump.zst"
	measure 'import' "$B/bin/ki" import --store "$dir/again" "$dir/dump.zst"
	size 'data.mdb of the import' "$dir/again/data.mdb"
	"$B/bin/ki" export --store "$dir/again" --format store | sha256sum >"$dir/sum"
	"$B/bin/ki" export --store "$store" --format store | sha256sum | cmp -s - "$dir/sum" || echo '  the import differs from its dump'
done
