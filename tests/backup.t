#!/bin/sh
# Backups that can be rehearsed, and dumps of a whole store from which an equal one is made.
cd "$(dirname "$0")/.." && . tests/tap.sh

F=fixtures/verify
S=$D/store
fixture_config
publish "$S" fixtures/csv/day-1/input.csv
publish "$S" fixtures/csv/day-2/input.csv
publish "$S" fixtures/csv/day-1/input.csv 3333333333333333333333333333333333333333 # carries what is there
ki nightly --quiet --store "$S" --snapshot $F/rows.csv --channel gh-pages --entry 3333333
ki verify import $F/evidence --store "$S" --config "$CONFIG"
run=$("$KI" list --store "$S" --format tsv --columns digest | head -1)
ki flag --store "$S" "$run" --reason 'seen by hand'
if [ -x "$B/bin/ki-verify" ]; then
	"$KI" verify keygen "$D/key.pem" >"$D/key.json" 2>"$D/err"
	jq --slurpfile s "$D/key.json" '.signers += $s' $F/signers.json >"$CONFIG/signers.json"
	ki retract --store "$S" --config "$CONFIG" "$run" --reason 'cold clock' --key "$D/key.pem"
	signed=yes
fi
dump() { # dump STORE
	"$KI" export --store "$1" --format store
}
records() { # records STORE - the dump without times of publication
	"$KI" export --store "$1" --format jsonl | sha256sum
}

# --- dump and load ----------------------------------------------------------------------------------------------------------------
dump "$S" >"$D/dump"
is "$? $(head -1 "$D/dump" | jq -c '[.type, .counts.runs, .counts.publications, (.channels | length)]') $(tail -1 "$D/dump" | jq -c '[.type, .lines]')" \
	"0 [\"store\",13,5,3] [\"end\",$(($(lines "$D/dump") - 1))]" 'a dump begins with its account and ends with its length'
is "$(jq -r '.type' "$D/dump" | sort | uniq -c | awk '{ print $2 }' | tr '\n' ' ')" 'case end entry labels object publication run store ' 'it holds all kinds there are'
ki import --store "$D/again" "$D/dump"
is "$rc" 0 'a store is made from it'
dump "$D/again" | cmp -s - "$D/dump"
ok $? 'whose own dump is the same, byte for byte'
is "$(records "$D/again")" "$(records "$S")" 'so are the records with their ranks and evidence'
is "$("$KI" flags --store "$D/again" --json | sha256sum)" "$("$KI" flags --store "$S" --json | sha256sum)" 'and the flags'
is "$("$KI" log --events --store "$D/again" --json | sha256sum)" "$("$KI" log --events --store "$S" --json | sha256sum)" 'and the events'
is "$("$KI" show "$run" --store "$D/again" --json | sha256sum)" "$("$KI" show "$run" --store "$S" --json | sha256sum)" 'a record reads the same'
ki check --store "$D/again"
is "$rc" 0 'the new store is clean'
for store in "$S" "$D/again"; do
	put "$store" fixtures/csv/example/input.csv
