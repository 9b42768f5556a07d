#!/bin/sh
# Faults at every system call of the write paths in turn. Each scene is a command on a small store. Its calls are listed once
# (tests/fault.c); then, for each call and each thing that can go wrong there, the store is set back, the command runs with that one
# fault, and the store is judged: clean, nothing lost, whole before or after, an exit code of README's and a message; and the next
# run of the command, without fault, ends as if nothing had been. KI_TEST_LONG=1: all calls; else some, spread evenly.
cd "$(dirname "$0")/.." && . tests/tap.sh

FAULT=$B/tests/fault
: >"$D/log"
"$FAULT" --list --log "$D/log" true 2>"$D/err" || {
	skip 'faults at every system call' "$(cat "$D/err")"
	plan
}
sanitized && export ASAN_OPTIONS=detect_leaks=0
share=${KI_TEST_FAULTS:-7} # faults of each scene, and kills; 0: all
[ -z "$LONG" ] || share=0
site=${LONG:+60} # the site asks for some thousand folders, all in one way
memory=ENOMEM
sanitized && memory=none # sanitizers end by themselves when they find no memory
sanitized && [ -z "$LONG" ] && share=4
workers=${KI_TEST_WORKERS:-$(nproc)}
export KI_NOW=2026-01-02T03:04:05Z # so that dumps have one name, and the same bytes

fixture_config
table 40 >"$D/table.csv"
mkdir "$D/empty" "$D/rows" "$D/both"
publish "$D/rows/store" fixtures/verify/rows.csv 2222222222222222222222222222222222222222
cp -rp "$D/rows/store" "$D/both"
"$KI" verify import fixtures/verify/evidence --store "$D/both/store" --config "$CONFIG" 2>"$D/err"
"$KI" export --store "$D/both/store" --format store >"$D/dump"
is "$rc $(runs "$D/rows/store") $(runs "$D/both/store")" '0 4 8' 'there is a store of four runs, and one with their reruns'
RUN=$("$KI" list --store "$D/rows/store" --format tsv --columns digest | head -1)

mkdir "$D/old" "$D/old/store" "$D/copied" "$D/campaign"
zstd -qdc fixtures/store/schema-1.mdb.zst >"$D/old/store/data.mdb"
cp -rp "$D/both/store" "$D/copied"
"$KI" backup --store "$D/both/store" "$D/copied/copy" 2>"$D/err"
cp -r fixtures/verify/evidence/samples "$D/campaign" # what a campaign of two batches leaves
split -n l/2 --additional-suffix=.jsonl fixtures/verify/evidence/evidence-*.jsonl "$D/campaign/evidence-"
echo job >"$D/campaign/done"
is "$? $(ls "$D/campaign" | tr '\n' ' ')" '0 done evidence-aa.jsonl evidence-ab.jsonl samples ' 'and a backup, a store of schema 1, and a campaign in two batches'
corrections='retract note undo'
if [ -x "$B/bin/ki-verify" ] && "$KI" verify keygen "$D/key.pem" >"$D/key.json" 2>"$D/err"; then
	jq --slurpfile s "$D/key.json" '.signers += $s' fixtures/verify/signers.json >"$CONFIG/signers.json"
	cp -rp "$D/rows" "$D/retracted"
	ENTRY=$("$KI" retract "$RUN" --reason 'cold clock' --key "$D/key.pem" --config "$CONFIG" --store "$D/retracted/store" 2>"$D/err")
else
	skip 'corrections' 'no ki-verify here to make a key with'
	corrections=
fi

