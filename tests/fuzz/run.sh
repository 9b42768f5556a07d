#!/bin/sh
# make fuzz: runs each target under libFuzzer for so many seconds from the committed inputs, then the differential fuzzer. What a target
# learns stays in build/fuzz/corpus/NAME for the next time. Exits 1 on a finding and says where its input is.
# usage: tests/fuzz/run.sh SECONDS TARGET…
set -u
seconds=$1
shift
B=${B:-build}
dir=build/fuzz
failed=0
count() { find "$@" -type f 2>/dev/null | wc -l; }

for name in "$@"; do
	learned=$dir/corpus/$name artefacts=$dir/found/$name log=$dir/$name.log
	mkdir -p "$learned" "$artefacts"
	seeds=tests/fuzz/corpus/$name
	[ -d "tests/fuzz/found/$name" ] && seeds="$seeds tests/fuzz/found/$name"
	words=tests/fuzz/$name.dict
	# shellcheck disable=SC2086
	"$dir/fuzzer/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		$([ -f "$words" ] && echo "-dict=$words") -artifact_prefix="$artefacts/" "$learned" $seeds >"$log" 2>&1
	status=$?
	awk -v name="$name" -v status=$status -v inputs="$(count "$learned")" '
		/ cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) } }
		/^stat::number_of_executed_units/ { runs = $2 }
		/^stat::average_exec_per_sec/ { rate = $2 }
		END { printf "%-9s %10d runs %7d a second, %5d edges, %6d features, %5d inputs: %s\n", name, runs, rate, cov, ft, inputs, status ? "FINDING" : "none" }' "$log"
	[ $status -eq 0 ] && continue
	failed=1
	grep -m1 -E 'does not hold|runtime error|ERROR: (Address|Leak|libFuzzer)' "$log" | sed 's/^/  /'
	found=$(ls -t "$artefacts" | head -1)
	echo "  input: $artefacts/$found (whole report: $log)"
	echo "  again: $dir/fuzzer/$name $artefacts/$found"
	echo "  smaller: $dir/fuzzer/$name -minimize_crash=1 -runs=100000 -exact_artifact_path=smaller $artefacts/$found"
	echo "  as a test: copy it to tests/fuzz/found/$name/ under a name that says what was wrong, mend the code, make test"
done

if command -v python3 >/dev/null; then
	B=$B python3 tests/fuzz/canonical.py "$B/bin/ki-normalize" --seconds "$seconds" || failed=1
else
	echo 'canonical: no python3 here, so canonical JSON was not compared with a second implementation'
fi
exit $failed
