#!/bin/bash
# What an operator gets: an installation that works from where it was put, man pages and completions that name what there is, metrics,
# messages, schemas, and ki doctor.
# shellcheck source-path=SCRIPTDIR
. tests/tap.sh
COMMIT=2120862ba532c9449e72d603ba6324310ae756e7
EXAMPLE=fixtures/csv/example/input.csv
ROOT=$D/root
options_of() { # options that --help of the words lists
	"$@" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort -u
}
verbs_of() {
	"$1" --help | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p'
}

installed() { # installed DESTDIR PREFIX - whatever a make that runs this test was told of its own installation
	env -u UNITDIR -u SYSCONFDIR -u MAKEFLAGS make -s -o all B="$B" NVCC= DESTDIR="$1" PREFIX="$2" install >"$D/out" 2>"$D/err"
}

# --- installation ------------------------------------------------------------------------------------------------------------------
installed "$ROOT" /opt/ki
ok $? 'make install puts everything under DESTDIR'
P=$ROOT/opt/ki
KI=$P/bin/ki
publish "$D/s" "$EXAMPLE" "$COMMIT"
is "$rc $(runs "$D/s")" '0 22' 'the installed programs run a night, with the installed config'
[ -x "$P/bin/ki-verify" ] && [ -e "$P/etc/kernelindex/gates.json" ] && [ -e "$P/lib/systemd/system/kernelindex.timer" ]
ok $? 'programs, config and units are there'
grep -q "^ExecStart=/opt/ki/bin/ki nightly" "$P/lib/systemd/system/kernelindex.service"
ok $? 'the service starts the programs of its prefix'
sed -i 's/"version":/"version" :/' "$P/etc/kernelindex/signers.json"
cp "$P/etc/kernelindex/signers.json" "$D/mine"
installed "$ROOT" /opt/ki
if cmp -s config/signers.json "$D/mine"; then
	ok 1 'the config of this test differs from the one that comes with the source'
else
	same "$D/mine" "$P/etc/kernelindex/signers.json" 'an operator'\''s config is kept on installing again'
fi
same config/signers.json "$P/etc/kernelindex/signers.json.new" 'and the new one lies beside it'
installed "$D/usr" /usr
"$D/usr/usr/bin/ki" config check >"$D/out" 2>"$D/err"
is "$? $(ls "$D/usr/etc/kernelindex" | wc -l)" "0 $(ls config/*.json | wc -l)" 'under /usr the config is in /etc'

# --- help, man pages, completions --------------------------------------------------------------------------------------------------
verbs=$(verbs_of "$KI")
[ "$(echo "$verbs" | wc -w)" -gt 20 ]
ok $? 'ki --help lists its verbs'
bad=
for verb in $verbs; do
	page=$P/share/man/man1/ki-$verb.1
	[ "$verb" != config ] || page=$P/share/man/man1/ki-normalize.1
	found=$(sed -n 's/^\.It Fl \(-[a-z-]*\).*/-\1/p' "$page" 2>/dev/null | sort -u)
	for option in $(options_of "$KI" "$verb"); do
		echo "$found" | grep -qxF -- "$option" || bad="$bad ki-$verb:$option"
	done
	[ "$verb" = verify ] || [ "$found" = "$(options_of "$KI" "$verb")" ] || bad="$bad ki-$verb"
done
is "$bad" '' 'the man page of every verb has the options of its --help, and no others'
bad=
for verb in $(verbs_of "$P/bin/ki-store"); do
	"$P/bin/ki-store" "$verb" --help >/dev/null 2>"$D/err" || bad="$bad $verb"
	taken=$(sed -n "s/^\t{\"$verb\", \"[^\"]*\", \"[^\"]*\", \(FILTERS\)\{0,1\}[ ]*\"\([^\"]*\)\".*/\2/p" store/main.c)
	for option in $taken; do
		options_of "$P/bin/ki-store" "$verb" | grep -qxF -- "--$option" || bad="$bad $verb:$option"
	done
