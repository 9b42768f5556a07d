#!/bin/sh
# Retractions and notes: signed, append-only, undone only by another entry; a retracted run leaves its ranking and stays readable.
cd "$(dirname "$0")/.." && . tests/tap.sh

S=$D/store
export KI_STORE="$S"
CONFIG=$D/config
export KI_CONFIG="$CONFIG"
cp -r config "$CONFIG"
key() { # key NAME - a new key in $D/NAME.pem, its entry printed
	"$KI" verify keygen "$D/$1.pem" 2>/dev/null
}
if ! "$KI" verify --help >"$D/out" 2>&1 || [ ! -x "$B/bin/ki-verify" ]; then
	skip 'corrections' 'no ki-verify here to make keys with'
	plan
fi
key ann >"$D/ann.json"
key eve >"$D/eve.json"
jq --slurpfile s "$D/ann.json" '.signers = $s' config/signers.json >"$CONFIG/signers.json"

{ header; row 4096 0.020 '2025-01-01 00:00:00'; row 4096 0.010 '2025-01-01 00:00:00' 0.5.5 huggingface; row 4096 0.030 '2025-01-01 00:00:00' 0.5.5 torch; } >"$D/a.csv"
publish "$S" "$D/a.csv"
of() { # of PROVIDER - digest of its run
	"$KI" list --format tsv --columns digest,provider --metric all | awk -v p="$1" '$2 == p { print $1 }'
}
ranks() { # provider:rank of all, best first, unranked with their code
	"$KI" cohort "$LIGER" --json | jq -r '[.. | objects | select(has("provider") and has("externalId")) | .provider + ":" + ((.rank // .unranked) | tostring)] | join(" ")'
}
LIGER=$(of liger) FIRST=$(of huggingface) LAST=$(of torch)
before=$("$KI" export --format jsonl | sha256sum)
is "$(ranks)" 'huggingface:1 liger:2 torch:3' 'three runs are ranked'

# --- what is refused --------------------------------------------------------------------------------------------------------------
ki retract "$FIRST" --reason 'wrong shape'
is "$rc $(grep -c 'not signed: give --key FILE' "$D/err")" '64 1' 'a retraction without a key is refused'
ki note "$FIRST" --text 'hm'
is "$rc $(grep -c 'not signed' "$D/err")" '64 1' 'so is a note'
ki retract "$FIRST" --reason 'wrong shape' --key "$D/eve.pem"
is "$rc $(grep -c 'refused: signed by a key that is not approved' "$D/err")" '65 1' 'and one signed by a key that is not approved'
ki retract "$FIRST" --key "$D/ann.pem"
is "$rc" 64 'a retraction wants a reason'
ki retract "$FIRST" --reason x --code NOSUCH --key "$D/ann.pem"
is "$rc $(grep -c 'MEASUREMENT, CONFIGURATION' "$D/err")" '64 1' 'and one of the codes'
ki retract "$FIRST" --reason x --key "$D/none.pem"
is "$rc" 66 'a key that is not there is not found'
ki retract nosuchrun --reason x --key "$D/ann.pem"
is "$rc" 66 'so is a run'
ki retract "$FIRST" --reason "$(awk 'BEGIN { for (i = 0; i < 5000; i++) printf "x" }')" --key "$D/ann.pem"
is "$rc" 65 'a reason has a limit'
ki retract --undo 0123456789 --key "$D/ann.pem"
is "$rc" 66 'what is undone must be there'
is "$("$KI" export --format jsonl | sha256sum)" "$before" 'nothing of all that changed anything'

# --- a retraction -----------------------------------------------------------------------------------------------------------------
ki retract "$FIRST" --reason 'measured with a cold clock' --code MEASUREMENT --key "$D/ann.pem"
entry=$(cat "$D/out")
is "$rc $(echo "$entry" | cut -c1-7) ${#entry}" '0 sha256: 71' 'a signed retraction is taken, and its entry named'
is "$(ranks)" 'liger:1 torch:2 huggingface:RETRACTED' 'the run leaves its ranking with the code RETRACTED, and the others move up'
ki show "$FIRST"
has "$D/out" 'none: RETRACTED' 'it stays readable'
has "$D/out" 'MEASUREMENT: measured with a cold clock' 'with the reason'
is "$("$KI" show "$FIRST" --json | jq -r '[.unranked, .corrections[0].type, .corrections[0].code, .corrections[0].reason, .corrections[0].undone] | map(tostring) | join(" ")')" \
	'RETRACTED retract MEASUREMENT measured with a cold clock null' 'as JSON too'
