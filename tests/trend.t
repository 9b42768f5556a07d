#!/bin/sh
# ki trend and ki report end to end: planted changes in small drops, two releases side by side, the morning mail, and upstream's
# whole history from ../shared where it is.
cd "$(dirname "$0")/.." && . tests/tap.sh
unset LC_ALL LC_CTYPE LANG

S=$D/store
for n in 1 2 3 4 5 6 7; do
	publish_drop "$S" $n 0.1.$((n / 6))
done
is "$(runs "$S")" 84 'seven drops of twelve rows are published'

# --- change points ----------------------------------------------------------------------------------------------------------------
ki trend rms_norm --store "$S" --json
jq -r 'select(.changes | length > 0) | "\(.provider) \(.xValue) \(.changes[] | "\(.direction) \(.since) \(.split) \(.ratio * 100 | round)")"' "$D/out" >"$D/changes"
cat >"$D/want" <<'END'
liger 8192 slower aaaaaa6 5 114
liger 16384 slower aaaaaa6 5 116
liger 32768 slower aaaaaa6 5 115
END
same "$D/want" "$D/changes" '15 % from drop 6 on is found at the three sizes that have it, and nowhere else'
is "$(jq -s 'map(.changes[].q) | max <= 0.01' "$D/out")" true 'each at a false discovery rate of 1 % or less'
is "$(jq -s 'length' "$D/out") $(jq -r '.points | length' "$D/out" | sort -u)" '12 7' 'every series has seven points'
ki flags --store "$S" --code REGRESSION --json
is "$(jq -r '"\(.code) \(.externalId)"' "$D/out" | sort | head -1)" \
	'REGRESSION rms_norm/forward/liger/nvidia-h100-80gb-hbm3/hidden16384-rows2048-bf16/2025-06-06-00-00-00' 'each is a REGRESSION of the first run after it'

# --- the terminal -----------------------------------------------------------------------------------------------------------------
ki trend rms_norm --store "$S"
is "$(head -1 "$D/out")" "rms_norm, forward, $GPU, gh-pages" 'several series come under a heading'
is "$(grep 'hidden8192-.* liger' "$D/out" | sed 's/ *$//')" '  hidden8192-rows2048-bf16   liger        _____##   915.4 µs  +14.3 % since aaaaaa6 (0.1.1)' \
	'one line each: key, provider, spark, last median, change and commit; ASCII where the locale says nothing'
LANG=C.UTF-8 ki trend rms_norm --store "$S"
has "$D/out" '▁▁▁▁▁██' 'blocks where the locale is UTF-8'
LANG=C.UTF-8 ki trend rms_norm --store "$S" --ascii
has "$D/out" '_____##' 'but not under --ascii'
ki trend rms_norm --store "$S" --provider liger --case hidden8192
cat >"$D/want" <<END
rms_norm, forward, $GPU, gh-pages
liger, rows = 2048 · hidden = 8192 · bf16
caveats: params-fp32,reference-out-fp32

  aaaaaa1         0.1.0     2025-01-01 00:00   795.2 µs   793.6 µs - 796.8 µs
END
head -5 "$D/out" >"$D/found"
same "$D/want" "$D/found" 'one series is a table of its points'
is "$(grep -n '^  -- +14.3 % since aaaaaa6 (0.1.1), p ' "$D/out" | cut -d: -f1)" 10 'with the change between the fifth and the sixth'
is "$(tail -10 "$D/out" | grep -c ' | .*:') $(tail -10 "$D/out" | tr -cd '*' | wc -c)" '10 7' 'and a chart with the step marked'
ki trend rms_norm --store "$S" --case nothing
is "$rc" 66 'a filter that nothing passes exits 66'

