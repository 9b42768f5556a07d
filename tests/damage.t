#!/bin/sh
# data.mdb zeroed, swapped, cut and of another version, page by page: every command ends with an exit code of README's, none by a signal,
# none hangs; check finds what changes what is read; and nothing damaged is exported as if it were whole. KI_TEST_LONG=1: every third page.
cd "$(dirname "$0")/.." && . tests/tap.sh

KI_NOW=2026-01-02T03:04:05Z
export KI_NOW
PAGE=4096
table 3000 >"$D/table.csv"
table 20 900000 >"$D/more.csv"
put "$D/good" "$D/table.csv" 1111111111111111111111111111111111111111
cp fixtures/verify/rows.csv "$D/rows.csv"
put "$D/good" "$D/rows.csv" 2222222222222222222222222222222222222222
pages=$(($(stat -c %s "$D/good/data.mdb") / PAGE))
export_of() { # export_of STORE - its exit code in $code, the digest of all that is in it in $dumped, "" when that failed
	timeout 20 "$B/bin/ki-store" export --store "$1" --metric all --format jsonl 2>/dev/null >"$D/dump"
	code=$?
	dumped=
	[ $code -ne 0 ] || dumped=$(sha256sum <"$D/dump")
}
export_of "$D/good"
wanted=$dumped
[ -n "$wanted" ] && [ "$pages" -gt 30 ]
ok $? "there is a store of $pages pages"

copy() {
	rm -rf "$D/bad"
	mkdir "$D/bad"
	cp "$D/good/data.mdb" "$D/bad/data.mdb"
}
page() { # page FROM AT - copies a page of the good file over one of the bad
	dd if="$D/good/data.mdb" of="$D/bad/data.mdb" bs=$PAGE skip="$1" seek="$2" count=1 conv=notrunc 2>/dev/null
}
fill() { # fill BYTE AT - fills a page of the bad file
	head -c $PAGE /dev/zero | tr '\0' "$1" | dd of="$D/bad/data.mdb" bs=$PAGE seek="$2" conv=notrunc 2>/dev/null
}
runs_bad=0 hidden=0 found=0 tried=0
end() { # end WHAT VERB CODE
	case $3 in
	0 | 65 | 66 | 74 | 80) ;;
	*) runs_bad=$((runs_bad + 1)); echo "# $1: $2 exits $3: $(head -1 "$D/err")" ;;
	esac
}
try() { # try WHAT - all commands on the store at $D/bad
	tried=$((tried + 1))
	timeout 20 "$B/bin/ki-store" check --store "$D/bad" >"$D/out" 2>"$D/err"
	local check=$?
	end "$1" check $check
	[ $check -ne 80 ] || found=$((found + 1))
	export_of "$D/bad"
	end "$1" export $code
	[ $check -eq 80 ] || [ -z "$dumped" ] || [ "$dumped" = "$wanted" ] || { hidden=$((hidden + 1)); echo "# $1: check is content, but the dump is another"; }
	for verb in 'list --sort time' 'status' 'log --events' 'flags' "backup $D/bad/copy"; do
		# shellcheck disable=SC2086
		timeout 20 "$B/bin/ki-store" $verb --store "$D/bad" >"$D/out" 2>"$D/err"
		end "$1" "$verb" $?
	done
	put "$D/bad" "$D/more.csv" 2>"$D/err"
	end "$1" put $?
}
verdict() { # verdict SENTENCE
	is "$runs_bad $hidden" '0 0' "$1: $tried stores, $found found by check"
	runs_bad=0 hidden=0 found=0 tried=0
}

step=$((pages / 12))
[ -z "$LONG" ] || step=3
sanitized && step=$((pages / 3))
for n in $(seq 2 $step $((pages - 1))); do
	copy && fill '\0' "$n" && try "page $n zeroed"
done
verdict 'a page that is zeroed'
for n in $(seq 3 $step $((pages - 1))); do
	copy && fill '\377' "$n" && try "page $n full of ones"
done
verdict 'a page full of ones'
for n in $(seq 4 $step $((pages - 1))); do
	copy && page $((2 + (n * 7) % (pages - 2))) "$n" && page "$n" $((2 + (n * 7) % (pages - 2))) && try "page $n swapped"
done
verdict 'two pages that are swapped'

refused() { # refused SENTENCE - by every command
	for verb in check list 'export --format jsonl' status "backup $D/bad/copy" "nightly --snapshot $D/more.csv --commit 111111111111"; do
		# shellcheck disable=SC2086
		ki $verb --store "$D/bad"
		is "$rc $(lines "$D/err")" '80 1' "$1: ${verb%% *} says that the store is damaged"
	done
}
copy && : >"$D/bad/data.mdb" && refused 'an empty data.mdb'
copy && fill '\0' 0 && refused 'the first page zeroed'
copy && fill '\0' 1 && refused 'the second page zeroed'
copy && printf '\002' | dd of="$D/bad/data.mdb" bs=1 seek=20 conv=notrunc 2>/dev/null && refused 'a data.mdb of another version of LMDB'
copy && head -c $((pages * PAGE)) /dev/zero >"$D/bad/data.mdb" && refused 'a data.mdb of zeroes'
copy && page 1 0 && page 0 1 && try 'the first two pages swapped'
verdict 'the first two pages swapped'

# A file that is cut while it is read: the reader ends as told, not by SIGBUS.
copy
mkfifo "$D/fifo"
timeout 20 "$B/bin/ki-store" list --store "$D/bad" --metric all --json >"$D/fifo" 2>"$D/err" &
reader=$!
{ read -r line && truncate -s $((4 * PAGE)) "$D/bad/data.mdb" && cat >/dev/null; } <"$D/fifo"
wait $reader
rc=$?
case $rc in 0 | 80) ok 0 "a file that is cut under a reader ends it with 0 or 80 ($rc)" ;; *) ok 1 "a file that is cut under a reader: exit $rc" ;; esac
plan