is "$("$KI" history "$FIRST" --json | jq -r '.state + " " + .corrections[0].id')" "retracted $entry" 'its history says so'
is "$("$KI" history "$FIRST" | grep -c "^retract .*${entry#sha256:}" | head -1) $("$KI" history "$FIRST" | grep -c '^state *retracted')" '0 1' 'in words too'
is "$("$KI" export --format jsonl | jq -r 'select(.type == "run") | .provider + " " + (.unranked // "")' | sort | tr '\n' ',')" 'huggingface RETRACTED,liger ,torch ,' \
	'the dump has it'
is "$("$KI" list --format tsv --columns digest | grep -c "$FIRST")" 1 'and the list'
is "$("$KI" log --events --json | jq -c '[.type, .cause.reason, .rank.before, .rank.after, .moved, .cause.code, (.run.run // .new.run)]')" \
	"[\"leader\",\"retracted\",null,null,null,\"MEASUREMENT\",\"$LIGER\"]
[\"retracted\",\"retracted\",1,null,2,\"MEASUREMENT\",\"$FIRST\"]" 'the log has the change of leader and the ranks that changed'
ki log --events
is "$(grep -c 'retracted, rank 1 before, 0 after (0: none), 2 others moved: rms_norm/forward/huggingface' "$D/out") $(grep -c 'old first retracted, 20000 after 10000: rms_norm/forward/liger' "$D/out")" '1 1' \
	'and in words'
is "$("$KI" trend rms_norm --json | grep -c "$FIRST") $("$KI" trend rms_norm --json | grep -c "$LIGER")" '0 1' 'it is no point of a trend'
ki check
is "$rc" 0 'the store is clean'
has "$D/out" clean 'and says so'

# --- publications after it --------------------------------------------------------------------------------------------------------
{ cat "$D/a.csv"; row 4096 0.005 '2025-02-01 00:00:00'; } >"$D/b.csv"
publish "$S" "$D/b.csv"
is "$(ranks)" 'liger:1 torch:2 liger:SUPERSEDED huggingface:RETRACTED' 'the next night ranks around it'
is "$("$KI" log --events --json | jq -r '.type' | sort | uniq -c | tr -s ' \n' ' ')" ' 2 leader 1 retracted ' 'events before and after keep their places'

# --- undone by another entry ------------------------------------------------------------------------------------------------------
ki retract --undo "$(echo "$entry" | cut -c8-19)" --reason 'it was warm' --key "$D/eve.pem"
is "$rc" 65 'nobody who is not approved undoes it'
ki retract --undo "$(echo "$entry" | cut -c8-19)" --reason 'it was warm' --key "$D/ann.pem"
undo=$(cat "$D/out")
is "$rc $(ranks | tr ' ' '\n' | grep huggingface)" '0 huggingface:2' 'an undo puts it back'
is "$("$KI" show "$FIRST" --json | jq -c '[.corrections[] | [.type, .undone]]')" '[["retract",true],["undo",null]]' 'both entries stay'
is "$("$KI" log --events --json | jq -r 'select(.type == "restored") | [(.rank.before | tostring), (.rank.after | tostring), .cause.words] | join(" ")')" \
	'null 2 it was warm' 'which is an event of its own'
ki retract --undo "$undo" --key "$D/ann.pem"
is "$rc $(ranks | tr ' ' '\n' | grep huggingface)" '0 huggingface:RETRACTED' 'and an undo is undone by another'

# --- notes ------------------------------------------------------------------------------------------------------------------------
level=$("$KI" show "$LAST" --json | jq -r '[.evidence, (.rank | tostring)] | join(" ")')
ki note "$LAST" --text "$(printf 'driver 555\033[31m <b>')" --key "$D/ann.pem"
note=$(cat "$D/out")
is "$rc $("$KI" show "$LAST" --json | jq -r '[.evidence, (.rank | tostring)] | join(" ")')" "0 $level" 'a note changes neither evidence nor rank'
ki show "$LAST"
has "$D/out" 'driver 555\x1b[31m <b>' 'it is shown so that a terminal only shows it'
is "$("$KI" show "$LAST" --json | jq -r '.corrections[0].key')" "$(jq -r .keyid "$D/ann.json")" 'with the key that signed it'
is "$("$KI" log --events --json | grep -c note)" 0 'a note is no event'
ki export --format site --out "$D/site"
page=$(find "$D/site/runs" -name "$(echo "$LAST" | cut -c8-)*.html")
has "$page" '&lt;b&gt;' 'it stands on the page of the run'
has "$page" 'Notes by people never change the evidence level' 'which says what a note is worth'
page=$(find "$D/site/runs" -name "$(echo "$FIRST" | cut -c8-)*.html")
has "$page" 'measured with a cold clock' 'a retraction stands there too'
has "$page" 'None: <code>RETRACTED</code>' 'and the page gives no rank'
has "$page" '<dt>State</dt><dd>retracted</dd>' 'and its history calls the run retracted, as `ki history` does'
ki note --undo "$note" --key "$D/ann.pem"
is "$rc $("$KI" show "$LAST" --json | jq -c '[.corrections[].undone]')" '0 [true,null]' 'a note is undone the same way'
ki check
is "$rc" 0 'the store is clean at the end'

# --- flags and corrections do not mix ---------------------------------------------------------------------------------------------
ki flag "$LAST" --reason 'seen by hand'
ki note "$LAST" --text 'later' --key "$D/ann.pem"
is "$("$KI" flags --code MANUAL --json | jq -r .words | cut -c1-12)" 'seen by hand' 'a note after a flag leaves the flag'
plan