# --- two releases -----------------------------------------------------------------------------------------------------------------
ki trend rms_norm --store "$S" --from 0.1.0 --to 0.1.1 --json
is "$(jq -r '"\(.provider) \(.xValue) \(.claim) \(.from.release) \(.to.release)"' "$D/out" | sed -n '5p;6p;7p')" 'huggingface 16384 faster aaaaaa5 aaaaaa7
huggingface 32768 slower aaaaaa5 aaaaaa7
liger 1024 faster aaaaaa5 aaaaaa7' 'the latest runs of both releases are compared'
is "$(jq -r 'select(.provider == "huggingface" and .xValue == "1024") | .claim' "$D/out")" no-spread 'nothing is claimed where no spread was published'
ki trend rms_norm --store "$S" --from aaaaaa2 --to aaaaaa7
is "$(tail -1 "$D/out")" 'aaaaaa2 to aaaaaa7: 4 slower, 0 faster, 7 overlap, 1 without a spread' 'where the spreads overlap no change is claimed'
publish_drop "$S" 9 0.2.0
ki trend rms_norm --store "$S" --from 0.1.1 --to 0.2.0
has "$D/out" 'hidden1024-rows2048-bf16  not in the second release' 'a missing partner is named'
is "$(tail -1 "$D/out" | sed 's/.*; //')" '1 only in 0.1.1' 'and counted'
ki trend rms_norm --store "$S" --from 0.1.1 --to 9.9.9
is "$rc $(grep -c '9.9.9: no run' "$D/err")" '66 1' 'an unknown release exits 66'
ki trend rms_norm --store "$S" --from 0.1.1
is "$rc" 64 '--from without --to exits 64'

# --- the morning mail -------------------------------------------------------------------------------------------------------------
R=$D/report
for n in 1 2 3 4 5 6; do
	publish_drop "$R" $n 0.1.0
done
KI_NOW=2025-10-06T09:00:00Z ki report --store "$R"
is "$rc $(head -1 "$D/out")" '0 1 publication, 12 new runs, 0 new cases' 'a report begins with what is new since yesterday'
is "$(grep -c '^Slower' "$D/out")" 0 'one drop after the change claims nothing'
publish_drop "$R" 7 0.1.1
KI_NOW=2025-10-07T09:00:00Z ki report --store "$R"
cat >"$D/want" <<END
1 publication, 12 new runs, 0 new cases

  gh-pages       12 runs in 1 file, the last aaaaaa7

Slower
  rms_norm forward liger, $GPU: +14.3 to +15.5 %
      at 3 of 6 sizes since aaaaaa6 (0.1.0, 2025-06-06), not yet in aaaaaa5
END
head -7 "$D/out" >"$D/found"
same "$D/want" "$D/found" 'with the second the mail says what, how much, at how many sizes, and since which commit'
KI_NOW=2025-10-09T09:00:00Z ki report --store "$R"
is "$rc $(cat "$D/out" "$D/err")" '0 ' 'two days later there is nothing to say'
KI_NOW=2025-10-09T09:00:00Z ki report --store "$R" --last
head -7 "$D/out" >"$D/found"
same "$D/want" "$D/found" '--last is the newest night, however old'
KI_NOW=2025-10-09T09:00:00Z ki report --store "$R" --since 2025-10-01 --json
is "$(jq -c '[.newRuns, (.publications | length), (.slower | map([.kernel, .provider, .count, .sizes, .since.release, .before.release])), .faster]' "$D/out")" \
	'[84,7,[["rms_norm","liger",3,6,"aaaaaa6","aaaaaa5"]],[]]' '--since takes all from a date on; --json is one object'
