#!/bin/sh
# make bench: rows a second from CSV files to a durable store, in one command of two processes joined by a pipe; anonymous memory
# of each process; store bytes a run. Rows are generated from bench/base.csv; with ../shared, also the real gh-pages drops, ten
# times with shifted times. Files are read once before, so that they come from the page cache.
set -eu
B=${B:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/ki-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM

# Largest anonymous memory a running process had, in MB, sampled ten times a second.
watch_memory() { # pid name
	peak=0
	while [ -r "/proc/$1/smaps_rollup" ]; do
		now=$(awk '/^Anonymous:/ { print $2 }' "/proc/$1/smaps_rollup" 2>/dev/null || echo 0)
		[ "${now:-0}" -gt "$peak" ] && peak=$now
		sleep 0.1
	done
	awk -v kb="$peak" -v name="$2" 'BEGIN { printf "  %-13s %5.1f MB anonymous at most\n", name, kb / 1024 }'
}

run() { # title rows file…
	title=$1 rows=$2
	shift 2
	store=$dir/store
	rm -rf "$store"
	mkfifo "$dir/wire"
	cat "$@" >/dev/null
	start=$(date +%s%N)
	"$B/bin/ki-normalize" --quiet --commit 2120862ba532 "$@" >"$dir/wire" & normalize=$!
	"$B/bin/ki-store" --store "$store" --quiet put <"$dir/wire" & put=$!
	watch_memory $normalize ki-normalize >"$dir/m1" & watch_memory $put ki-store >"$dir/m2" &
	wait $normalize $put
	end=$(date +%s%N)
	wait
	rm -f "$dir/wire"
	echo "$title"
	awk -v rows="$rows" -v ns=$((end - start)) 'BEGIN { printf "  %d rows in %.2f s: %.0f rows a second\n", rows, ns / 1e9, rows / (ns / 1e9) }'
	cat "$dir/m1" "$dir/m2"
	"$B/bin/ki-store" --store "$store" status --json | jq -r '"  \(.runs) runs, \(.liveBytesPerRun) live bytes a run, \(.fileBytes / .runs * 10 | floor / 10) on disk"'
}

count=${ROWS:-1000000}
"$B/bench/generate" "$count" 7 <bench/base.csv >"$dir/generated.csv"
run "generated, $count rows of $(($(wc -l <bench/base.csv) - 1)) cases on 9 GPUs" "$count" "$dir/generated.csv"

if [ -d ../shared/upstream/gh-pages ]; then
	rows=0
	mkdir "$dir/copies"
	for copy in 0 1 2 3 4 5 6 7 8 9; do
		for file in ../shared/upstream/gh-pages/*.csv; do
			sed "s/,20\([0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\),/,2$copy\1,/" "$file" >"$dir/copies/$copy-$(basename "$file")"
		done
	done
	rows=$(awk 'FNR > 1' "$dir"/copies/*.csv | wc -l)
	run "17 gh-pages drops, ten copies with shifted times" "$rows" "$dir"/copies/*.csv
fi

"$B/bin/ki" nightly --store "$dir/night" --snapshot fixtures/csv/example/input.csv --commit 2120862ba532 --quiet
start=$(date +%s%N)
"$B/bin/ki" nightly --store "$dir/night" --snapshot fixtures/csv/example/input.csv --commit 2120862ba532 --quiet
end=$(date +%s%N)
awk -v ns=$((end - start)) 'BEGIN { printf "a night with nothing new\n  %.3f s\n", ns / 1e9 }'
