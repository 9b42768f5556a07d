#!/bin/sh
# The stages as they run: what the kernel says of them, and that --strict reaches every one.
. tests/tap.sh

status_of() { awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status" 2>/dev/null; }
confined() { # confined PID - waits until a stage has entered its role
	for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
		[ "$(status_of "$1" Seccomp)" = 2 ] && return 0
		sleep 0.1
	done
	return 1
}

mkfifo "$D/in" "$D/wire"
"$B/bin/ki-normalize" --sources - <"$D/in" >"$D/out" 2>"$D/err" & normalize=$!
"$B/bin/ki-store" --store "$D/s" put <"$D/wire" >"$D/out2" 2>"$D/err2" & store=$!
exec 7>"$D/in" 8>"$D/wire"
confined $normalize
ok $? 'ki-normalize waits for its input under a seccomp filter'
is "$(status_of $normalize NoNewPrivs)" 1 'and can gain no rights'
confined $store
ok $? 'ki-store waits for its input under a seccomp filter'
is "$(awk '/Max core file size/ { print $5, $6 }' /proc/$store/limits)" '0 0' 'and dumps no core'
exec 7>&- 8>&-
wait $normalize $store

publish "$D/night" fixtures/csv/example/input.csv
is $rc 0 'a night runs confined'
if have strace; then
	# a file a process, so that no line is cut in two by another's
	strace -ff -e trace=execve,seccomp,landlock_create_ruleset -o "$D/calls" "$KI" nightly --quiet --store "$D/traced" \
		--snapshot fixtures/csv/example/input.csv --commit 2120862ba532c9449e72d603ba6324310ae756e7 2>"$D/err"
	cat "$D"/calls.* >"$D/calls"
	if grep -q 'execve(' "$D/calls"; then
		stages=$(grep -c 'execve("[^"]*/ki-' "$D/calls")
		is "$(grep -c 'seccomp(SECCOMP_SET_MODE_FILTER.* = 0$' "$D/calls")" $((stages + 1)) 'every stage of a night, and the probe, enters a filter'
		has "$D/calls" 'landlock_create_ruleset' 'and asks for Landlock'
	else
		skip 'every stage of a night enters a filter' 'strace may not trace here'
	fi
else
	skip 'every stage of a night enters a filter' 'no strace'
fi

ki export --format csv --store "$D/night"
is $rc 0 'an export to standard output needs no folder'
ki backup "$D/copies/one" --store "$D/night"
is $rc 0 'a backup may make the folder that it was told'
ki export --out "$D/dumps/today" --store "$D/night"
is $rc 0 'and an export'
ki rehearse "$D/copies/one"
is $rc 0 'and a rehearsal reads it'
ki export --format site --out "$D/site" --store "$D/night"
is $rc 0 'and a site'
ki config explain "$(sed -n 2p fixtures/csv/example/input.csv | tr -d '\r')"
is $rc 0 'a row is explained without a file of its own'
plan
