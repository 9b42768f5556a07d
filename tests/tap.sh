# What tests in shell share: TAP, a scratch directory $D, and where things are. To be sourced from the top of the tree.
#   $KI the front door, $B the build (absolute), $SHARED the reference material beside the checkout (may be absent)
# shellcheck shell=sh disable=SC2034
set -u
TOP=$PWD
B=$(cd "${B:-build}" && pwd) || exit 1
KI=$B/bin/ki
SHARED=$(cd .. && pwd)/shared
CASES=$SHARED/cases/inputs
LONG=${KI_TEST_LONG:-}
unset KI_STORE KI_CONFIG KI_GITHUB_TOKEN KI_NOW COLUMNS
D=$(mktemp -d) || exit 1
TO_KILL=
trap 'for p in $TO_KILL; do kill "$p" 2>/dev/null; done; rm -rf "$D"' EXIT
trap 'exit 1' INT TERM

count=0
failed=0
ok() { # ok STATUS SENTENCE; after a failure the first lines of $D/err follow
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
	else
		failed=$((failed + 1))
		echo "not ok $count - $2"
		sed 's/^/#   err: /' "$D/err" 2>/dev/null | head -5
	fi
}
is() { # is FOUND EXPECTED SENTENCE
	[ "$1" = "$2" ]
	local status=$?
	ok $status "$3"
	[ $status -eq 0 ] || printf '%s\n' "found $1" "wants $2" | sed 's/^/#   /'
}
fixture_config() { # config/ with the key of fixtures/verify/evidence approved, in $CONFIG
	CONFIG=$D/config
	cp -r config "$CONFIG"
	cp fixtures/verify/signers.json "$CONFIG/signers.json"
}
same() { # same EXPECTED-FILE FOUND-FILE SENTENCE
	cmp -s "$1" "$2"
	local status=$?
	ok $status "$3"
	[ $status -eq 0 ] || diff "$1" "$2" | head -10 | sed 's/^/#   /'
}
has() { # has FILE FIXED-STRING SENTENCE
	grep -qF -- "$2" "$1"
	local status=$?
	ok $status "$3"
	[ $status -eq 0 ] || echo "#   not there: $2"
}
skip() { # skip SENTENCE REASON
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}
plan() {
	echo "1..$count"
	[ "$failed" -eq 0 ] || exit 1
	exit 0
}
rc=0
ki() { # output in $D/out, messages in $D/err, exit code in $rc
	"$KI" "$@" >"$D/out" 2>"$D/err" </dev/null
	rc=$?
}
lines() {
	wc -l <"$1" | tr -d ' '
}
have() {
	command -v "$1" >/dev/null 2>&1
}
sanitized() { # is this the build with sanitizers? They want more memory than some limits leave
	grep -q __asan_init "$B/bin/ki-store"
}
row() { # row X-VALUE MEDIAN TIME [VERSION] [PROVIDER] - one CSV row
	printf 'rms_norm,%s,forward,speed,ms,H,hidden size,%s,%s,,,"{""M"": 2048, ""dtype"": ""torch.bfloat16"", ""eps"": 1e-06}",NVIDIA A100-SXM4-80GB,%s,%s\r\n' \
		"${5:-liger}" "$1" "$2" "$3" "${4:-0.5.5}"
}
HEADER='kernel_name,kernel_provider,kernel_operation_mode,metric_name,metric_unit,x_name,x_label,x_value,y_value_50,y_value_20,y_value_80,extra_benchmark_config_str,gpu_name,timestamp,liger_version'
header() {
	printf '%s\r\n' "$HEADER"
}
table() { # table ROWS [FIRST] - a CSV of distinct runs in 1,600 cases; tables of other numbers of FIRST share no run
	header
	awk -v rows="$1" -v first="${2:-0}" 'BEGIN {
		for (i = first; i < first + rows; i++)
			printf "rms_norm,%s,forward,speed,ms,H,hidden size,%d,%.6f,%.6f,%.6f,\"{\"\"M\"\": %d, \"\"dtype\"\": \"\"torch.bfloat16\"\", \"\"eps\"\": 1e-06}\",NVIDIA A100-SXM4-80GB,2025-%02d-%02d %02d:%02d:%02d,0.5.%d\r\n",
				i % 2 ? "liger" : "huggingface", 1024 * (1 + int(i / 2) % 8), 0.01 + i % 97 / 1000, 0.009 + i % 97 / 1000, 0.011 + i % 97 / 1000,
				256 * (1 + int(i / 16) % 100), 1 + int(i / 2419200), 1 + int(i / 86400) % 28, int(i / 3600) % 24, int(i / 60) % 60, i % 60, i % 11
	}' </dev/null
}
publish() { # publish STORE FILE [COMMIT] - as a night of its own; $rc
	ki nightly --quiet --store "$1" --snapshot "$2" --commit "${3:-$(sha256sum <"$2" | cut -c1-40)}"
}
put() { # put STORE FILE [COMMIT] - without the nightly lock and without snapshot or export
	"$B/bin/ki-normalize" --quiet --commit "${3:-$(sha256sum <"$2" | cut -c1-40)}" "$2" | "$B/bin/ki-store" --store "$1" --quiet put
}
runs() { # runs STORE - how many there are
	"$KI" list --store "$1" --metric all --format tsv --columns digest | wc -l | tr -d ' '
}
# The drops of tests of trends.
GPU='NVIDIA H100 80GB HBM3'
drop() { # drop NUMBER VERSION - the CSV of one monthly drop of $GPU: 12 series that stray by under 1 %.
	# Liger's three largest sizes are 15 % slower from drop 6 on; huggingface's 4096 jumps in drop 4 alone; 1024 of liger is
	# missing from drop 9 on, and all of p20 and p80 of huggingface's 1024.
	header
	awk -v n="$1" -v version="$2" -v gpu="$GPU" 'BEGIN {
		for (p = 0; p < 2; p++)
			for (s = 0; s < 6; s++) {
				h = 1024 * 2 ^ s
				if (p == 0 && s == 0 && n >= 9)
					continue
				stray = 1 + ((n * 37 + s * 11 + p * 5) % 17 - 8) / 1000
				ms = h / 1024 * 0.1 * stray
				if (p == 0 && s >= 3 && n >= 6)
					ms *= 1.15
				if (p == 1 && s == 2 && n == 4)
					ms *= 3
				spread = p == 1 && s == 0 ? "," : sprintf("%.6f,%.6f", ms * 0.998, ms * 1.002)
				printf "rms_norm,%s,forward,speed,ms,H,hidden size,%d,%.6f,%s,\"{\"\"M\"\": 2048, \"\"dtype\"\": \"\"torch.bfloat16\"\", \"\"eps\"\": 1e-06}\",%s,2025-%02d-0%d 00:00:00,%s\r\n",
					p ? "huggingface" : "liger", h, ms, spread, gpu, n, n, version
			}
	}' </dev/null
}
publish_drop() { # publish_drop STORE NUMBER VERSION
	drop "$2" "$3" >"$D/drop.csv"
	KI_NOW=2025-1$(($2 / 9))-0${2}T03:00:00Z "$KI" nightly --quiet --store "$1" --snapshot "$D/drop.csv" --entry "aaaaaa$2" >/dev/null 2>"$D/err"
}