done
is "$bad" '' 'every option that a verb of ki-store takes is described'
if have mandoc; then
	mandoc -Tlint -Wwarning "$P"/share/man/man[15]/*.[15] 2>&1 | grep -v 'ki-config.1' >"$D/err"
	is "$(lines "$D/err")" 0 'mandoc finds nothing wrong with the pages'
else
	skip 'mandoc finds nothing wrong with the pages' 'no mandoc here'
fi
# shellcheck disable=SC1091
. "$P/share/bash-completion/completions/ki"
complete_words() { # what bash would offer after the words, the last of them begun
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_ki
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}
is "$(complete_words "$KI" '')" "$(echo "$verbs" | sort -u)" 'bash completes every verb'
bad=
for verb in $verbs; do
	[ "$(complete_words "$KI" "$verb" --)" = "$(options_of "$KI" "$verb")" ] || bad="$bad $verb"
done
for program in ki-ingest ki-normalize ki-verify; do
	[ "$(complete_words "$P/bin/$program" --)" = "$(options_of "$P/bin/$program")" ] || bad="$bad $program"
done
[ "$(complete_words "$KI" verify plan --)" = "$(options_of "$KI" verify plan)" ] || bad="$bad verify-plan"
is "$bad" '' 'bash completes every option of every verb'
is "$(complete_words "$KI" verify '' | tr '\n' ' ')" 'campaign cosign gpu-info import keygen plan replay run ' 'bash completes the words after ki verify'
is "$(complete_words "$KI" list --format js | tr '\n' ' ')" 'json jsonl ' 'bash completes the choices of an option'
for shell in zsh fish; do
	file=$P/share/zsh/vendor-completions/_ki
	[ $shell = zsh ] || file=$P/share/fish/vendor_completions.d/ki.fish
	if have $shell; then
		$shell -n "$file" 2>"$D/err"
		ok $? "$shell reads its completions"
	else
		skip "$shell reads its completions" "no $shell here"
	fi
done
if have fish; then
	offered=$(PATH=$P/bin:$PATH fish -c "source $P/share/fish/vendor_completions.d/ki.fish; complete -C 'ki list --'" | sed 's/\t.*//' | sort -u)
	is "$offered" "$(options_of "$KI" list)" 'fish completes every option of a verb'
else
	skip 'fish completes every option of a verb' 'no fish here'
fi

# --- messages ----------------------------------------------------------------------------------------------------------------------
ki list --store "$D/none" --log-format json
is "$(jq -c '[.code, .file, .level, .program]' "$D/err")" "[66,\"$D/none\",\"error\",\"ki-store\"]" 'an error is one JSON object'
KI_LOG_FORMAT=json "$P/bin/ki-normalize" fixtures/csv/times-impossible/input.csv >/dev/null 2>"$D/log"
is "$(jq -r .level "$D/log" | sort -u)" info 'messages are JSON lines, by environment too'
ki nightly --store "$D/s" --snapshot "$EXAMPLE" --log-format json
is "$(jq -r .program "$D/err")" 'ki nightly' 'a usage error is a JSON line'
ki list --store "$D/s" --log-format yaml
is "$rc" 64 'a format that there is not is refused'
: >"$D/journal"
exec 3>"$D/journal"
JOURNAL_STREAM=$(stat -c %d:%i "$D/journal") "$KI" list --store "$D/none" 2>&3
is "$(head -c 13 "$D/journal")" '<3>ki-store: ' 'under journald a line begins with its priority'
JOURNAL_STREAM=1:1 "$KI" list --store "$D/none" 2>"$D/err"
is "$(head -c 9 "$D/err")" 'ki-store:' 'and not where stderr goes elsewhere'
printf 'kernel\n\377\376' >"$D/bad.csv"
"$P/bin/ki-normalize" --log-format json "$D/bad.csv" "$D/$(printf 'no\377name.csv')" >/dev/null 2>"$D/err"
jq -e . "$D/err" >/dev/null
ok $? 'bytes that are not UTF-8 leave the line JSON'

