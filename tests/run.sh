#!/bin/sh
# Runs test programs under prove and ends with `N passed, N failed, N skipped`. Details of failures go to standard output, the
# whole of it to $B/test.log.
B=${B:-build}
export B CMOCKA_MESSAGE_OUTPUT=TAP
log=$B/test.log
prove -v --exec tests/one.sh "$@" >"$log" 2>&1
status=$?
grep -vE '^ok |^1\.\.|^# (ok|skip)' "$log" | grep -E '^not ok|^#|Failed|Dubious|Result|ERROR|Sanitizer|runtime error|^Files=' | head -100
awk -v status=$status '
	/^ok /                   { if (tolower($0) ~ /# skip/) skipped++; else passed++ }
	/^not ok /               { failed++ }
	/Dubious|Bad plan/       { broken++ }
	END {
		if (status != 0 && failed + 0 == 0) failed = broken ? broken : 1
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	}' "$log"
exit $status