publish_drop "$R" 9 0.2.0
KI_NOW=2025-11-09T09:00:00Z ki report --store "$R" --json
is "$(jq -c '[.newRuns, .slower]' "$D/out")" '[11,[]]' 'a change that was there before is not news'
{ drop 8 0.2.0; printf 'new_kernel,liger,forward,speed,ms,H,hidden size,8,1,1,1,{},%s,2025-08-08 00:00:00,0.2.0\r\n' "$GPU"; } >"$D/drop.csv"
KI_NOW=2025-11-20T03:00:00Z "$KI" nightly --quiet --store "$R" --snapshot "$D/drop.csv" --entry aaaaaa8 >/dev/null 2>&1
KI_NOW=2025-11-20T09:00:00Z ki report --store "$R"
has "$D/out" '  left out: 1 rows, unknown kernel new_kernel' 'names that the tables do not know are listed'
mkdir -p "$D/config" && cp config/*.json "$D/config" && echo '{}' >"$D/config/trend.json"
ki report --store "$R" --last --config "$D/config"
is "$rc $(grep -c 'falseDiscoveryRate' "$D/err")" '78 1' 'a threshold that is missing exits 78 and is named'

# --- any order --------------------------------------------------------------------------------------------------------------------
O=$D/other
for n in 7 3 1 6 2 5 4; do
	publish_drop "$O" $n 0.1.$((n / 6))
done
ki trend rms_norm --store "$O" --json
jq -cS '[.case, .points, .changes]' "$D/out" >"$D/found"
rm -rf "$S" && for n in 1 2 3 4 5 6 7; do publish_drop "$S" $n 0.1.$((n / 6)); done
ki trend rms_norm --store "$S" --json
jq -cS '[.case, .points, .changes]' "$D/out" >"$D/want"
same "$D/want" "$D/found" 'drops that arrive in another order give the same series and changes'

# --- upstream's history -----------------------------------------------------------------------------------------------------------
if [ -d "$SHARED/upstream" ]; then
	U=$D/upstream
	"$KI" nightly --quiet --store "$U" --replay "$SHARED/upstream" >/dev/null 2>"$D/err"
	ki trend --measure 3 --json --store "$U"
	is "$(jq -c '[.series, .falseAlarms < .series * .nights / 100, .quietFound >= .quietPlanted * 0.9, .quietPlanted > 50]' "$D/out")" '[1774,true,true,true]' \
		'real series, shuffled, raise changes in under 1 %; 15 % planted in those that stray by under 2 % are found'
	ki trend rms_norm --store "$U" --provider liger --mode backward --case hidden32768 --channel gh-pages --gpu nvidia-h100-80gb-hbm3 --json
	is "$(jq -c '[(.points | length), (.changes[] | [.since, .split, .direction, (.ratio * 1000 | round)])]' "$D/out")" '[14,["33924d2",3,"slower",1212]]' \
		'rms_norm backward at 32768 is 21.2 % slower since 33924d2'
	ki trend fused_linear_cpo_loss --store "$U" --mode forward --channel gh-pages --from 0.6.0 --to 0.6.1 --json
	is "$(jq -c '[.claim, .explained, .singleSample]' "$D/out" | sort | uniq -c | sed 's/^ *//')" '8 ["faster","-init-timed",true]' \
		'a caveat that ended between two releases is named'
	started=$(date +%s%N)
	ki report --last --store "$U"
	took=$((($(date +%s%N) - started) / 1000000))
	has "$D/out" 'since 33924d2 (0.6.2, 2025-10-24), not yet in 77a4c1a; also torch +36.4 to +45.0 %' 'other providers that moved in the same drop are named'
	has "$D/out" '  5 kernels at once since 77a4c1a: look at its host, driver and libraries before the kernels' 'and a drop in which many kernels moved'
	is "$rc $(grep -c '^Slower' "$D/out") $([ $took -lt 5000 ] || sanitized || echo "$took ms")" '0 1 ' 'a report on all of it takes less than five seconds'
else
	skip 'real series, shuffled, raise changes in under 1 %' 'no ../shared/upstream'
	skip 'rms_norm backward at 32768 is 21.2 % slower since 33924d2' 'no ../shared/upstream'
	skip 'a caveat that ended between two releases is named' 'no ../shared/upstream'
	skip 'other providers that moved in the same drop are named' 'no ../shared/upstream'
	skip 'and a drop in which many kernels moved' 'no ../shared/upstream'
	skip 'a report on all of it takes less than five seconds' 'no ../shared/upstream'
fi
plan