# --- scenes: where they begin, what is done in directory $W, which of its files are the outcome ------------------------------------
scene() { # scene NAME - sets $base, the directory to begin with
	case $1 in
	first) base=$D/empty ;;
	nightly | metrics | flag | retract | import | campaign) base=$D/rows ;;
	note | undo) base=$D/retracted ;;
	upgrade) base=$D/old ;;
	rehearse) base=$D/copied ;;
	*) base=$D/both ;;
	esac
}
act() { # act NAME [PROGRAM OPTION...] - does it in $W; what is given goes before the command
	local name=$1 store=$W/store
	shift
	case $name in
	first | nightly | metrics)
		set -- "$@" "$KI" nightly --quiet --snapshot "$D/table.csv" --commit 3333333333333333333333333333333333333333
		[ "$name" != metrics ] || set -- "$@" --metrics "$W/ki.prom"
		;;
	import) set -- "$@" "$KI" verify import fixtures/verify/evidence --config "$CONFIG" ;;
	campaign) set -- "$@" "$KI" verify import "$D/campaign" --config "$CONFIG" ;;
	flag) set -- "$@" "$KI" flag "$RUN" --reason 'looks wrong' ;;
	retract) set -- "$@" "$KI" retract "$RUN" --reason 'cold clock' --key "$D/key.pem" --config "$CONFIG" ;;
	note) set -- "$@" "$KI" note "$RUN" --text 'driver 555 does the same' --key "$D/key.pem" --config "$CONFIG" ;;
	undo) set -- "$@" "$KI" retract --undo "$ENTRY" --key "$D/key.pem" --config "$CONFIG" ;;
	upgrade) set -- "$@" "$KI" upgrade ;;
	rehearse) set -- "$@" "$KI" rehearse "$W/copy" ;;
	export) set -- "$@" "$KI" export --out "$W/out" ;;
	site) set -- "$@" "$KI" export --format site --out "$W/out" ;;
	backup) set -- "$@" "$KI" backup "$W/out/copy" ;;
	load) set -- "$@" "$KI" import "$D/dump" && store=$W/out/copy ;;
	esac
	timeout -k 1 60 "$@" --store "$store" >"$W.out" 2>"$W.err" </dev/null
	rc=$?
}
dump() { # dump STORE - digest of all that is in it; - when there is nothing, or nothing to be read
	"$KI" export --store "$1" --metric all --format jsonl 2>/dev/null >"$W.dump" && [ -s "$W.dump" ] || { echo -; return; }
	sha256sum <"$W.dump" | cut -c1-64
}
outcome() { # outcome NAME - what the command was for, in a few words
	case $1 in
	first | nightly | metrics)
		jq -r .sha256 "$W/store/export/latest.json" 2>/dev/null
		sha256sum <"$W/store/export/$(jq -r .file "$W/store/export/latest.json")" | cut -c1-64
		;;
	export) cat "$W/out/latest.json" "$W/out/$(jq -r .file "$W/out/latest.json")" | sha256sum ;;
	site) (cd "$W/out" && find . -type f ! -name '*.tmp.*' -exec sha256sum {} + | sort -k2) | sha256sum ;;
	backup | load) "$KI" check --store "$W/out/copy" && dump "$W/out/copy" ;;
	import | campaign) (cd "$W/store" && find evidence samples -type f | sort) ;;
	flag) "$KI" flags --store "$W/store" --json ;;
	retract | note | undo) "$KI" show "$RUN" --store "$W/store" --json | jq -c '[.rank, .unranked, .corrections]' ;;
	upgrade) "$KI" status --store "$W/store" --json | jq .schema ;;
	rehearse) grep -c 'whole, and what the backup claims' "$W.out" && (cd "$W/copy" && find . -type f ! -name lock.mdb -exec sha256sum {} + | sort) ;;
	esac 2>&1
}
families() { # families NAME - of the metrics file; a night does not fail for want of it, but half a file there is never
	[ "$1" != metrics ] || { [ -e "$W/ki.prom" ] && sed -n 's/^# TYPE //p; $p' "$W/ki.prom"; }
}
settle() { # settle NAME - $W as the scene begins
	rm -rf "$W"
	cp -rp "$base" "$W"
}
leftovers() {
	find "$W" -name '*.tmp.*' | head -1
}

