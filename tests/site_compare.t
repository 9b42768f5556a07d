#!/bin/sh
# The compare page of the site: what its script reads is what the store says, links lead there with the right runs, texts of upstream stay
# texts; and in a browser, where there is one, it says what ki compare says.
# shellcheck disable=SC2153,SC2154
cd "$(dirname "$0")/.." && . tests/tap.sh && . tests/site.sh

S=$D/store
O=$D/site
publish "$S" fixtures/csv/example/input.csv 2120862ba532c9449e72d603ba6324310ae756e7
publish "$S" fixtures/verify/rows.csv 2222222222222222222222222222222222222222
ki verify import fixtures/verify/evidence --store "$S" --config "$CONFIG"
site "$S" "$O"
is "$rc" 0 'a site is written'
digests() { # digests OPTION… - of the runs that pass a filter, best first, bare
	"$KI" list --store "$S" --metric all --sort rank --format tsv --columns digest "$@" | sed 's/^sha256://'
}

# --- the ways there -----------------------------------------------------------------------------------------------------------------
first=$(digests --kernel fused_neighborhood_attention --mode backward | sed -n 1p)
second=$(digests --kernel fused_neighborhood_attention --mode backward | sed -n 2p)
other=$(digests --kernel rope --mode backward | sed -n 1p)
has "$(page_of "$O" "$second")" "<a href=\"../../compare.html#$first,$second\">Compare with #1</a>" 'a run leads to itself beside the first of its group'
has "$(page_of "$O" "$first")" "<a href=\"../../compare.html#$first\">Compare with other runs</a>" 'the first leads to the page with itself on it'
is "$(grep -rhoE '<a href="../../compare.html#[0-9a-f,]{129}">Compare all 2 side by side</a>' "$O/cohorts" | grep -c "#$first,$second")" 1 'a group leads to its runs side by side'
has "$O/compare.html" '<noscript><p class="box">Putting runs of your choice side by side needs a script.' 'without a script the page says where the same is to be read'
grep -rhoE 'compare.html#[0-9a-f,]+' "$O" --include='*.html' | sed 's/.*#//' | tr , '\n' | sort -u >"$D/named"
digests | sort >"$D/all"
is "$(comm -23 "$D/named" "$D/all" | wc -l | tr -d ' ')" 0 'every run that a link names is one of the site'

# --- the data -----------------------------------------------------------------------------------------------------------------------
js() { # js NAME - a file of data/ as JSON
	sed 's/^kiShard("[^"]*",//; s/);$//' "$O/data/$1.js"
}
js compare >"$D/rules"
is "$(jq -c '[.max, .material]' "$D/rules")" '[8,["metric","operation","workload","mode","protocol","gpu","environment","status"]]' \
	'the rules are those of ki compare: eight runs, and what must be equal'
"$KI" list --store "$S" --metric all --format jsonl | jq -cS '{digest, comparisonKey, ligerVersion, rank, median, medianBytes, provider, workload, protocol, environment}' | sort >"$D/want"
shard=$(jq .shard "$D/rules")
for f in "$O"/data/k*.js; do js "$(basename "$f" .js)" | jq -c '.[]'; done | jq -s . >"$D/cases"
for f in "$O"/data/o*.js; do js "$(basename "$f" .js)" | jq -c '.[]'; done | jq -s . >"$D/objects"
for f in "$O"/data/d??.js; do js "$(basename "$f" .js)" | jq -c '.[]'; done |
	jq -cS --slurpfile rules "$D/rules" --slurpfile cases "$D/cases" --slurpfile objects "$D/objects" '
		def named($fields; $texts): [$fields, $texts] | transpose | map({key: .[0][0], value: .[1]}) | from_entries;
		$rules[0] as $r | . as $row | $cases[0][.[2]] as $of | named($r.run; .[3]) as $run | named($r.case; $of[0]) as $case |
		named($r.objects; $of[1] | map($objects[0][.][0])) as $cites |
		{digest: "sha256:\(.[0])", comparisonKey: $case.comparison_key, ligerVersion: (if $run.liger_version == "" then null else $run.liger_version end),
		 rank: (if $run.rank == "" then null else $run.rank | tonumber end), provider: $case.provider, workload: $cites.workload, protocol: $cites.protocol,
		 environment: $cites.environment, median: (if $case.metric == "latency" then $row[4][0] else null end),
		 medianBytes: (if $case.metric == "latency" then null else $row[4][0] end)}' | sort >"$D/found"
is "$(lines "$D/found") $shard" "$(runs "$S") 64" 'every run of the store is there, in files of 64 cases and objects'
same "$D/want" "$D/found" 'with the rank, median, version, comparison key and objects that the store says'
is "$(jq -r --arg d "$(jq -r 'select(.provider == "kernelindex") | .environment' "$D/found" | head -1)" '.[] | select(.[0] == $d)[1][] | select(.[0] == "software.driver")[1]' "$D/objects")" \
	580.159.04 'objects have their leaves, one by one'

# --- written once -------------------------------------------------------------------------------------------------------------------
written_once "$S" "$O"

