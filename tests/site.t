#!/bin/sh
# The static site: every fact of a record on its page, nothing from upstream that acts, links that resolve, and a second export that
# writes nothing. Fixtures of our own; ../shared for records A and B among their neighbours.
# shellcheck disable=SC2119,SC2120
cd "$(dirname "$0")/.." && . tests/tap.sh && . tests/site.sh

# --- records A and B ----------------------------------------------------------------------------------------------------------------
S=$D/store
O=$D/site
A=sha256:521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107
BB=sha256:c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6
KI_NOW=2026-01-02T03:04:05Z
export KI_NOW
publish "$S" fixtures/csv/example/input.csv 2120862ba532c9449e72d603ba6324310ae756e7
site "$S" "$O"
is "$rc $(jq -c '[.pages == (.pages | floor), .unchanged, .written == .files]' "$D/out")" '0 [true,0,true]' 'a site is written, every file of it'
a=$(page_of "$O" $A)
facts A "$a" <<'EOF'
<h1>Fused neighborhood attention · PyTorch</h1>
seq = 2048 · batch = 4 · heads = 12 · hidden = 768 · dilation = 1 · kernel_size = 7 · fp32
sha256:521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107
<dt>Status</dt><dd>passed</dd>
<dt>Evidence level</dt><dd>reported</dd>
<a href="521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107.json">
24.1 ms <small>median latency, p20–p80 24.1 ms to 24.2 ms</small>
Rank 2 in its comparison group (2 of 2)
source-native comparison
Compare with #1
2025-05-27T15:10:05.000Z
ms 20 · ms 50 · ms 80: <code>24.077312469482422 · 24.104448318481445 · 24.161880493164062</code>
sha256:0c3e4e2a4849358a1d5183daed7f408a3422f6cc411cc6bd7d4ebeead8e57e00
PyTorch, <a href="https://github.com/pytorch/pytorch">
<dt>Revision</dt><dd>unknown</dd>
<dt>Licensing.declared</dt><dd>BSD-3-Clause</dd>
sha256:26ef57272cd81d16
<dt>Source</dt><dd>liger-kernel-bench</dd>
fused_neighborhood_attention/backward/torch/nvidia-geforce-rtx-3090/batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32/2025-05-27-15-10-05
Marked passed by the source; the correctness policy was not published.
<dt>Axis.kernel_size</dt><dd>7</dd>
<td>hidden_states</td><td>fp32</td><td><code>[4,2048,768]</code>
<td>latency</td><td>median</td><td class="n">24104448</td><td>ns</td>
<td>latency</td><td>p20</td><td class="n">24077312</td><td>ns</td>
<td>latency</td><td>p80</td><td class="n">24161880</td><td>ns</td>
Timed: the backward pass of the module output given a random upstream gradient
<dt>measurement.timer</dt><dd>cuda_events</dd>
<dt>hardware.architecture</dt><dd>sm_86</dd>
<dt>hardware.product</dt><dd>NVIDIA GeForce RTX 3090</dd>
No artifacts published with this run.
Not rerun.
Notes by people never change the evidence level.
2120862ba532c9449e72d603ba6324310ae756e7
<details><summary>
&quot;kind&quot;:&quot;BenchmarkRun&quot;
Cite this record
runs/52/521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107.html. Accessed
href="mailto:?subject=Record%20sha256%3A521a0b1ea67f&amp;body=
Published 2026-01-02T03:04:05.000Z. Source: <a href="https://github.com/linkedin/Liger-Kernel">Liger-Kernel benchmarks</a>, licence BSD-2-Clause, LinkedIn
All results for Fused neighborhood attention
EOF
facts B "$(page_of "$O" $BB)" <<'EOF'
· Transformers</h1>
<a href="https://github.com/huggingface/transformers">
sha256:c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6
621.5 µs <small>median latency, p20–p80 620.8 µs to 622.4 µs</small>
Rank 2 in its comparison group (2 of 2)
2024-09-03T15:39:59.000Z
ms 20 · ms 50 · ms 80: <code>0.6208000183105469 · 0.621504008769989 · 0.6223679780960083</code>
sha256:63b583a3afe1e4d7
rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59
<td class="n">621504</td><td>ns</td>
<dt>hardware.architecture</dt><dd>sm_80</dd>
<dt>liger_version</dt><dd>0.2.1</dd>
EOF
order=$(grep -o '<h2 id="[a-z]*"' "$a" | cut -d'"' -f2 | tr '\n' ' ')
is "$order" 'measurement identity correctness workload measurements protocol environment artifacts replications history manifest cite ' \
	'the sections of a run come in their order'
