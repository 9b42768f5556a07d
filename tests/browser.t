#!/bin/sh
# The site in a browser, from file://: what a reader sees, can reach, copy and find, on a desk and on a phone, by day and by night,
# on paper, and without the style sheet. tests/browser.js holds the checks that run inside a page.
cd "$(dirname "$0")/.." && . tests/tap.sh && . tests/webdriver.sh

if sanitized; then
	skip 'the site in a browser' 'the plain build writes the same pages'
	plan
fi
for program in chromium chromedriver curl; do
	if ! have $program; then
		skip 'the site in a browser' "$program is not installed"
		plan
	fi
done

# --- pages --------------------------------------------------------------------------------------------------------------------------
O=$D/site
A=521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107
BB=c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6
KI_NOW=2026-01-02T03:04:05Z
export KI_NOW
fixture_config
publish "$D/store" fixtures/csv/example/input.csv 2120862ba532c9449e72d603ba6324310ae756e7
publish "$D/store" fixtures/csv/day-1/input.csv 1111111111111111111111111111111111111111
publish "$D/store" fixtures/csv/day-2/input.csv 2222222222222222222222222222222222222222
publish "$D/store" fixtures/csv/memory/input.csv 3333333333333333333333333333333333333333
publish "$D/store" fixtures/csv/unknown-names/input.csv 4444444444444444444444444444444444444444
publish "$D/store" fixtures/csv/long-names/input.csv 5555555555555555555555555555555555555555
publish "$D/store" fixtures/site/hostile-text.csv 6666666666666666666666666666666666666666
publish "$D/store" fixtures/verify/rows.csv 7777777777777777777777777777777777777777
ki verify import fixtures/verify/evidence --store "$D/store" --config "$CONFIG"
rerun=$("$KI" list --store "$D/store" --provider kernelindex --format tsv --columns digest | head -1)
"$KI" flag --store "$D/store" "$rerun" --reason 'seen twice'
ki export --store "$D/store" --format site --out "$O" --config "$CONFIG" --json
is "$rc" 0 'a store of many kinds of run becomes a site'
browser_start
ok $? 'a browser starts'
[ "$failed" -eq 0 ] || plan

