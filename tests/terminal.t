#!/bin/sh
# What people read on a terminal: ki show, cohort, compare and trend under a pseudo terminal of several widths, in UTF-8 and without,
# and the same commands in a pipe.
cd "$(dirname "$0")/.." && . tests/tap.sh

S=$D/store
publish "$S" fixtures/csv/example/input.csv 2120862ba532c9449e72d603ba6324310ae756e7
for n in 1 2 3 4 5 6 7; do
	publish_drop "$S" $n 0.1.$((n / 6))
done
A=521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107
ID=fused_neighborhood_attention/backward/torch/nvidia-geforce-rtx-3090/batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32/2025-05-27-15-10-05
FIRST=$("$KI" list --store "$S" --kernel fused_neighborhood_attention --provider liger --format tsv --columns digest)
old=$("$KI" list --store "$S" --kernel rms_norm --format tsv --sort time --columns digest | head -1)

longest() { # longest FILE - characters of its longest line
	perl -CSD -ne 'chomp; $n = length if length > $n; END { print $n + 0 }' "$1"
}
packed() { # packed FILE - without white space, as one line: a text is in it however it was broken
	tr -d ' \n' <"$1"
}
terminal() { # terminal COLUMNS ARGUMENT... - a command on a terminal so wide; what it drew in $D/out
	local columns=$1
	shift
	script -qec "stty cols $columns rows 40; $KI $* --store $S" /dev/null </dev/null 2>"$D/err" | tr -d '\r' >"$D/out"
}
says() { # says TEXT SENTENCE
	packed "$D/out" >"$D/packed"
	has "$D/packed" "$(printf %s "$1" | tr -d ' ')" "$2"
}

# --- a pipe -----------------------------------------------------------------------------------------------------------------------
ki show --store "$S" $A
is "$rc $(head -1 "$D/out")" "0 $ID" 'in a pipe a long name is one line'
has "$D/out" "  run              sha256:$A" 'and a digest stands beside its name'
for section in 'Measurement (latency)' Comparison Identity Correctness Workload Measurements Protocol Environment Artifacts 'Replications and notes' History \
	'Canonical manifest' 'Cite this record'; do
	echo "$section"
done >"$D/want"
grep -v '^ ' "$D/out" | sed '1,/^$/d' | grep . >"$D/found"
same "$D/want" "$D/found" 'the sections are those of the page, in its order'
has "$D/out" 'ki compare' 'the first of the group is a command away'
has "$D/out" 'No artifacts published with this run.' 'artifacts that are missing are said to be'
has "$D/out" 'Notes by people never change the evidence level.' 'and what a note is worth'
has "$D/out" 'Liger-Kernel benchmarks, https://github.com/linkedin/Liger-Kernel, licence BSD-2-Clause, LinkedIn' 'source and licence stand in the citation'
cp "$D/out" "$D/whole"
sed -n '/^\$ ki show 521a0b1ea67f$/,/^```$/p' README.md | sed '1d;$d;/^  …$/d;s/…$//' | grep . >"$D/example"
missing=$(while IFS= read -r line; do grep -qF -- "$line" "$D/out" || echo "$line"; done <"$D/example")
is "$([ "$(lines "$D/example")" -gt 10 ] || echo short)$missing" '' 'every line of the example in README is printed'
ki show --store "$S" $A --config "$D/none"
is "$rc $(grep -c 'Source and licence are unknown here' "$D/out") $(grep -c '^  doubts  *unknown here: ' "$D/out")" '0 1 1' 'a record is read without a config, which is then said'
is "$(grep -c 'report a fault' "$D/whole")" 0 'nobody is named for reports while the config names nobody'
cp -r config "$D/config"
sed -i 's|"report": "[^"]*"|"report": "https://example.org/issues/new?title={subject}"|' "$D/config/site.json"
ki show --store "$S" $A --config "$D/config"
has "$D/out" '  report a fault   https://example.org/issues/new' 'an address for reports is printed'
ki show --store "$S" "$old"
command=$(sed -n 's/^  trend  *ki //p' "$D/out")
# shellcheck disable=SC2086
ki $command --store "$S"
is "$rc $(grep -c '  trend  ' "$D/whole") $(head -1 "$D/out")" "0 0 rms_norm, forward, $GPU, gh-pages" 'a run that is not alone in its case names the command that shows its trend'
ki flag --store "$S" $A --reason 'measured with a cold clock'
ki show --store "$S" $A
has "$D/out" '  flagged          measured with a cold clock (' 'a flag set by hand is a note'
has "$D/out" '  doubts           MANUAL: measured with a cold clock (' 'and a doubt'
ki flag --store "$S" $A --clear
ki show --store "$S" $A
is "$(grep -c '  flagged  ' "$D/out") $(grep -c '  doubts           none by policy flags-v1' "$D/out")" '0 1' 'until it is cleared'
ki cohort --store "$S" $A
is "$(grep -c "1.38x .*PyTorch.*24.1 ms to 24.2 ms, 2025-05-27, 0.5.10, reported  $ID\$" "$D/out")" 1 'a run of a group is one line, its name whole'
COLUMNS=60 "$KI" cohort --store "$S" $A >"$D/out"
is "$([ "$(longest "$D/out")" -le 60 ] && echo fits)" fits 'COLUMNS is a width too'
LC_ALL=C "$KI" compare --store "$S" $A "$FIRST" >"$D/out"
is "$? $(grep -c '^  \[1\]     24.1 ms  #\{40\}$' "$D/out") $(grep -c '^  \[2\]     17.5 ms  #\{29\}$' "$D/out")" '0 1 1' 'medians that may be compared are bars'
ki compare --store "$S" $A "$old"
is "$rc $(grep -c '^not comparable' "$D/out") $(grep -cE '█|#' "$D/out")" '0 1 0' 'others have none'

