#!/bin/sh
# The trend pages of the site: planted steps are drawn and told, one point makes no trend, texts of upstream stay texts, and a publication
# that adds no point to a benchmark leaves its page alone.
# shellcheck disable=SC2153
cd "$(dirname "$0")/.." && . tests/tap.sh && . tests/site.sh

S=$D/store
O=$D/site
for n in 1 2 3 4 5 6; do
	publish_drop "$S" $n 0.1.$((n / 6))
done
site "$S" "$O"
publish_drop "$S" 7 0.1.1
site "$S" "$O"
trend() { # trend STORE OUT PROVIDER X-VALUE - its page
	"$KI" trend --store "$1" --provider "$3" --json | jq -r --arg x "$4" 'select(.xValue == $x) | .case' | sed 's|^sha256:\(..\)\(.*\)|'"$2"'/trends/\1/\1\2.html|'
}
page=$(trend "$S" "$O" liger 8192)
ok "$([ -s "$page" ]; echo $?)" 'a benchmark that was published seven times has a page'


# --- facts --------------------------------------------------------------------------------------------------------------------------
facts 'the trend' "$page" <<'END'
<h1>RMSNorm · Liger: trend</h1>
<a href="../../operations/liger-rms-norm.html">RMSNorm</a> · forward · <a href="../../gpus/nvidia-h100-80gb-hbm3.html">
rows = 2048 · hidden = 8192 · bf16
<h2 id="channel-0">Channel gh-pages</h2>
1 change point in 7 points, by policy trend-v1.
Caveats of every point: params-fp32,reference-out-fp32
<tr><td>aaaaaa1</td><td>0.1.0</td><td>2025-01-01 00:00</td><td class="n">795.2 µs</td><td class="n">793.6 µs to 796.8 µs</td><td class="n"></td><td><a href="../../runs/
<td>REGRESSION, LAUNCH_SUSPECT</td>
>Transformers</a></li>
END
is "$(grep -c '^<tr><td>aaaaaa[1-7]</td>' "$page")" 7 'every publication has its line'
is "$(grep -A1 '^<tr class="step">' "$page" | sed 's/;.*//; s/<td>0[.]1.*//; s/<[^>]*>//g' | xargs)" '+14.3 % since aaaaaa6 (0.1.1), slower aaaaaa6' \
	'the change stands between the fifth and the sixth'
is "$(grep -c '^<tr class="step">' "$(trend "$S" "$O" huggingface 8192)")" 0 'a benchmark that did not step says nothing of the kind'
has "$(trend "$S" "$O" huggingface 8192)" '<a href="../../trends/'"${page#"$O"/trends/}"'">Liger</a>, +14.3 % since aaaaaa6 (0.1.1)</li>' \
	'but names the other provider that did'