page() { # page HEX - the page of a run
	echo "$O/runs/$(echo "$1" | cut -c1-2)/$1.html"
}
all=$(find "$O" -name '*.html' | sort)
others=$(echo "$all" | grep -v /runs/)
few=$(page $A; page $BB; page "${rerun#sha256:}"; echo "$O/index.html"; echo "$O/coverage.html"; ls "$O"/operations/*.html; find "$O/cohorts" -name '*.html' | sort | head -3)
faults() { # faults FILE - in the page at hand, each with the file's name
	eval_page "$(cat tests/browser.js); return faults().map((fault) => '$(basename "$1"): ' + fault).join('\\n')" | grep .
}
faults_of() { # faults_of WIDTH light|dark FILE… - the first few
	width "$1"
	media screen "$2"
	shift 2
	for file in "$@"; do
		open_page "$file"
		faults "$file"
	done | head -5
}

# --- the checks themselves ------------------------------------------------------------------------------------------------------------
width 1280
open_page "$PWD/fixtures/site/faulty.html"
is "$(faults x | cut -d' ' -f2 | sort -u | tr '\n' ' ')" \
	'contrast headings id keyboard landmarks lang list name overflow reference table target title ' 'every check finds the fault that was planted for it'

# --- what is read -------------------------------------------------------------------------------------------------------------------
TEXT="return document.querySelector('main').innerText.replace(/\\s+/g, ' ')"
for run in A:$A B:$BB "a rerun:${rerun#sha256:}"; do
	open_page "$(page "${run##*:}")"
	eval_page "document.querySelectorAll('details.figures').forEach((figures) => { figures.open = true; })" >/dev/null
	eval_page "$TEXT" >"$D/text"
	# every leaf of what stands in the store about a run, but what only frames it
	jq -r '[.manifest, .publications, .reruns, .cites.workload, .cites.protocol, .cites.environment, .cites.implementation.spec.callable,
			.cites.implementation.spec.licensing, .labels, del(.manifest, .cites, .publications, .reruns, .labels, .type, .name, .title)]
		| walk(if type == "object" then del(.apiVersion, .kind, .primaryStatistic, .at, .id, .file) else . end)
		| [.. | scalars | select(type != "boolean" and . != null)] | unique[] | tostring | gsub("\\s+"; " ") | sub("e-0"; "e-")' \
		"$(page "${run##*:}" | sed 's/html$/json/')" >"$D/facts"
	missing=$(while IFS= read -r fact; do grep -qF -- "$fact" "$D/text" || echo "$fact"; done <"$D/facts")
	ok "$([ "$(lines "$D/facts")" -gt 30 ] && [ -z "$missing" ]; echo $?)" "record ${run%%:*}: each of its facts can be read on its page, the manifest folded"
	[ -z "$missing" ] || printf '%s\n' "$missing" | sed 's/^/#   missing: /' | head -20
done
open_page "$(page $A)"
styled=$(eval_page "$TEXT")
order=$(eval_page "return [...document.querySelectorAll('h1,h2')].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((h) => h.innerText).join('|')")
eval_page "document.querySelectorAll('link[rel=stylesheet]').forEach((link) => link.remove())" >/dev/null
is "$(eval_page "$TEXT")" "$styled" 'without its style sheet a page reads the same'
is "$order" "$(eval_page "return [...document.querySelectorAll('h1,h2')].map((h) => h.innerText).join('|')")" 'and in the same order'

# --- for everybody ------------------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
{
	is "$(faults_of 1280 light $others $few)" '' 'no page has a fault on a desk by day'
	is "$(faults_of 1280 dark $few)" '' 'nor by night'
	is "$(faults_of 390 light $others $few)" '' 'nor on a phone by day'
	is "$(faults_of 390 dark $few)" '' 'nor by night'
	is "$(faults_of 320 light $few)" '' 'nor on the smallest phone'
}
hostile=$(grep -rlF 'LLLLLLLLLLLLLLLLLLLLLLLL' "$O/runs" --include='*.html'; grep -rlF 'evil[U+202E]' "$O/runs" --include='*.html')
ok "$([ -n "$hostile" ]; echo $?)" 'labels of 300 characters and marks that reorder have pages'
# shellcheck disable=SC2086
is "$(faults_of 390 light $hostile)" '' 'and those have no fault either'

# --- light, dark, paper -------------------------------------------------------------------------------------------------------------
COLOURS="const of = (at, what) => getComputedStyle(document.querySelector(at))[what];
	return [of('body', 'backgroundColor'), of('body', 'color'), of('a:not(.skip)', 'color'), of('.curve', 'stroke')].join(' ')"
open_page "$(ls "$O"/operations/liger-rms-norm.html)"
media screen light
day=$(eval_page "$COLOURS")
media screen dark
night=$(eval_page "$COLOURS")
is "$(echo "$day $night" | sed 's/rgb/\nrgb/g' | grep -c .) $(echo "$day $night" | sed 's/, /,/g' | tr ' ' '\n' | sort -u | grep -c .)" '8 8' \
	'paper, ink, links and curves have other colours in dark mode'
media print dark
is "$(eval_page "$COLOURS")" "$day" 'what is printed is ink on white, also from a dark screen'
open_page "$(page $A)"
is "$(eval_page "return ['header', '.copy', '.skip'].filter((at) => document.querySelector(at).checkVisibility()).join()")" '' 'paper has neither menu nor buttons'
is "$(eval_page "return document.querySelector('details pre').checkVisibility({contentVisibilityAuto: true})")" true 'and the manifest unfolded'
media screen light

# --- links and keyboard -------------------------------------------------------------------------------------------------------------
STOP="const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
	return [at.className, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, box.left >= 0 && box.right <= innerWidth].join(' ')"
width 1280
open_page "$(page $A)"
press '\uE004'
is "$(eval_page "$STOP")" 'skip true true' 'the first stop of the keyboard skips to the content, and shows'
press '\uE007'
is "$(eval_page "return location.hash")" '#main' 'and does so'
stops=$(eval_page "return [...document.querySelectorAll('a[href],button,summary,[tabindex]')].filter((at) => at.checkVisibility()).length")
open_page "$(page $A)"
reached=0
unseen=0
while [ $reached -lt "$stops" ]; do
	press '\uE004'
	case $(eval_page "$STOP") in
	*' true true') ;;
	*) unseen=$((unseen + 1)) ;;
	esac
	reached=$((reached + 1))
done
is "$unseen $(eval_page "return [...document.querySelectorAll('a[href]')].pop() === document.activeElement")" '0 true' \
	'the keyboard reaches every link, button and table in order, to the last, each with a mark that shows'
open_page "$(page $A)"
eval_page "document.querySelector('a[href*=\"cohorts/\"]').click()" >/dev/null
is "$(eval_page "return document.querySelector('h1').innerText")" 'Fused neighborhood attention, backward: comparison group' 'a link leads where it says'

# --- copying ------------------------------------------------------------------------------------------------------------------------
cdp Browser.grantPermissions '{"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}' >/dev/null
open_page "$(page $A)"
buttons=$(eval_page "return document.querySelectorAll('button.copy').length")
wrong=0
for i in $(seq 0 $((buttons - 1))); do
	eval_page "window.button = document.querySelectorAll('button.copy')[$i]; button.focus()" >/dev/null
	press '\uE007'
	copied=$(eval_page 'return navigator.clipboard.readText()')
	[ "$copied" = "$(eval_page 'return button.previousElementSibling.innerText')" ] && echo "$copied" | grep -qE '^sha256:[0-9a-f]{64}$' || wrong=$((wrong + 1))
	[ "$i" -gt 0 ] || is "$copied" "sha256:$A" 'the first button of a record copies its digest'
done
ok "$([ "$buttons" -ge 7 ] && [ $wrong -eq 0 ]; echo $?)" 'each button copies the digest before it'
press '\uE007' 3
is "$(eval_page "return button.innerText + '; ' + document.querySelector('[role=status]').innerText")" "Copied; Copied $copied" 'it says so, to those who listen too'
is "$(eval_page "return new Promise((done) => setTimeout(() => done(button.innerText), 2000))")" Copy 'and then is a button as before'

# --- search -------------------------------------------------------------------------------------------------------------------------
type_in() { # type_in TEXT - into the search box, as keys; then what was found
	open_page "$O/index.html"
	eval_page "document.getElementById('q').focus()" >/dev/null
	for key in $(echo "$1" | sed 's/ /\\u0020/g; s/\\u0020\|./& /g'); do
		press "$key"
	done
	eval_page "return new Promise((done) => { const look = () => /[.]\$/.test(said.innerText) ? done(said.innerText + [...document.querySelectorAll('#found a')].map((a) => ' ' + a.innerText).join('')) : setTimeout(look, 20); look(); })"
}
is "$(type_in 'a100 rope hugg backward')" \
	'1 found. rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59' 'words of a name, typed, find a run'
press '\uE004'
press '\uE007'
is "$(eval_page "return new Promise((done) => { const look = () => document.getElementById('q') ? setTimeout(look, 20) : done(document.querySelector('h1').innerText); look(); })")" \
	'Rotary position embedding · Transformers' 'and the keyboard opens it'
is "$(type_in "$(echo $A | cut -c1-12)" | cut -d/ -f1)" '1 found. fused_neighborhood_attention' 'so do the first digits of a digest'
is "$(type_in 'no such thing')" 'Nothing found.' 'what is not there is not found'
open_page "$O/index.html?q=100%"
is "$(eval_page "return document.getElementById('q').value")" '100%' 'a question with a stray percent sign is asked as it stands'
is "$(eval_page "return performance.getEntries().map((entry) => entry.name).filter((name) => /^https?:/.test(name)).length")" 0 'nothing is fetched from a network'
browser_stop

plan