# --- a terminal -------------------------------------------------------------------------------------------------------------------
if have script && have perl && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	export LC_ALL=C.UTF-8
	for columns in 60 80 132; do
		terminal $columns show $A
		cp "$D/out" "$D/$columns"
		wide=$(longest "$D/out")
		says "$ID" "at $columns columns the external id is whole"
		says "sha256:$A" 'so is the digest'
		says 'ms_20 24.077312469482422 · ms_50 24.104448318481445 · ms_80 24.161880493164062' 'and the numbers as published'
		packed "$D/whole" >"$D/want"
		packed "$D/out" >"$D/found"
		same "$D/want" "$D/found" 'nothing that a pipe gets is missing'
		for command in "show $FIRST" "show $old" "cohort $A" "cohort $old" "compare $A $FIRST" "compare $A $old $FIRST" "trend rms_norm" \
			"trend rms_norm --provider liger --case hidden8192" "trend rms_norm --from aaaaaa2 --to aaaaaa7" trend; do
			terminal $columns "$command"
			n=$(longest "$D/out")
			wide=$([ "$n" -gt "$wide" ] && echo "$n" || echo "$wide")
			[ "$(lines "$D/out")" -ge 4 ] || wide="$command: nothing to read"
		done
		is "$([ "$wide" -gt 40 ] && [ "$wide" -le $columns ] || echo "$wide")" '' "no line of any command is wider than $columns columns"
		terminal $columns cohort $A
		says "sha256:26ef57272cd81d16b03d0c177463577915cbb57cc6541d7d6e09854a46dc2abb" 'a group says its key'
		is "$(grep -c '1.38x  █' "$D/out") $(tr '\n' ' ' <"$D/out" | grep -c '24.1 ms to 24.2 ms, 2025-05-27, 0.5.10, reported, *521a0b1ea67f')" '1 1' \
			'and of each run ratio, bar, spread, date, version, evidence and digits that name it'
		terminal $columns trend rms_norm
		is "$(grep -c '▁▁▁▁▁██ *915.4 µs' "$D/out")" 1 'a trend keeps its line and its last median'
		says '+14.3 % since aaaaaa6 (0.1.1)' 'and the change'
		is "$(grep -c 'hidden16384-rows2048-bf16\|hidden16384-.*…' "$D/out")" 2 'a name is whole or ends in an ellipsis'
	done
	is "$(grep '^seq' "$D/60")" 'seq = 2048 · batch = 4 · heads = 12 · hidden = 768 ·' 'lines break between words'
	is "$(grep -c "^    sha256:$A\$" "$D/80")" 1 'a digest that does not fit beside its name stands whole under it'
	terminal 0 show $A
	same "$D/whole" "$D/out" 'a terminal that does not know its width gets whole lines'
	is "$(cat "$D/60" "$D/80" "$D/132" | grep -c "$(printf '\033')")" 0 'no escape code is written'

	# --- without UTF-8
	export LC_ALL=C
	foreign=0
	for command in "show $A" "cohort $A" "compare $A $FIRST" "trend rms_norm" "trend rms_norm --provider liger --case hidden8192"; do
		terminal 80 "$command"
		foreign=$((foreign + $(grep -c '[^ -~]' "$D/out")))
		[ -s "$D/out" ] || foreign="$command: nothing"
	done
	is "$foreign" 0 'where the locale is not UTF-8 every byte is ASCII'
	has "$D/out" '915.4 us' 'a micro sign becomes a u'
	terminal 80 cohort $A
	is "$(grep -c '1.38x  ####' "$D/out")" 1 'bars are drawn with #'
	terminal 80 show $A
	is "$(grep -c 'p20 to p80  *|-*\*-*|  0.35 %' "$D/out")" 1 'and an interval with dashes'
	export LC_ALL=C.UTF-8
	terminal 80 cohort $A --ascii
	is "$(grep -c '[^ -~]' "$D/out")" 0 '--ascii asks for that in any locale'
else
	skip 'no line of any command is wider than its terminal' 'no script or no perl'
fi
plan