# --- metrics -----------------------------------------------------------------------------------------------------------------------
ki nightly --quiet --store "$D/m" --snapshot "$EXAMPLE" --commit "$COMMIT" --metrics "$D/m.prom"
is "$rc $(tail -n 1 "$D/m.prom")" '0 # EOF' 'a night writes metrics, which end with # EOF'
grammar() { # OpenMetrics, gauges alone: TYPE, HELP, then samples of that family; every family once; values are numbers
	awk '
	/^# TYPE / { if (NF != 4 || $4 != "gauge" || ($3 in seen)) exit bad = NR; family = $3; seen[family]; help = 0; next }
	/^# HELP / { if ($3 != family || help++ || NF < 4) exit bad = NR; next }
	/^# EOF$/ { eof = NR; next }
	eof || !family { exit bad = NR }
	!/^[a-z_]+(\{[a-z]+="([^"\\]|\\["\\n])*"\})? -?[0-9.]+(e[+-]?[0-9]+)?$/ { exit bad = NR }
	{ name = $0; sub(/[{ ].*/, "", name); key = $0; sub(/ [^ ]*$/, "", key); if (name != family || (key in sample)) exit bad = NR; sample[key] }
	END { exit bad || eof != NR }' "$1"
}
grammar "$D/m.prom"
ok $? 'metrics are OpenMetrics'
sed '$d' "$D/m.prom" >"$D/cut"
grammar "$D/cut" && false || ! grammar <(sed 's/ gauge/ info/' "$D/m.prom")
ok $? 'and the grammar of this test tells'
for line in 'rows{outcome="bound"} 22' 'rows{outcome="rejected"} 0' 'nightly_exit_code 0' 'records{kind="runs"} 22' 'flags{code="SINGLE_SAMPLE"} 6'; do
	has "$D/m.prom" "kernelindex_$line" "metrics: $line"
done
for name in store_bytes nightly_duration_seconds nightly_last_success_timestamp_seconds channel_published_timestamp_seconds nightly_step_duration_seconds; do
	grep -q "^kernelindex_$name[{ ]" "$D/m.prom"
	ok $? "metrics: there is $name"
done
success=$(grep '^kernelindex_nightly_last_success' "$D/m.prom")
printf 'not a table\n' >"$D/bad.csv"
ki nightly --quiet --store "$D/m" --snapshot "$D/bad.csv" --commit "$COMMIT" --metrics "$D/m.prom"
is "$rc $(sed -n 's/^kernelindex_nightly_exit_code //p' "$D/m.prom")" '65 65' 'a night that fails says so in its metrics'
has "$D/m.prom" "$success" 'and keeps the time of the last success'
flock "$D/m/nightly.lock" "$KI" nightly --store "$D/m" --snapshot "$EXAMPLE" --commit "$COMMIT" --metrics "$D/other.prom" >"$D/out" 2>"$D/err"
is "$? $(ls "$D/other.prom" 2>/dev/null)" '75 ' 'a night that finds another one running leaves the metrics to it'
ki nightly --quiet --store "$D/m" --snapshot "$EXAMPLE" --commit "$COMMIT" --metrics "$D/none/m.prom"
is "$rc" 0 'metrics that cannot be written do not fail the night'
has "$D/err" "$D/none/m.prom" 'but are said'
printf '{' >"$D/m/report.json"
ki nightly --quiet --store "$D/m" --snapshot "$EXAMPLE" --commit "$COMMIT" --metrics "$D/m.prom"
is "$rc $(grep -c 'm/report.json:1' "$D/err") $(jq .exitCode "$D/m/report.json")" '0 1 0' 'a report of the night before that cannot be read is said, and replaced'

# --- what commands that were killed leave --------------------------------------------------------------------------------------------
held_while() { # held_while FILE COMMAND… - the command, while somebody who lives writes FILE
	flock "$@" >"$D/out" 2>"$D/err"
	rc=$?
}
mkdir "$D/dumps"
touch "$D/m.prom.tmp.999999" "$D/dumps/catalog.jsonl.zst.tmp.999999" "$D/dumps/latest.json.tmp.999999" "$D/dumps/mine.tmp.999999"
touch "$D/m/published.tsv.tmp.999999" "$D/m/report.json.tmp.999999"
held_while "$D/m.prom.tmp.888888" "$KI" nightly --quiet --store "$D/m" --snapshot "$EXAMPLE" --commit "$COMMIT" --metrics "$D/m.prom"
is "$rc $(find "$D" -maxdepth 1 -name 'm.prom.tmp.*')" "0 $D/m.prom.tmp.888888" 'a night clears away metrics that a night before left half written, but not those that are being written'
is "$(find "$D/m" -name '*.tmp.*')" '' 'and what else that night left in the store'
held_while "$D/dumps/catalog.jsonl.zst.tmp.888888" "$KI" export --store "$D/m" --out "$D/dumps"
is "$rc $(find "$D/dumps" -name '*.tmp.*' -printf '%f\n' | sort | tr '\n' ' ')" '0 catalog.jsonl.zst.tmp.888888 mine.tmp.999999 ' \
	'so does an export, and leaves files that are not its own'
rm "$D/dumps/catalog.jsonl.zst.tmp.888888"

# --- doctor ------------------------------------------------------------------------------------------------------------------------
verdict() { jq -r ".checks[] | select(.check == \"$1\") | .verdict" "$D/out"; }
ki doctor --store "$D/s" --json
[ -e /etc/ssl/certs/ca-certificates.crt ] && is "$rc $(verdict config) $(verdict store) $(verdict nights) $(verdict ki-ingest)" '0 ok ok ok ok' 'doctor finds a sound installation sound'
ki doctor --store "$D/s"
is "$(grep -cvE '^(ok|warn|fail)  ' "$D/out")" 0 'each line begins with its verdict'
KI_NOW=2099-01-01T00:00:00Z "$KI" doctor --store "$D/s" --json >"$D/out" 2>"$D/err"
is "$? $(verdict nights)" '75 fail' 'a timer that stopped is a failure'
mkdir "$D/config" && cp config/*.json "$D/config" && printf '{' >"$D/config/providers.json"
ki doctor --store "$D/s" --config "$D/config" --json
is "$rc $(verdict config)" '78 fail' 'a broken config is a failure'
cp -r "$D/s" "$D/damaged" && head -c 4096 /dev/zero >"$D/damaged/data.mdb"
ki doctor --store "$D/damaged" --json
[ "$rc" -ne 0 ] && [ "$(verdict store)" = fail ]
ok $? 'a store that cannot be read is a failure'
SSL_CERT_FILE=$D/empty "$KI" doctor --store "$D/s" --json >"$D/out" 2>"$D/err"
is "$? $(verdict ca-certs)" '69 fail' 'missing certificates are a failure'
flock "$D/s/nightly.lock" "$KI" doctor --store "$D/s" --json >"$D/out" 2>"$D/err"
is "$(verdict locks)" warn 'a lock that is held is worth a look'
cp -r "$D/s" "$D/unread" && printf '{' >"$D/unread/report.json"
ki doctor --store "$D/unread" --json
is "$(verdict nights) $(jq -r '.checks[] | select(.check == "nights") | .found' "$D/out" | grep -c 'report.json: ')" 'warn 1' 'a report that cannot be read is not taken for none'
"$P/bin/ki-verify" keygen "$D/key.pem" >/dev/null && chmod 644 "$D/key.pem"
KI_KEY=$D/key.pem "$KI" doctor --store "$D/s" --json >"$D/out" 2>"$D/err"
[ "$(verdict key)" != ok ]
ok $? 'a key that others can read is not fine'
ki doctor --store "$D/nothing" --json
is "$rc $(verdict store) $(ls -d "$D/nothing" 2>/dev/null)" '0 warn ' 'a store that is not there yet is worth a look, and is not made'
mv "$P/bin/ki-ingest" "$D/"
ki doctor --store "$D/s" --json
is "$rc $(verdict ki-ingest)" '69 fail' 'a missing program is a failure'
mv "$D/ki-ingest" "$P/bin/"

# --- schemas -----------------------------------------------------------------------------------------------------------------------
fits() { # fits SCHEMA [DEFINITION]: standard input, line by line
	python3 tests/validate.py "docs/schemas/$1.schema.json" ${2:+"$2"} 2>"$D/err"
}
payloads() {
	while read -r line; do
		echo "$line" | jq -r .payload | base64 -d
		echo
	done
}
if have python3 && python3 -c 'import jsonschema' 2>/dev/null; then
	"$P/bin/ki-normalize" --quiet --commit "$COMMIT" "$EXAMPLE" >"$D/wire"
	fits record <"$D/wire"
	ok $? 'what ki-normalize prints fits record.schema.json'
	sed 's/"digest":"sha256:/"digest":"sha1:/' "$D/wire" | fits record && false
	[ $? -ne 0 ]
	ok $? 'and what does not is told'
	"$P/bin/ki-normalize" --quiet --entry 2025-04-02_abcdef0 "$EXAMPLE" 2>/dev/null | fits record || "$P/bin/ki-normalize" --quiet --channel cutile "$EXAMPLE" | fits record
	ok $? 'of other channels too'
	fits report <"$D/s/report.json" && fits report <"$D/m/report.json"
	ok $? 'report.json fits report.schema.json'
	"$KI" verify plan --store "$D/s" 2>/dev/null | fits job
	ok $? 'what ki verify plan prints fits job.schema.json'
	cat fixtures/verify/evidence/*.jsonl | fits evidence && cat fixtures/verify/evidence/*.jsonl | payloads | fits evidence statement
	ok $? 'evidence fits evidence.schema.json, as does its payload'
	fits log <"$D/log"
	ok $? 'messages fit log.schema.json'
	"$KI" doctor --store "$D/s" --json | fits doctor
	ok $? 'what ki doctor --json prints fits doctor.schema.json'
else
	skip 'what is written fits the schemas' 'no python3-jsonschema here'
fi

# --- units -------------------------------------------------------------------------------------------------------------------------
if have systemd-analyze; then
	sed "s|^ExecStart=[^ ]*|ExecStart=$P/bin/ki|; s/^\(User\|Group\)=.*/\1=root/" "$P/lib/systemd/system/kernelindex.service" >"$D/kernelindex.service"
	cp "$P/lib/systemd/system/kernelindex.timer" "$D"
	systemd-analyze verify --man=no "$D/kernelindex.service" "$D/kernelindex.timer" >"$D/err" 2>&1
	is "$? $(lines "$D/err")" '0 0' 'systemd-analyze verify finds nothing wrong with the units'
else
	skip 'systemd-analyze verify finds nothing wrong with the units' 'no systemd here'
fi
plan