done
is "$(dump "$D/again" | sed 's/"publishedAt":"[^"]*"//' | sha256sum)" "$(dump "$S" | sed 's/"publishedAt":"[^"]*"//' | sha256sum)" 'the next publication goes into both alike'
zstd -q "$D/dump" -o "$D/dump.zst"
ki import --store "$D/packed" "$D/dump.zst"
is "$rc $(dump "$D/packed" | sha256sum)" "0 $(sha256sum <"$D/dump")" 'a dump may be packed with zstd'
"$KI" import --store "$D/piped" - <"$D/dump.zst" >"$D/out" 2>"$D/err"
is "$? $(dump "$D/piped" | sha256sum)" "0 $(sha256sum <"$D/dump")" 'and come from a pipe'
ki import --store "$D/none" "$D/nosuch"
is "$rc" 66 'a file that is not there is not found'
ki import --store "$D/packed" "$D/dump"
is "$rc $(dump "$D/packed" | sha256sum)" "64 $(sha256sum <"$D/dump")" 'nothing is imported into a store that exists'
ki export --store "$S" --format store --gpu nvidia-h200
is "$rc" 64 'a dump of a store is never of a part of it'

refused() { # refused FILE SENTENCE - 65, a line number, and nothing left
	rm -rf "$D/bad"
	ki import --store "$D/bad" "$1"
	left=$(find "$D" -maxdepth 1 -name 'bad*' | wc -l | tr -d ' ')
	is "$rc $left" '65 0' "$2"
}
head -40 "$D/dump" >"$D/x"
refused "$D/x" 'a dump that ends early is refused, and nothing is left of it'
sed '30d' "$D/dump" >"$D/x"
refused "$D/x" 'so is one that lacks a line'
sed '/"type":"publication"/d' "$D/dump" >"$D/x"
refused "$D/x" 'so are runs without a publication'
head -c 5000 "$D/dump.zst" >"$D/x"
refused "$D/x" 'so is a packed one that was cut off'
sed 's/"ms_50":0\.0[0-9]/"ms_50":0.09/' "$D/dump" >"$D/x"
refused "$D/x" 'a number that was altered is found by its digest'
has "$D/err" 'but its bytes are' 'and named with its line'
grep -q "$D/x:[0-9]" "$D/err"
ok $? 'of the file'
sed '/"type":"publication"/s/"runs":\[\[0,/"runs":[[1,/' "$D/dump" >"$D/x"
refused "$D/x" 'a list of runs that was altered is refused'
if [ -n "${signed:-}" ]; then
	sed 's/"reason":"cold clock"/"reason":"warm clock"/' "$D/dump" >"$D/x"
	refused "$D/x" 'an entry that was altered is not what was signed'
else
	skip 'an entry that was altered is not what was signed' 'no ki-verify here to make a key with'
fi
"$KI" export --store "$S" --format jsonl >"$D/x"
refused "$D/x" 'a dump of the catalog is none of a store'
has "$D/err" 'export --format store' 'and the message says which is wanted'
: >"$D/x"
refused "$D/x" 'an empty file is no dump'

table 20000 >"$D/big.csv"
put "$D/big" "$D/big.csv"
dump "$D/big" >"$D/big.dump"
bad=
for delay in 0.02 0.05 0.1 0.15 0.2 0.3; do
	"$B/bin/ki-store" load --store "$D/killed" "$D/big.dump" >/dev/null 2>&1 &
	sleep $delay
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	if [ -e "$D/killed" ]; then
		dump "$D/killed" | cmp -s - "$D/big.dump" || bad="$bad $delay"
		rm -rf "$D/killed"
	fi
done
is "$bad" '' 'an import that is killed leaves nothing under the name of the store, or all of it'

# --- backups and their rehearsal --------------------------------------------------------------------------------------------------
dump "$S" >"$D/dump"
ki backup --store "$S" "$D/backup"
is "$rc $(jq -r .holds.dump "$D/backup/backup.json")" "0 sha256:$(sha256sum <"$D/dump" | cut -d' ' -f1)" 'a backup claims the digest of the dump of what it holds'
before=$(cd "$D/backup" && find . -type f ! -name lock.mdb -exec sha256sum {} + | sort | sha256sum)
ki rehearse "$D/backup"
is "$rc $(grep -c 'whole, and what the backup claims' "$D/out")" '0 1' 'a rehearsal reads it as a store, checks it whole and finds what it claims'
is "$(cd "$D/backup" && find . -type f ! -name lock.mdb -exec sha256sum {} + | sort | sha256sum)" "$before" 'and changes nothing of it'
cp -r "$D/backup" "$D/restored"
is "$(dump "$D/restored" | sha256sum)" "$(sha256sum <"$D/dump")" 'a backup under the name of a store is that store'
publish "$D/restored" fixtures/csv/memory/input.csv
is "$rc" 0 'and goes on'
ki rehearse "$D/restored"
is "$rc $(grep -c 'runs is [0-9]*, the backup claims' "$D/out")" '80 1' 'which then is no longer what the backup claimed'
spoil() { # spoil SENTENCE - the copy $D/spoilt is found out
	ki rehearse "$D/spoilt"
	is "$rc" 80 "$1"
	rm -rf "$D/spoilt"
}
cp -r "$D/backup" "$D/spoilt"
rm "$(find "$D/spoilt/samples" -type f | head -1)"
spoil 'a kept file that is missing is found'
cp -r "$D/backup" "$D/spoilt"
file=$(find "$D/spoilt/evidence" -type f | head -1)
chmod u+w "$file"
sed -i '1s/a/b/' "$file"
spoil 'so is one with other bytes'
cp -r "$D/backup" "$D/spoilt"
sed -i 's/"runs":[0-9]*/"runs":1/' "$D/spoilt/backup.json"
spoil 'so is a claim that was altered'
cp -r "$D/backup" "$D/spoilt"
printf 'x' | dd of="$D/spoilt/data.mdb" bs=1 seek=$(($(stat -c %s "$D/spoilt/data.mdb") / 4096 * 2048)) conv=notrunc 2>/dev/null
cmp -s "$D/spoilt/data.mdb" "$D/backup/data.mdb" || spoil 'and a byte of the catalog'
rm -rf "$D/spoilt"
unseen() { # unseen SENTENCE - in the copy $D/spoilt something cannot be looked at, which is no damage, and no proof either
	ki check --store "$D/spoilt"
	local check="$rc $(grep -c 'Too many levels' "$D/err")"
	ki rehearse "$D/spoilt"
	is "$check $rc $(grep -c 'Too many levels' "$D/err")" '74 1 74 1' "$1"
	rm -rf "$D/spoilt"
}
cp -r "$D/backup" "$D/spoilt"
rm -r "$D/spoilt/samples" && ln -s samples "$D/spoilt/samples"
unseen 'a folder of kept files that cannot be read is neither clean nor damaged'
cp -r "$D/backup" "$D/spoilt"
file=$(find "$D/spoilt/evidence" -type f | head -1)
ln -sf "$(basename "$file")" "$file"
unseen 'so is a kept file that cannot be opened'
ki rehearse "$S"
is "$rc" 66 'a store that is no backup is not rehearsed'
ki backup --store "$S" "$D/backup/"
is "$rc" 64 'a backup never goes over another'
ki backup --store "$S" "$D/slash/"
is "$rc $("$KI" rehearse "$D/slash" >/dev/null && echo whole)" '0 whole' 'a name may end in a slash'

(
	n=0
	while [ ! -e "$D/enough" ]; do
		n=$((n + 1))
		table 50 $((n * 1000)) >"$D/busy.csv"
		put "$D/big" "$D/busy.csv"
	done
) &
writer=$!
bad=
for n in 1 2 3 4 5; do
	"$KI" check --store "$D/big" --quiet >"$D/out" 2>"$D/err" || bad="$bad check $n"
	"$KI" backup --store "$D/big" "$D/busy.$n" >"$D/out" 2>"$D/err" && "$KI" rehearse "$D/busy.$n" >"$D/out" 2>"$D/err" || bad="$bad $n"
done
: >"$D/enough"
wait $writer
is "$bad" '' 'while a writer publishes, checks are clean, and backups are what they claim'

if have strace; then
	ASAN_OPTIONS=detect_leaks=0 strace -f -y -e trace=fsync,fdatasync,rename,renameat2 -o "$D/trace" "$B/bin/ki-store" backup --store "$S" "$D/traced" 2>"$D/err"
	is "$(grep -c 'fsync.*traced.tmp.*/data.mdb' "$D/trace") $(sed -n '/renameat2/,$p' "$D/trace" | grep -c "fsync([0-9]*<$D>)")" '1 1' \
		'a backup is synced before it gets its name, and its name after'
else
	skip 'a backup is synced before it gets its name, and its name after' 'no strace'
fi
plan