# --- in a browser ---------------------------------------------------------------------------------------------------------------------
publish "$D/hostile" fixtures/site/hostile-text.csv
site "$D/hostile" "$D/hsite"
is "$(LC_ALL=C.UTF-8 grep -rlP '[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]' "$D/hsite/data" | wc -l | tr -d ' ')" 0 'no invisible character is left in the data'
compared() { # compared OUT RUNS [PAGE] - the page once its script has run, one element a line, in $D/dom
	chromium --headless --no-sandbox --disable-gpu --user-data-dir="$D/chromium" --virtual-time-budget=5000 --dump-dom "file://$1/${3:-compare.html}#$2" 2>"$D/err" |
		sed 's/<\(li\|tr\|p\|h[123]\)/\n&/g' >"$D/dom"
}
rows() { # rows NAME - the cells of a row, joined by |
	grep -F "scope=\"row\">$1<" "$D/dom" | sed 's/<\/td>.*<td[^>]*>/|/; s/<th[^>]*>[^<]*<\/th>//; s/<[^>]*>//g'
}
if have chromium; then
	compared "$O" "$first,$second"
	claim=$("$KI" compare --store "$S" "$first" "$second" | sed -n 's/x \((.*%)\); \(.*\)/× \1; \2/; s/.*\[2\] against \[1\]: //p')
	has "$D/dom" 'These runs may be compared: they share one comparison key.' 'two runs of one group may be compared'
	has "$D/dom" "<li>#2 torch against #1 liger: $claim.</li>" 'with the ratio and the claim of ki compare'
	is "$(rows '≠ Median')" '17.5 ms, 17520000 ns|24.1 ms, 24104448 ns' 'medians stand side by side, marked'
	is "$(grep -c 'class="same"><th scope="row">Protocol<' "$D/dom") $(grep -c 'scope="row">≠ Provider<' "$D/dom")" '1 1' 'what differs is marked and what does not is not'
	compared "$O" "$first,$other"
	has "$D/dom" 'may not be compared: operation, workload' 'runs of different work may not be compared, and the page says why'
	is "$(grep -c '×' "$D/dom") $("$KI" compare --store "$S" "$first" "$other" | grep -c 'not comparable: operation differs')" '1 1' 'there is no ratio then, but for the 1× of the first'
	is "$(grep -c 'scope="row">≠ Environment: hardware.product<' "$D/dom")" 1 'environments that differ are taken apart'
	flagged=$("$KI" flags --store "$S" --json | jq -r 'select(.code != "MANUAL") | .run' | head -1)
	compared "$O" "${flagged#sha256:}"
	has "$D/dom" "<th scope=\"row\">Flags</th><td>$("$KI" flags --store "$S" --json | jq -r --arg run "$flagged" 'select(.run == $run) | .code' | paste -sd, | sed 's/,/, /g')<" 'flags stand beside the number'
	{ header && row 1024 0.02 '2025-01-01 00:00:00' && row 1024 0.03 '2025-02-01 00:00:00'; } >"$D/days.csv"
	publish "$D/days" "$D/days.csv"
	"$KI" list --store "$D/days" --format tsv --columns unranked,digest | awk '$1 == "SUPERSEDED" { print substr($2, 8); exit }' >"$D/gone"
	site "$D/days" "$D/days-site"
	compared "$D/days-site" "$(cat "$D/gone")"
	has "$D/dom" 'has no rank: SUPERSEDED.' 'a run that lost its rank is not passed off as current'
	compared "$O" "sha256:$first,$(echo "$second" | cut -c1-8),nonsense,00000000,$first"
	is "$(grep -c '<th scope="col"><a href="runs/' "$D/dom")" 2 'a prefix will do, and a run that is named twice stands once'
	has "$D/dom" 'Not a run digest, nor 8 or more digits of one: nonsense.' 'what is no digest is named'
	has "$D/dom" 'No run here has the digest 00000000.' 'and a run that is not there'
	compared "$O" "$(head -9 "$D/all" | paste -sd,)"
	is "$(grep -c '<th scope="col"><a href="runs/' "$D/dom") $(grep -c 'Only the first 8 runs are shown' "$D/dom")" '8 1' 'eight are the most'
	compared "$O" ''
	has "$D/dom" 'No run is named in the address; add some below.' 'without a run the page says how to add one'
	sed 's|</body>|<script>var tries = setInterval(function () { var a = document.querySelector("#found a"); if (a) { clearInterval(tries); a.click(); } }, 50);</script>&|' \
		"$O/compare.html" >"$O/picking.html"
	compared "$O" "$first" "picking.html?q=$second"
	rm "$O/picking.html"
	is "$(grep -c '<th scope="col"><a href="runs/' "$D/dom") $(grep -c "<li>#2 torch against #1 liger: $claim.</li>" "$D/dom")" '2 1' 'a run that is picked from the search is added'
	compared "$D/hsite" "$("$KI" list --store "$D/hostile" --format tsv --columns digest | sed 's/^sha256://' | paste -sd,)"
	is "$(grep -c '<th scope="col"><a href="runs/' "$D/dom") $(grep -c '<b>\|alert(1)<' "$D/dom")" '4 0' 'hostile labels become no markup'
	has "$D/dom" 'evil[U+202E]gnp.exe[U+2066] "quoted"' 'they are shown as text'
else
	skip 'two runs of one group may be compared' 'chromium is not installed'
fi
if have node; then
	node --check "$O/assets/compare.js" 2>"$D/err"
	ok $? 'the script parses'
else
	skip 'the script parses' 'node is not installed'
fi
is "$(grep -c 'innerHTML\|insertAdjacent\|document.write\|eval(' "$O/assets/compare.js" "$O/assets/site.js" | cut -d: -f2 | sort -u)" 0 'no script makes markup of data'

for out in "$O" "$D/hsite"; do
	whole "$out"
done
plan