# --- judging ------------------------------------------------------------------------------------------------------------------------
bad() { # bad TEXT - one line for a fault that ended badly
	echo "bad	$scene $fault: $1"
}
lost() { # lost - are there runs of $old that are not in the dump at $W.dump?
	jq -r 'select(.type == "run") | .digest' "$W.dump" | sort | comm -13 - "$D/$scene.runs" | grep -q .
}
judge() { # judge - after an act with exit code $rc: what is in $W, and does the next run finish it
	case $rc in
	0 | 74 | 75 | 137) ;;
	*) bad "exit $rc: $(head -1 "$W.err")" ;;
	esac
	if [ "$rc" -ne 0 ] && [ "$rc" -ne 137 ]; then
		[ -s "$W.err" ] || bad "exit $rc without a word"
		grep -qE 'No space left|Input/output error|Too many open files|annot allocate memory|out of memory|not enough memory|No locks available|Resource temporarily|Invalid argument' \
			"$W.err" || bad "a message that does not say what: $(head -1 "$W.err")"
	fi
	if [ "$rc" -eq 0 ]; then
		[ "$(outcome "$scene")" = "$wanted" ] || bad 'exit 0, but it is not done'
		[ "$(families "$scene")" = "$measured" ] || [ -s "$W.err" ] || bad 'exit 0, but metrics are missing, and not a word of it'
	fi
	[ ! -e "$W/ki.prom" ] || [ "$(tail -1 "$W/ki.prom")" = '# EOF' ] || bad 'half a file of metrics'
	"$KI" check --store "$W/store" >"$W.out" 2>&1 || [ "$(dump "$W/store")" = "$old" ] || bad "check: $(head -1 "$W.out")"
	found=$(dump "$W/store")
	[ "$found" = "$old" ] || [ "$found" = "$new" ] || { case $scene in import | campaign) ! lost ;; *) false ;; esac; } || bad 'the store is neither that of before nor that of after'
	case $scene in # which want a new name
	backup | load) [ "$(outcome "$scene")" != "$wanted" ] || rm -rf "$W/out/copy" ;;
	esac
	act "$scene"
	[ "$rc" -eq 0 ] || bad "the next run exits $rc: $(head -1 "$W.err")"
	[ "$(dump "$W/store")" = "$new" ] && [ "$(outcome "$scene")" = "$wanted" ] && [ "$(families "$scene")" = "$measured" ] || bad 'the next run ends elsewhere'
	"$KI" check --store "$W/store" >"$W.out" 2>&1 || bad "check after the next run: $(head -1 "$W.out")"
	[ -z "$(leftovers)" ] || bad "left over: $(leftovers)"
}
plan_faults() { # plan_faults - from calls on standard input, PLACE and DEED lines
	awk -F'\t' '
		BEGIN {
			deeds["openat"] = "EMFILE EIO ENOMEM ENOSPC"; deeds["open"] = deeds["openat"]
			deeds["pipe2"] = deeds["memfd_create"] = deeds["dup2"] = "EMFILE"
			deeds["read"] = deeds["pread64"] = deeds["getdents64"] = deeds["close"] = deeds["lseek"] = "EIO"
			deeds["write"] = "ENOSPC ENOSPC+ EIO short"
			deeds["pwrite64"] = deeds["writev"] = deeds["pwritev"] = "ENOSPC ENOSPC+ EIO short"
			deeds["fsync"] = deeds["fdatasync"] = deeds["msync"] = "EIO EIO+ ENOSPC"
			deeds["flock"] = deeds["fcntl"] = "ENOLCK"
			deeds["mmap"] = deeds["mremap"] = "ENOMEM ENOMEM+"; deeds["brk"] = "ENOMEM ENOMEM+"
			deeds["clone"] = deeds["clone3"] = "EAGAIN ENOMEM"; deeds["execve"] = "ENOMEM"
		}
		{
			n = split(($2 in deeds) ? deeds[$2] : $2 ~ /^(newfstatat|fstat|stat|statx|statfs|fstatfs|access|faccessat|faccessat2|readlink)$/ ? "EIO" : "EIO ENOSPC", d, " ")
			for (i = 1; i <= n; i++) {
				onwards = sub(/\+$/, "", d[i]) ? "+" : ""
				print $1 ":" $2 ":" $3 onwards, d[i], $4
			}
		}'
}
thin() { # thin N - of the lines of standard input N, evenly; 0: all
	awk -v want="$1" '{ line[NR] = $0 } END { step = want && NR > want ? NR / want : 1; for (x = 1; x <= NR; x += step) print line[int(x)] }'
}
work() { # work K - the faults of worker K
	W=$D/work.$1
	awk -v k="$1" -v n="$workers" 'NR % n == k' "$D/faults" | while read -r place deed file; do
		fault="$place $deed $file"
		settle
		case $deed in
		KILL) act "$scene" "$FAULT" --log "$W.log" --kill "$place" ;;
		*) act "$scene" "$FAULT" --log "$W.log" --at "$place" --do "$deed" ;;
		esac
		[ -s "$W.log" ] || { echo unreached; continue; }
		fate=$rc
		judge
		echo "done	$fate"
	done >"$D/results.$1"
}
perform() { # perform SENTENCE - $D/faults, in several workers
	local k=0
	while [ $k -lt "$workers" ]; do
		work $k &
		k=$((k + 1))
	done
	wait
	cat "$D"/results.* >"$D/results"
	rm -f "$D"/results.*
	grep '^bad' "$D/results" | cut -f2- | head -40 | sed 's/^/# /'
	done=$(grep -c '^done' "$D/results")
	codes=$(sed -n 's/^done.//p' "$D/results" | sort -n | uniq -c | awk '{ printf "%s%d of exit %d", (NR > 1 ? ", " : ""), $1, $2 }')
	is "$(grep -c '^bad' "$D/results") $([ "$done" -ge $(($(lines "$D/faults") / 2)) ] && echo most)" '0 most' "$1: $done ($codes; $(grep -c '^unreached' "$D/results") not reached)"
}

for scene in ${KI_TEST_SCENES:-first nightly metrics import campaign flag $corrections upgrade export site backup rehearse load}; do
	scene "$scene"
	W=$D/work
	settle
	mkdir -p "$W/store"
	old=$(dump "$W/store")
	jq -r 'select(.type == "run") | .digest' "$W.dump" 2>/dev/null | sort >"$D/$scene.runs"
	[ "$scene" != first ] || settle
	act "$scene" "$FAULT" --list --log "$D/calls"
	new=$(dump "$W/store")
	wanted=$(outcome "$scene")
	measured=$(families "$scene")
	is "$rc" 0 "$scene: without a fault it is done, in $(lines "$D/calls") calls"
	some=$share
	[ "$scene" != site ] || some=${site:-$share}
	from=1 # what a night does before it writes metrics is tried without them
	[ "$scene" != metrics ] || from=$(awk -F'\t' '$2 == "rename" && $4 ~ /report.json/ { print NR }' "$D/calls")
	tail -n +"$from" "$D/calls" | plan_faults | { [ "$memory" != none ] && cat || grep -v ENOMEM; } | thin "$some" >"$D/faults"
	perform "$scene: faults"
	seq "$from" "$(lines "$D/calls")" | sed 's/$/ KILL/' | thin "$some" >"$D/faults"
	perform "$scene: kills before a call"
done
plan
