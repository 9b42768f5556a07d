#!/bin/sh
# L13: kill -9 of a night, the whole process group, at random moments and at chosen system calls: nothing committed is lost, nothing
# half is seen, and the next night finishes to the same dump. KI_TEST_LONG=1: 100 kills of a larger table.
cd "$(dirname "$0")/.." && . tests/tap.sh

kills=${LONG:+100}
sanitized && kills=${kills:-3}
kills=${kills:-6}
rows=${LONG:+80000}
rows=${rows:-33000} # more than one batch of the writer
export KI_NOW=2026-01-02T03:04:05Z # so that dumps have one name

table "$rows" >"$D/large.csv"
LARGE=$(sha256sum <"$D/large.csv" | cut -c1-40)
mkdir "$D/base"
publish "$D/base" fixtures/csv/example/input.csv 1111111111111111111111111111111111111111
is "$rc $(runs "$D/base")" '0 22' 'there is a store with a first publication'
"$KI" list --store "$D/base" --metric all --format tsv --columns digest | sort >"$D/committed"
OLD=$(jq -r .sha256 "$D/base/export/latest.json")

copy() { # copy TO - the base store, times of files kept
	rm -rf "$1"
	cp -rp "$D/base" "$1"
}
start() { # start STORE - a night in a process group of its own; its pid, which is also the group's, in $group
	setsid "$KI" nightly --quiet --store "$1" --snapshot "$D/large.csv" --commit "$LARGE" >/dev/null 2>>"$D/killed.err" </dev/null &
	group=$!
}
milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}

copy "$D/whole"
before=$(milliseconds)
start "$D/whole"
wait $group
rc=$?
length=$(($(milliseconds) - before))
NEW=$(jq -r .sha256 "$D/whole/export/latest.json")
is "$rc $(runs "$D/whole")" "0 $((22 + rows))" 'a night that is left alone publishes the large table'

lost=0 half=0 unclean=0 unfinished=0 other=0 at_old=0 at_new=0
judge() { # judge WHAT - after a kill: what is in $D/store, and does the next night finish it
	"$KI" check --store "$D/store" >"$D/out" 2>&1 || { unclean=$((unclean + 1)); echo "# $1: $(head -1 "$D/out")"; }
	"$KI" list --store "$D/store" --metric all --format tsv --columns digest | sort >"$D/held"
	held=$(lines "$D/held")
	[ "$(comm -23 "$D/committed" "$D/held" | wc -l)" -eq 0 ] || { lost=$((lost + 1)); echo "# $1: runs lost"; }
	case $held in 22) at_old=$((at_old + 1)) ;; $((22 + rows))) at_new=$((at_new + 1)) ;; *) half=$((half + 1)); echo "# $1: $held runs" ;; esac
	latest=$(jq -r .sha256 "$D/store/export/latest.json")
	[ "$latest" = "$OLD" ] || [ "$latest" = "$NEW" ] || { other=$((other + 1)); echo "# $1: dump $latest"; }
	publish "$D/store" "$D/large.csv" "$LARGE"
	latest=$(jq -r .sha256 "$D/store/export/latest.json")
	dump=$D/store/export/$(jq -r .file "$D/store/export/latest.json")
	[ "$rc" -eq 0 ] && [ "$latest" = "$NEW" ] && [ "sha256:$(sha256sum <"$dump" | cut -c1-64)" = "$NEW" ] ||
		{ unfinished=$((unfinished + 1)); echo "# $1: the next night exits $rc with dump $latest: $(head -1 "$D/err")"; }
}
verdict() { # verdict SENTENCE-START
	is $lost 0 "$1: no run that was committed is lost"
	is $half 0 "$1: the table is there whole or not at all ($at_old not yet, $at_new already)"
	is $unclean 0 "$1: check is clean"
	is $other 0 "$1: the dump is that of before or of after"
	is $unfinished 0 "$1: the next night finishes to the same dump"
	lost=0 half=0 unclean=0 unfinished=0 other=0 at_old=0 at_new=0
}

random() { # random N - below N
	echo $(($(od -An -N4 -tu4 /dev/urandom) % $1))
}
for n in $(seq "$kills"); do
	copy "$D/store"
	start "$D/store"
	moment=$(random $length)
	sleep "$((moment / 1000)).$(printf '%03d' $((moment % 1000)))"
	kill -9 -$group 2>/dev/null
	wait $group 2>/dev/null
	while kill -0 -$group 2>/dev/null; do sleep 0.01; done
	judge "kill $n after $moment ms"
done
verdict "$kills nights killed at random moments"
cp "$D/killed.err" "$D/err"
is "$(lines "$D/killed.err")" 0 'no stage of theirs had anything to say'

# Chosen moments: at each of the writer's syncs and at the renames of the dump, of latest.json and of the report.
if have strace; then
	moments=0
	for call in fdatasync:1 fdatasync:2 ftruncate:1 ftruncate:2 ftruncate:3 ftruncate:4 rename:1 rename:2; do
		[ -n "$LONG" ] || case $call in fdatasync:1 | ftruncate:[13]) continue ;; esac
		copy "$D/store"
		name=${call%:*}
		ASAN_OPTIONS=detect_leaks=0 setsid strace -f -o "$D/trace" -e trace="$name" -e inject="$name:signal=SIGKILL:when=${call#*:}" \
			"$KI" nightly --quiet --store "$D/store" --snapshot "$D/large.csv" --commit "$LARGE" >/dev/null 2>&1 </dev/null
		grep -q 'killed by SIGKILL' "$D/trace" || continue
		moments=$((moments + 1))
		judge "at $call"
	done
	[ $moments -ge 5 ]
	ok $? "a process of the night is killed at each of $moments system calls"
	verdict 'stages killed when they sync, lengthen or rename'
else
	skip 'stages killed when they sync, lengthen or rename' 'no strace here'
fi

# A writer that dies leaves what it had committed out of sight; the next writer clears it away.
copy "$D/store"
"$B/bin/ki-normalize" --quiet --commit "$LARGE" "$D/large.csv" | sed '$d' | "$B/bin/ki-store" --store "$D/store" put 2>"$D/err"
is "$? $(runs "$D/store")" '65 22' 'a stream without its end publishes nothing'
ki check --store "$D/store"
is "$rc $(grep -c 'remains of an interrupted writer' "$D/out")" '0 1' 'check tells of the remains, and is content'
publish "$D/store" fixtures/csv/day-1/input.csv 2222222222222222222222222222222222222222
ki check --store "$D/store"
is "$rc $(grep -c 'remains of an interrupted writer' "$D/out") $(runs "$D/store")" '0 0 25' 'the next writer clears them away'
plan