# --- the drawing --------------------------------------------------------------------------------------------------------------------
sed -n '/<svg /,/<\/svg>/p' "$page" >"$D/svg"
is "$(grep -o '<path class="curve s0"[^>]* d="M[^"]*L[^"]*"' "$D/svg" | tr -cd L | wc -c) $(grep -c '<path class="band s0" d="M[^"]*z"' "$D/svg")" '6 1' \
	'seven points are joined, over a band from p20 to p80'
is "$(grep -o '<path class="version" d="M[0-9.]* [0-9]*V' "$D/svg" | wc -l) $(grep -oE '>0[.]1[.][01]<' "$D/svg" | tr -d '<>' | xargs)" '1 0.1.0 0.1.1' \
	'a line marks where the version changes, and both are named'
is "$(grep -c '<path class="curve s1" d="M[^"]*H[^"]*M[^"]*H[^"]*M[^"]*V' "$D/svg") $(grep -o '>+14.3 %<' "$D/svg")" '1 >+14.3 %<' \
	'the step is a line with its size, and levels before and after'
is "$(grep -oE '>aaaaaa[1-7]<' "$D/svg" | wc -l) $(grep -oE '>2025-0[17]-0[17]<' "$D/svg" | xargs)" '7 >2025-01-01< >2025-07-07<' 'publications and dates are on the axis'
is "$(grep -c 'stroke="#\|fill="#\|style=' "$D/svg")" 0 'colours are those of the style sheet'
has "$D/svg" 'role="img" aria-label="Median latency from publication to publication of gh-pages"' 'and it has a name for those who do not see it'
if have xmllint; then
	xmllint --noout "$D/svg" 2>"$D/err"
	ok $? 'it is well-formed'
else
	skip 'it is well-formed' 'xmllint is not installed'
fi

# --- the ways there -----------------------------------------------------------------------------------------------------------------
"$KI" list --store "$S" --provider liger --format tsv --columns x_value,digest >"$D/list"
run=$(page_of "$O" "$(awk '$1 == 8192 { print $2; exit }' "$D/list")")
has "$run" "<a href=\"../../trends/${page#"$O"/trends/}\">" 'a run leads to the trend of its benchmark'
has "$O/operations/liger-rms-norm.html" "<a href=\"../trends/${page#"$O"/trends/}\">Liger</a>, +14.3 % since aaaaaa6 (0.1.1)" 'an operation does, and says where it stepped'
is "$(grep -c '^<tr><td>2025-06-06</td><td><a href="../trends/' "$O/trends/index.html")" 3 'the list of trends has the three changes'
has "$O/trends/index.html" '12 benchmarks were published twice or more' 'and says how many there are'
has "$O/index.html" '<a href="trends/index.html">' 'the index leads to it'

# --- one point, and more than one channel ---------------------------------------------------------------------------------------------
publish "$D/once" fixtures/csv/example/input.csv
site "$D/once" "$D/osite"
is "$rc $(find "$D/osite/trends" -name '*.html' -printf '%P\n')" '0 index.html' 'one point is no trend: there is only the list'
is "$(grep -rl 'trends/[0-9a-f][0-9a-f]/' "$D/osite" --include='*.html' | wc -l | tr -d ' ')" 0 'and nothing leads to another'
drop 8 0.1.2 >"$D/committed.csv"
publish "$S" "$D/committed.csv"
site "$S" "$O"
is "$(grep -c '<svg ' "$page") $(grep -o '<h2 id="channel-[0-9]*">Channel [a-z-]*' "$page" | sed 's/.*Channel //' | xargs)" '1 gh-pages committed' \
	'each channel has its section, and one point no drawing'
has "$page" '1 point: change points are looked for from 6 on.' 'which says why'

# --- written once -------------------------------------------------------------------------------------------------------------------
written_once "$S" "$O"
publish "$S" fixtures/site/hostile-text.csv
site "$S" "$O"
(cd "$O" && find trends -type f -name '??*' -printf './%p %T@ %s\n' | sort) >"$D/after"
is "$(grep '^[.]/trends/../' "$D/before" | sort | comm -23 - "$D/after" | wc -l | tr -d ' ')" 0 'a publication of other benchmarks leaves the trends as they are'

# --- hostile text -------------------------------------------------------------------------------------------------------------------
publish "$D/hostile" fixtures/site/hostile-text.csv
sed 's/2025-01-0/2026-01-0/' fixtures/site/hostile-text.csv >"$D/again.csv"
publish "$D/hostile" "$D/again.csv"
site "$D/hostile" "$D/hsite"
page=$(trend "$D/hostile" "$D/hsite" liger 1024)
is "$rc $(grep -c '^<tr><td>' "$page")" '0 2' 'two publications of rows with hostile labels make trends'
has "$page" '<td>evil[U+202E]gnp.exe[U+2066] \&quot;quoted\&quot; &#39;single&#39; &amp; &lt;b&gt;[U+200B]</td>' 'a version is text in the table'
is "$(grep -rlE '<script>|<b>' "$D/hsite/trends" | wc -l | tr -d ' ')" 0 'nothing of theirs becomes markup'
is "$(LC_ALL=C.UTF-8 grep -rlP '[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]' "$D/hsite/trends" | wc -l | tr -d ' ')" 0 'and no invisible character is left'

for out in "$O" "$D/osite" "$D/hsite"; do
	whole "$out"
done
plan