ki show --store "$S" --json $A
same "$D/out" "${a%.html}.json" 'the JSON beside a page is what ki show --json prints'
sed -n 's/.*<pre>\(.*\)<\/pre>.*/\1/p' "$a" | sed 's/&quot;/"/g; s/&lt;/</g; s/&gt;/>/g; s/&#39;/'"'"'/g; s/&amp;/\&/g' | jq -cj .run >"$D/a"
is "$("$B/bin/ki-normalize" --digest <"$D/a")" "$A" 'the canonical manifest on the page has the digest of the run'
key=$("$KI" list --store "$S" --format tsv --columns digest,comparison_key | awk -v d=$A '$1 == d { print $2 }')
cohort=$O/cohorts/$(echo "${key#sha256:}" | cut -c1-2)/${key#sha256:}.html
has "$cohort" '1.38×' 'a comparison group shows the ratio to the first'
is "$(grep -c '^<tr><td class="n">' "$cohort")" 2 'and every run of the group'

# --- plots --------------------------------------------------------------------------------------------------------------------------
op=$O/operations/liger-rms-norm.html
is "$(grep -c '<svg ' "$op") $(grep -c 'class="curve s[01]" stroke-dasharray="none" d="M[0-9.]* [0-9.]*L' "$op") $(grep -c 'class="floor" d="M[0-9.]* [0-9.]*L' "$op") $(grep -c 'class="band s[01]" d="M.*z"' "$op")" '2 2 1 4' \
	'an operation is drawn, latency and memory: a curve and a band for each of two providers, and the speed of light of the time'
is "$(grep -oE '<text [^>]*>(1024|2048|4096|8192)</text>' "$op" | wc -l | tr -d ' ')" 5 'its sizes stand under the axes, four and one'
is "$(grep -n -m1 '</svg>' "$op" | cut -d: -f1 | { read -r n; sed -n "$((n + 1)),$((n + 4))p" "$op"; } | grep -c '<table>')" 1 'its table follows'
has "$cohort" 'aria-label="Medians with the range from p20 to p80, best first"' 'a group is drawn too, with a name for those who do not see it'
is "$(grep -c 'stroke="#\|fill="#\|style=' "$op" "$cohort" | cut -d: -f2 | sort -u)" 0 'colours are those of the style sheet, which has them for light and dark'
if have xmllint; then
	sed -n '/<svg /,/<\/svg>/p; /<\/svg>/q' "$op" | xmllint --noout - 2>"$D/err"
	ok $? 'the drawing is well-formed'
else
	skip 'the drawing is well-formed' 'xmllint is not installed'
fi

# --- GPUs, providers, coverage --------------------------------------------------------------------------------------------------------
has "$O/gpus/nvidia-geforce-rtx-3090.html" '<dt>architecture</dt><dd>sm_86</dd>' 'a GPU has a page that says what it is'
has "$O/gpus/nvidia-geforce-rtx-3090.html" '<td>PyTorch</td><td>backward</td><td class="n">1</td><td class="n">1</td><td class="n">0</td>' 'and what was measured on it, of whom'
has "$O/providers/liger.html" '<td>NVIDIA GeForce RTX 3090</td><td>backward</td><td class="n">1</td><td class="n">1</td><td class="n">1</td>' 'a provider has one, with how often it is first'
has "$a" '<a href="../../gpus/nvidia-geforce-rtx-3090.html">NVIDIA GeForce RTX 3090</a>' 'a run leads to its GPU'
has "$a" '<a href="../../providers/torch.html">PyTorch</a>' 'and to its provider'
has "$O/coverage.html" "<td>committed</td><td>2120862ba532c9449e72d603ba6324310ae756e7</td><td>2026-01-02T03:04:05.000Z</td><td class=\"n\">$(($(lines fixtures/csv/example/input.csv) - 1))</td>" \
	'coverage counts the rows of a publication'
publish "$D/unknown" fixtures/csv/unknown-names/input.csv
site "$D/unknown" "$D/usite"
has "$D/usite/coverage.html" '<td>committed</td><td>unknown_gpu</td><td>' 'and names what was skipped'

# --- written once -------------------------------------------------------------------------------------------------------------------
stamps "$O" >"$D/before"
site "$S" "$O"
is "$rc $(jq -c '[.written, .unchanged == .files]' "$D/out")" '0 [0,true]' 'a second export writes nothing'
stamps "$O" >"$D/after"
same "$D/before" "$D/after" 'and every file keeps its time and size'
echo x >>"$a"
site "$S" "$O"
is "$(jq -c .written "$D/out") $(tail -c 8 "$a")" '1 </html>' 'a page that was altered is mended, alone'
publish "$S" fixtures/csv/day-1/input.csv 1111111111111111111111111111111111111111
site "$S" "$O"
(cd "$O" && find cohorts -type f -printf './%p %T@ %s\n' | sort) >"$D/after"
is "$rc $(grep '^[.]/cohorts' "$D/before" | sort | comm -23 - "$D/after")" '0 ' 'a new publication leaves the pages of other groups as they are'
is "$(find "$O" -name '*.tmp.*' | wc -l | tr -d ' ')" 0 'no temporary is left'

# --- reruns -------------------------------------------------------------------------------------------------------------------------
publish "$S" fixtures/verify/rows.csv 2222222222222222222222222222222222222222
ki verify import fixtures/verify/evidence --store "$S" --config "$CONFIG"
"$KI" list --store "$S" --kernel rms_norm --gpu nvidia-h200 --format tsv --columns digest,provider >"$D/a"
subject=$(awk '$2 != "kernelindex" { print $1 }' "$D/a")
rerun=$(awk '$2 == "kernelindex" { print $1 }' "$D/a")
"$KI" flag --store "$S" "$rerun" --reason 'seen <b>twice</b>'
site "$S" "$O"
is "$rc" 0 'a store with reruns becomes a site'
facts subject "$(page_of "$O" "$subject")" <<EOF
Verdict that stands: <strong>plausible</strong>
<dt>Class</dt><dd>device</dd>
<dt>Policy</dt><dd>verify-v1</dd>
<dt>Rerun</dt><dd><a href="../../runs/$(echo "${rerun#sha256:}" | cut -c1-2)/${rerun#sha256:}.html">
% of measured copy bandwidth
<dt>Evidence level</dt><dd>reported</dd>
EOF
facts rerun "$(page_of "$O" "$rerun")" <<'EOF'
<dt>Evidence level</dt><dd>verified</dd>
strict exact comparison
<dt>Rerun of</dt><dd>
<dt>Result.maximumAbsoluteError</dt><dd>
<dt>software.driver</dt><dd>580.159.04</dd>
<dt>Raw samples</dt><dd><code>sha256:
bytes, compressed with zstd
<li><strong>MANUAL</strong>: 
seen &lt;b&gt;twice&lt;/b&gt;
EOF

# --- hostile text -------------------------------------------------------------------------------------------------------------------
S=$D/hostile
publish "$S" fixtures/site/hostile-text.csv
is "$(runs "$S")" 4 'four rows with hostile labels are published'
site "$S" "$D/hsite"
is "$rc" 0 'and become pages'
is "$(grep -rlE '<script>|<b>' "$D/hsite" --include='*.html' | wc -l | tr -d ' ')" 0 'no text of theirs becomes markup'
is "$(LC_ALL=C.UTF-8 grep -rlP '[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]' "$D/hsite" --include='*.html' --include='*.js' | wc -l | tr -d ' ')" 0 \
	'no bidirectional mark or invisible character is left in a page or in what scripts read'
at() { # at X-VALUE - the page of a row
	page_of "$D/hsite" "$("$KI" list --store "$S" --format tsv --columns x_value,digest | awk -v x="$1" '$1 == x { print $2 }')"
}
has "$(at 1024)" '<dt>Swept label</dt><dd>&lt;script&gt;alert(1)&lt;/script&gt;</dd>' 'a script is text'
has "$(at 1024)" 'evil[U+202E]gnp.exe[U+2066] &quot;quoted&quot; &#39;single&#39; &amp; &lt;b&gt;[U+200B]' 'marks that reorder or hide are written out'
has "$(at 4096)" "$(printf '%300s' | tr ' ' L)" 'a label of 300 characters is there whole'
has "$O/assets/site.css" 'overflow-wrap:anywhere' 'and may wrap anywhere'

# --- all pages ----------------------------------------------------------------------------------------------------------------------
for out in "$O" "$D/hsite" "$D/usite"; do
	whole "$out"
done
if have node; then
	node --check "$O/assets/site.js" 2>"$D/err"
	ok $? 'the script parses'
else
	skip 'the script parses' 'node is not installed'
fi

# --- search -------------------------------------------------------------------------------------------------------------------------
js() { # js FILE - what a shard hands over, as JSON
	sed 's/^kiShard("[^"]*",//; s/);$//' "$1"
}
is "$(js "$O/data/d52.js" | jq -c 'map(select(.[0] | startswith("521a0b1e")))[0][0]')" "\"${A#sha256:}\"" 'a digest is found in the shard of its first two digits'
is "$(for f in "$O"/data/n-*.js; do js "$f" | jq '[.[][1][]] | length'; done | awk '{ n += $1 } END { print n }')" "$(runs "$D/store")" 'every run has its name in a shard'
is "$(js "$O/data/names.js" | jq -r '.shards[][0]' | while read -r n; do [ -e "$O/data/$n.js" ] || echo "$n"; done)" '' 'every shard that is named is there'

if have chromium; then
	dom() { # dom QUERY - the index page after its search
		chromium --headless --no-sandbox --disable-gpu --user-data-dir="$D/chromium" --virtual-time-budget=5000 --dump-dom "file://$O/index.html?q=$1" 2>"$D/err" >"$D/dom"
	}
	dom 'rope+backward+huggingface'
	has "$D/dom" 'rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59</a></li>' \
		'a browser finds a run by words of its name, from file://'
	dom "${A#sha256:}"
	has "$D/dom" "runs/52/${A#sha256:}.html\">fused_neighborhood_attention/" 'and by its digest'
	dom 'geforce'
	has "$D/dom" 'gpus/nvidia-geforce-rtx-3090.html">' 'and a GPU by its name'
else
	skip 'a browser finds a run by words of its name, from file://' 'chromium is not installed'
fi

# --- configuration and usage --------------------------------------------------------------------------------------------------------
jq '.base = "https://example.org/ki" | .report = "https://example.org/new?title={subject}&text={body}"' config/site.json >"$CONFIG/site.json"
site "$D/hostile" "$D/hsite"
has "$(at 1024)" 'https://example.org/ki/runs/' 'a citation names the site where it stands'
has "$(at 1024)" 'href="https://example.org/new?title=Record%20sha256%3A' 'a report goes where the configuration says'
jq '.colour = "red"' config/site.json >"$CONFIG/site.json"
site "$D/hostile" "$D/hsite"
is "$rc" 78 'an unknown name in site.json is an error'
ki export --store "$D/hostile" --format site --out "$D/x" --kernel rms_norm
is "$rc $([ -e "$D/x" ] && echo there)" '64 ' 'a filter is refused, for the site is the whole catalog'
site "$D/nowhere" "$D/x"
is "$rc" 66 'no store is not found'

plan
