#!/bin/sh
# ki-ingest end to end, against a real TLS server on loopback.
# Stored replies of ../shared/cases are used where that folder is; those tests are skipped elsewhere.
cd "$(dirname "$0")/.." && . tests/tap.sh

BIN=$B/bin
SERVER=$B/tests/https_server
UPSTREAM=$SHARED/upstream
[ -x "$BIN/ki-ingest" ] || { echo "1..0 # SKIP no $BIN/ki-ingest"; exit 0; }
[ -x "$SERVER" ] || { echo "1..0 # SKIP no $SERVER"; exit 0; }
command -v openssl >/dev/null || { echo "1..0 # SKIP no openssl to make certificates with"; exit 0; }
tests/tls/make_certs "$D/tls" || { echo "Bail out! no certificates"; exit 1; }

start() { # start NAME ARGUMENT... - starts a server; its port is then in $D/NAME.port
	local name=$1
	shift
	"$SERVER" "$@" >"$D/$name.port" 2>"$D/$name.err" &
	TO_KILL="$TO_KILL $!"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ -s "$D/$name.port" ] && return
		sleep 0.1
	done
	echo "Bail out! server $name did not start"
	exit 1
}
: >"$D/routes"
start main --tls "$D/tls/cert.pem" "$D/tls/key.pem" --log "$D/log" --routes "$D/routes"
PORT=$(cat "$D/main.port")

config() { # config [SED-EXPRESSION...] - writes $D/config/sources.json: the shipped one with short limits and mapped hosts
	mkdir -p "$D/config"
	set -- "$@" -e "s|^  \"version\": 1,|  \"version\": 1,\n  \"testing\": {\"hostMap\": {\"api.github.com\": \"127.0.0.1:$PORT\", \"raw.githubusercontent.com\": \"127.0.0.1:$PORT\"}, \"caFile\": \"../tls/ca.pem\"},|"
	sed "$@" -e 's/"delayMilliseconds": 1000/"delayMilliseconds": 0/' -e 's/"waitMaxSeconds": 90/"waitMaxSeconds": 1/' \
		-e 's/"backoffSeconds": 2/"backoffSeconds": 0/' -e 's/"fileBytes": 67108864/"fileBytes": 8388608/' \
		"$TOP/config/sources.json" >"$D/config/sources.json"
}
config

rc=0
ingest() { # runs ki-ingest on the test's store; output in $D/out, $D/err, exit code in $rc
	"$BIN/ki-ingest" --store "$D/store" --config "$D/config" "$@" >"$D/out" 2>"$D/err" </dev/null
	rc=$?
}
fresh() { # an empty store and an empty log
	rm -rf "$D/store" "$D/log"
}
requests() { if [ -f "$D/log" ]; then grep -c '^GET ' "$D/log"; else echo 0; fi; }
snapshots() { find "$D/store/snapshots" -type f 2>/dev/null | grep -cE '/[0-9a-f]{64}$'; }
leftovers() { find "$D/store" -name '*.tmp.*' 2>/dev/null | wc -l | tr -d ' '; }
listing() { (cd "$D/store" && find . -type f -exec stat -c '%n %Y %s %i %a' {} + | sort); }
field() { # field NAME - its first value in the first source line
	head -1 "$D/out" | grep -o "\"$1\":\"[^\"]*\"" | head -1 | cut -d'"' -f4
}
reply() { # reply FILE STATUS-LINE HEADER... - writes a stored reply with the body on standard input
	local file=$1 h
	shift
	for h in "$@" 'Connection: close' ''; do printf '%s\r\n' "$h"; done >"$file"
	cat >>"$file"
}

API=/repos/linkedin/Liger-Kernel/commits
MAIN='benchmark/data/all_benchmark_data.csv'
LIST="api.github.com $API?path=$MAIN&per_page=1"
SHA1=1111111111111111111111111111111111111111
SHA2=2222222222222222222222222222222222222222
SHA3=3333333333333333333333333333333333333333
RAW1="raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA1/$MAIN"
RAW2="raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA2/$MAIN"
RAW3="raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA3/$MAIN"
PAGES='raw.githubusercontent.com /linkedin/Liger-Kernel/gh-pages/benchmarks'
printf 'a,b\r\n1,2\r\n' >"$D/one.csv"
printf 'a,b\r\n1,2\r\n3,4\r\n' >"$D/two.csv"
printf 'a,b\r\n5,6\r\n' >"$D/three.csv"
ONE=$(sha256sum "$D/one.csv" | cut -c1-64)
TWO=$(sha256sum "$D/two.csv" | cut -c1-64)
printf '[{"sha":"%s","commit":{"committer":{"date":"2025-05-14T23:53:13Z"}}}]' $SHA1 >"$D/list1.json"
printf '[{"sha":"%s"}]' $SHA2 >"$D/list2.json"
usual() { # routes of a quiet day: the main file at SHA1
	printf '%s\n' "$LIST file $D/list1.json" "$RAW1 file $D/one.csv" "$RAW2 file $D/two.csv" "$RAW3 file $D/three.csv" >"$D/routes"
}

# --- a committed file -----------------------------------------------------------------------------------------------------------
usual
fresh
ingest --channel committed
is "$rc $(lines "$D/out") $(requests)" '0 1 2' 'a new commit costs two requests and gives one source line'
is "$(field commit) $(field channel)" "$SHA1 committed" 'the line names channel and commit'
cmp -s "$D/one.csv" "$D/store/snapshots/$(echo "$ONE" | cut -c1-2)/$ONE"
ok $? 'the bytes are kept unchanged under their digest'
is "$(field path)" "$D/store/snapshots/$(echo "$ONE" | cut -c1-2)/$ONE" 'the line names the snapshot'
SNAPSHOT=$(field path)
is "$(stat -c %a "$SNAPSHOT" "$SNAPSHOT.committed-111111111111.json" | tr '\n' ' ')" '444 444 ' 'snapshot and provenance are read-only'
for part in "\"commit\":\"$SHA1\"" '"committedAt":"2025-05-14T23:53:13Z"' '"etag":"' '"finalUrl":"https://raw.githubusercontent.com/' \
	'"lastModified":"Wed, 14 May 2025 23:53:13 GMT"' '"mediaType":"text/plain; charset=utf-8"' "\"path\":\"$MAIN\"" \
	"\"requestedUrl\":\"https://raw.githubusercontent.com/linkedin/Liger-Kernel/$SHA1/$MAIN\"" '"fetchedAt":"20' \
	"\"sha256\":\"sha256:$ONE\"" '"sizeBytes":10'; do
	grep -qF "$part" "$SNAPSHOT.committed-111111111111.json"
	ok $? "the provenance holds $part"
done
grep -q '^ki-ingest: 1 new, 0 unchanged; handed over: 1; requests: 2$' "$D/err"
ok $? 'a summary line tells what happened'

listing >"$D/before"
rm -f "$D/log"
ingest --channel committed --quiet
is "$rc $(requests) $(lines "$D/out") $(wc -c <"$D/err")" '0 1 0 0' 'an unchanged upstream costs exactly one request and says nothing'
grep -q '^If-None-Match: "' "$D/log"
ok $? 'that request is conditional'
grep -q '^Accept-Encoding: identity' "$D/log"
ok $? 'and asks for plain bytes'
listing | cmp -s - "$D/before"
ok $? 'and nothing is written'

printf 'committed\t%s\tsha256:%s\n' $SHA1 "$ONE" >"$D/published"
ingest --channel committed --published "$D/published"
is "$rc $(lines "$D/out")" '0 0' 'what the catalog has is not handed over'
: >"$D/none"
ingest --channel committed --published "$D/none"
is "$rc $(lines "$D/out") $(field commit)" "0 1 $SHA1" 'what was kept but never published is handed over again, after a 304 too'
printf 'committed\t111111111111\tsha256:%s\n' "$ONE" |
	"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed --published - >"$D/out" 2>"$D/err"
is "$? $(lines "$D/out")" '0 0' 'the list may come on standard input, with 12 digits of a commit'
printf 'committed %s\n' $SHA1 >"$D/bad"
ingest --channel committed --published "$D/bad"
is "$rc" 65 'a malformed list is refused'

chmod u+w "$SNAPSHOT"
printf 'a,b\r\n1,3\r\n' >"$SNAPSHOT"
rm -f "$D/log"
ingest --channel committed --published "$D/none"
is "$rc $(lines "$D/out") $(requests)" '0 1 2' 'a damaged snapshot that is needed is fetched again'
cmp -s "$D/one.csv" "$SNAPSHOT"
ok $? 'and repaired'

printf '%s\n' "$LIST file $D/list2.json" "$RAW2 file $D/two.csv" >"$D/routes"
ingest --channel committed
is "$rc $(lines "$D/out") $(field commit) $(snapshots)" "0 1 $SHA2 2" 'a newer commit gives a second snapshot'
printf '%s\n' "$LIST weak $D/list2.json" >"$D/routes"
rm -f "$D/log"
ingest --channel committed
ingest --channel committed
is "$rc $(requests) $(lines "$D/out")" '0 2 0' 'the same commit under a new ETag costs one request and gives nothing new'
tail -n 9 "$D/log" | grep -q '^If-None-Match: W/"'
ok $? 'a weak ETag is sent back untouched'

usual
fresh
ingest --channel committed --dry-run
[ ! -e "$D/store" ]
ok $? 'a dry run creates nothing'
is "$rc $(lines "$D/out") $(grep -o '"path"' "$D/out" | wc -l | tr -d ' ')" '0 1 1' 'but tells what it would hand over, without a path'

# --- crashes --------------------------------------------------------------------------------------------------------------------
fresh
"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed >/dev/full 2>"$D/err"
is "$? $(snapshots)" '74 1' 'a line that cannot be written is an I/O error, after the snapshot was kept'
ingest --channel committed
is "$rc $(lines "$D/out") $(snapshots) $(leftovers)" '0 1 1 0' 'the next run hands it over'
"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed --published "$D/none" >&- 2>"$D/err"
is "$?" 74 'a closed standard output is an I/O error'
mkfifo "$D/pipe"
sh -c 'exec 3<"$1"; exec 3<&-' sh "$D/pipe" &
"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed --published "$D/none" >"$D/pipe" 2>"$D/err"
code=$?
wait $!
case "$code $(wc -c <"$D/err" | tr -d ' ')" in 141\ 0 | 0\ *) ok 0 'a reader that left ends the run quietly' ;;
*) ok 1 "a reader that left ends the run quietly (exit $code)" ;; esac

reply "$D/whole.http" 'HTTP/1.1 200 OK' 'Content-Length: 10' <"$D/one.csv"
printf '%s\n' "$LIST file $D/list1.json" "$RAW1 drip 300 $D/whole.http" >"$D/routes"
fresh
"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed >/dev/null 2>&1 &
first=$!
sleep 1
ingest --channel committed
is "$rc $(wc -l <"$D/err" | tr -d ' ')" '75 1' 'while one run is under way a second ends at once with one line'
kill -9 $first
wait $first 2>/dev/null
touch "$D/store/snapshots/state/committed.json.tmp.$first"
printf '%s\n' "$LIST file $D/list1.json" "$RAW1 file $D/one.csv" >"$D/routes"
ingest --channel committed
is "$rc $(lines "$D/out") $(leftovers)" '0 1 0' 'after kill -9 the next run needs no help, and its left-over file is gone'

# --- environment ----------------------------------------------------------------------------------------------------------------
usual
for mask in 077 000; do
	fresh
	(
		cd / && umask $mask
		env -i "$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed >"$D/out" 2>"$D/err" <&-
	)
	is "$? $(lines "$D/out") $(stat -c %a "$D/store/snapshots" "$D/store/snapshots/state/committed.json" "$SNAPSHOT" | tr '\n' ' ')" \
		'0 1 755 644 444 ' "empty environment, closed standard input and umask $mask change nothing"
done
start proxy --log "$D/proxy.log" "$D/whole.http"
PROXY=http://127.0.0.1:$(cat "$D/proxy.port")
mkdir -p "$D/home"
printf 'proxy = %s\n' "$PROXY" >"$D/home/.curlrc"
printf 'machine api.github.com login thief password stolen\n' >"$D/home/.netrc"
fresh
rm -f "$D/proxy.log"
HOME=$D/home https_proxy=$PROXY HTTPS_PROXY=$PROXY ALL_PROXY=$PROXY all_proxy=$PROXY http_proxy=$PROXY \
	"$BIN/ki-ingest" --store "$D/store" --config "$D/config" --channel committed >"$D/out" 2>"$D/err"
is "$? $(lines "$D/out")" '0 1' 'a fetch works with proxies in the environment'
[ ! -s "$D/proxy.log" ]
ok $? 'because no proxy is ever spoken to'
! grep -qi '^authorization' "$D/log"
ok $? 'and no netrc is read'

fresh
config -e 's/"caFile": "..\/tls\/ca.pem"/"caFile": "..\/tls\/other-ca.pem"/'
sed -i 's|tls/ca.pem|tls/other-ca.pem|' "$D/config/sources.json"
ingest --channel committed
is "$rc $(requests)" '77 0' 'a certificate that nobody trusted signed is not accepted'
config
sed -i -e '/"testing"/d' -e 's/api\.github\.com/api.localhost/' -e 's/api\.github\.com/api.localhost/g' "$D/config/sources.json"
ingest --channel committed
is "$rc" 77 'a host whose address is not public is not connected to'
grep -q 'address .* is not public$' "$D/err"
ok $? 'and the message says so'
config
KI_CONFIG=$D/config "$BIN/ki-ingest" --store "$D/store" --channel committed >"$D/out" 2>"$D/err"
is "$?" 78 'the testing section is refused when the directory was not named with --config'
config -e 's/"redirects": 3/"redirects": 4/'
ingest --channel committed
is "$rc" 78 'limits out of range are refused'
config

# --- redirects and the token (H01, H02) -----------------------------------------------------------------------------------------
export KI_GITHUB_TOKEN=secret-token-of-the-test
usual
fresh
ingest --channel committed
grep -A9 "^GET $API" "$D/log" | grep -q '^Authorization: Bearer secret-token-of-the-test'
ok $? 'the token goes to the API'
is "$(grep -c '^Authorization' "$D/log")" 1 'and not to the raw host'
! grep -rq secret-token "$D/store" "$D/out" "$D/err"
ok $? 'it is written nowhere'
start objects --tls "$D/tls/cert.pem" "$D/tls/key.pem" --log "$D/objects.log" "$D/whole.http"
config -e 's|{"host": "raw.githubusercontent.com"}|{"host": "raw.githubusercontent.com"}, {"host": "objects.example.net"}|'
sed -i "s|\"hostMap\": {|\"hostMap\": {\"objects.example.net\": \"127.0.0.1:$(cat "$D/objects.port")\", |" "$D/config/sources.json"
reply "$D/away.http" 'HTTP/1.1 302 Found' 'Location: https://objects.example.net/c.csv' 'Content-Length: 0' </dev/null
printf '%s\n' "$LIST replay $D/away.http" >"$D/routes"
ingest --channel committed
grep -q '^If-None-Match' "$D/log" && grep -q '^GET /c.csv' "$D/objects.log" && ! grep -qi '^authorization' "$D/objects.log"
ok $? 'a redirect to another allowed host is followed without the token'
! grep -q '^If-None-Match' "$D/objects.log"
ok $? 'and without the ETag'
reply "$D/home.http" 'HTTP/1.1 301 Moved Permanently' 'Location: /moved?per_page=1' 'Content-Length: 0' </dev/null
printf '%s\n' "$LIST replay $D/home.http" "api.github.com /moved?per_page=1 file $D/list1.json" "$RAW1 file $D/one.csv" >"$D/routes"
fresh
ingest --channel committed
is "$rc $(lines "$D/out") $(requests) $(grep -c '^Authorization' "$D/log")" '0 1 3 2' 'a redirect within the host is followed with the token'
reply "$D/nowhere.http" 'HTTP/1.1 302 Found' 'Content-Length: 0' </dev/null
printf '%s\n' "$LIST replay $D/nowhere.http" >"$D/routes"
ingest --channel committed
is "$rc" 65 'a redirect without a target is refused'
config
if [ -d "$CASES" ]; then
	for name in h01_redirect_file h01_redirect_gopher h02_redirect_ip h02_redirect_other_host h02_redirect_plain_http \
		h02_redirect_userinfo; do
		printf '%s\n' "$LIST replay $CASES/$name.http" >"$D/routes"
		fresh
		ingest --channel committed
		is "$rc $(snapshots) $(leftovers)" '77 0 0' "$name is not permitted and stores nothing"
		if command -v strace >/dev/null; then
			ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=open,openat,connect -o "$D/trace" "$BIN/ki-ingest" --store "$D/store" \
				--config "$D/config" --channel committed >"$D/out" 2>"$D/err"
			is "$(grep -c 'connect(.*AF_INET' "$D/trace") $(grep -c "connect(.*htons($PORT)" "$D/trace") $(grep -c '/etc/hostname' "$D/trace")" '1 1 0' \
				'it connects nowhere but to the API, and opens no file'
		else
			skip 'it connects nowhere but to the API, and opens no file' 'no strace here'
		fi
	done
	printf '%s\n' "* * replay $CASES/h02_redirect_loop.http" >"$D/routes"
	fresh
	ingest --channel committed
	is "$rc $(requests) $(snapshots)" '77 4 0' 'h02_redirect_loop ends after three redirects'
else
	skip 'stored redirects (H01, H02)' "no $CASES"
fi
unset KI_GITHUB_TOKEN

# --- bodies that are not whole, too large or too slow (H05, H07, H08) -------------------------------------------------------------
refused() { # refused CODE SENTENCE - one run that must store nothing
	fresh
	ingest --channel committed
	is "$rc $(snapshots) $(leftovers) $(lines "$D/out")" "$1 0 0 0" "$2"
}
body() { printf '%s\n' "$LIST file $D/list1.json" "$RAW1 $*" >"$D/routes"; }
reply "$D/short.http" 'HTTP/1.1 200 OK' 'Content-Length: 11' <"$D/one.csv"
body replay "$D/short.http"
refused 75 'a body shorter than its Content-Length is not kept'
is "$(requests)" 2 'and not asked for again in the same run'
printf 'a\r\na,b\r\n1,2\r\n\r\n' | reply "$D/chunk.http" 'HTTP/1.1 200 OK' 'Transfer-Encoding: chunked'
body replay "$D/chunk.http"
refused 75 'a chunked body without its last chunk is not kept'
reply "$D/open.http" 'HTTP/1.1 200 OK' <"$D/one.csv"
body replay "$D/open.http"
refused 75 'a body whose end only the closed connection tells is not kept'
if command -v gzip >/dev/null; then
	gzip -c "$D/two.csv" | head -c 24 >"$D/cut.gz"
	reply "$D/gzip.http" 'HTTP/1.1 200 OK' 'Content-Encoding: gzip' 'Content-Length: 24' <"$D/cut.gz"
	body replay "$D/gzip.http"
	refused 65 'a compressed body, which could be cut unseen, is not kept'
else
	skip 'a compressed body, which could be cut unseen, is not kept' 'no gzip here'
fi
reply "$D/huge.http" 'HTTP/1.1 200 OK' 'Content-Length: 8388609' </dev/null
body replay "$D/huge.http"
refused 65 'a body announced larger than the limit is not fetched'
printf '1\r\na\r\n' | reply "$D/endless.http" 'HTTP/1.1 200 OK' 'Transfer-Encoding: chunked'
body endless "$D/endless.http"
refused 65 'a body without end stops at the limit'
reply "$D/partial.http" 'HTTP/1.1 206 Partial Content' 'Content-Length: 10' <"$D/one.csv"
body replay "$D/partial.http"
refused 65 'a partial reply is not taken for the whole'
config -e 's/"lowSpeedSeconds": 30/"lowSpeedSeconds": 2/'
body drip 400 "$D/whole.http"
refused 75 'a body that comes too slowly ends at the low-speed limit'
config -e 's/"totalSeconds": 180/"totalSeconds": 2/' -e 's/"lowSpeedBytesPerSecond": 512/"lowSpeedBytesPerSecond": 1/'
body drip 60 "$D/whole.http"
refused 75 'a body that drips steadily ends at the time limit'
config
if [ -d "$CASES" ]; then
	for name in h05_cut_length h05_cut_at_row_end; do
		body replay "$CASES/$name.http"
		refused 75 "$name is not kept"
		body replay "$CASES/h04_200_etag.http"
		ingest --channel committed
		is "$rc $(lines "$D/out") $(snapshots)" '0 1 1' 'and the next run succeeds'
	done
	body replay "$CASES/h07_gzip_bomb.http"
	if ldd "$BIN/ki-ingest" 2>/dev/null | grep -q libasan; then
		refused 65 'h07_gzip_bomb stops at the limit on decoded bytes (memory not limited under ASan)'
	else
		fresh
		(ulimit -v 300000 && ingest --channel committed && exit $rc)
		is "$? $(snapshots) $(leftovers)" '65 0 0' 'h07_gzip_bomb stops at the limit on decoded bytes, in little memory'
	fi
	grep -q 'larger than the limit of 8388608 bytes' "$D/err"
	ok $? 'and the message names the limit'
	body endless "$CASES/h08_endless_head.http"
	refused 65 'h08_endless_head stops at the limit'
else
	skip 'stored bodies (H05, H07, H08)' "no $CASES"
fi

# --- quota (H09) ----------------------------------------------------------------------------------------------------------------
reply "$D/soon.http" 'HTTP/1.1 429 Too Many Requests' 'Retry-After: 1' 'Content-Length: 0' </dev/null
reply "$D/list1.http" 'HTTP/1.1 200 OK' 'Content-Length: 52' <"$D/list2.json"
printf '%s\n' "$LIST replay $D/soon.http $D/list1.http" "$RAW2 file $D/two.csv" >"$D/routes"
fresh
ingest --channel committed
is "$rc $(lines "$D/out") $(requests)" '0 1 3' 'a short Retry-After is waited for, and the fetch goes on'
printf '%s\n' "$LIST replay $D/soon.http" >"$D/routes"
fresh
ingest --channel committed
is "$rc $(requests)" '75 3' 'three attempts are all'
printf '%s\n' "$LIST status 503" >"$D/routes"
fresh
ingest --channel committed
is "$rc $(requests)" '75 3' 'an upstream that is down is asked three times'
printf '%s\n' "$LIST status 404" >"$D/routes"
fresh
ingest --channel committed
is "$rc $(requests)" '66 1' 'what is not there is asked for once'
if [ -d "$CASES" ]; then
	set -- h09_403_primary 75 h09_403_secondary 75 h09_429_seconds 75 h09_403_plain 77
	while [ $# -gt 0 ]; do
		printf '%s\n' "* * replay $CASES/$1.http" >"$D/routes"
		fresh
		ingest --channel committed --quiet
		is "$rc $(requests) $(snapshots) $(wc -l <"$D/err" | tr -d ' ')" "$2 1 0 1" "$1 ends the run at once, with one line"
		shift 2
	done
	printf '%s\n' "* * replay $CASES/h09_403_primary.http" >"$D/routes"
	fresh
	ingest --channel committed --channel cutile --channel cutedsl
	is "$rc $(requests)" '75 1' 'a quota that is used up is not asked again for other channels'
else
	skip 'stored quota replies (H09)' "no $CASES"
fi

# --- the list of commits (H11) --------------------------------------------------------------------------------------------------
if [ -d "$CASES" ]; then
	for name in h11_commits_empty h11_commits_object h11_commits_bad_sha h11_commits_sha_path; do
		printf '%s\n' "* * replay $CASES/$name.http" >"$D/routes"
		fresh
		ingest --channel committed
		is "$rc $(requests) $(snapshots)" '65 1 0' "$name is refused and leads to no second request"
	done
	printf '%s\n' "$LIST replay $CASES/h11_commits_good.http $CASES/h04_304_no_etag.http" \
		"raw.githubusercontent.com /linkedin/Liger-Kernel/00112233445566778899aabbccddeeff00112233/$MAIN replay $CASES/h04_200_etag.http" \
		>"$D/routes"
	fresh
	ingest --channel committed
	is "$rc $(requests) $(lines "$D/out")" '0 2 1' 'h11_commits_good goes on'
	rm -f "$D/log"
	ingest --channel committed
	ingest --channel committed
	is "$rc $(grep -c '^If-None-Match: W/"c-1"' "$D/log") $(snapshots)" '0 2 1' 'a 304 without ETag does not lose the one that was kept'
else
	skip 'stored lists of commits (H11)' "no $CASES"
fi

# --- history --------------------------------------------------------------------------------------------------------------------
config -e 's/"pageSize": 100/"pageSize": 2/'
printf '[{"sha":"%s"},{"sha":"%s"}]' $SHA3 $SHA2 >"$D/page1.json"
printf '[{"sha":"%s"}]' $SHA1 >"$D/page2.json"
HISTORY="api.github.com $API?path=$MAIN&per_page=2"
printf '%s\n' "$HISTORY file $D/page1.json" "$HISTORY&page=2 file $D/page2.json" "$RAW1 file $D/one.csv" "$RAW2 status 500" >"$D/routes"
fresh
ingest --channel committed --backfill
is "$rc $(field commit) $(lines "$D/out")" "75 $SHA1 1" 'history is walked from the oldest commit, until something fails'
printf '%s\n' "$HISTORY file $D/page1.json" "$HISTORY&page=2 file $D/page2.json" "$RAW2 status 404" "$RAW3 file $D/three.csv" >"$D/routes"
rm -f "$D/log"
ingest --channel committed --backfill
is "$rc $(field commit) $(lines "$D/out") $(requests)" "0 $SHA3 1 4" 'and goes on from there; a commit that removed the file is passed over'
rm -f "$D/log"
ingest --channel committed --backfill
is "$rc $(lines "$D/out") $(requests)" '0 0 2' 'a walked history costs its list and nothing more'
ingest --channel committed --backfill --published "$D/none"
is "$(grep -o '"commit":"[0-9]' "$D/out" | tr -d '\n')" "\"commit\":\"1\"commit\":\"1\"commit\":\"3\"commit\":\"3" \
	'all of it is handed over to a catalog that has none, oldest first'
config

# --- gh-pages -------------------------------------------------------------------------------------------------------------------
SHA_A=aaaaaaa1111111111111111111111111111111aa
SHA_B=bbbbbbb1111111111111111111111111111111bb
printf '{"sha":"%s","commit":{"committer":{"date":"2025-06-01T00:00:00Z"}}}' $SHA_A >"$D/a.json"
printf '{"sha":"%s"}' $SHA_B >"$D/b.json"
pages() { # pages ROUTE... - the list, both commits, and what is given
	printf '%s\n' "$PAGES/commits.txt file $D/commits.txt" "api.github.com $API/aaaaaaa file $D/a.json" \
		"api.github.com $API/bbbbbbb file $D/b.json" "$@" >"$D/routes"
}
printf 'aaaaaaa\nbbbbbbb-v1.2\n' >"$D/commits.txt"
pages "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv" "$PAGES/bbbbbbb-v1.2/benchmark.csv file $D/two.csv"
fresh
ingest --channel gh-pages
is "$rc $(lines "$D/out") $(requests) $(field entry) $(field commit)" "0 2 5 aaaaaaa $SHA_A" 'each new entry costs its file and its commit'
grep -q "\"commit\":\"$SHA_B\",\"entry\":\"bbbbbbb-v1.2\"" "$D/out"
ok $? 'a tagged entry keeps its tag'
rm -f "$D/log"
listing >"$D/before"
ingest --channel gh-pages --quiet
listing | cmp -s - "$D/before"
is "$? $rc $(lines "$D/out") $(requests)" '0 0 0 1' 'an unchanged list costs one request and writes nothing'
printf 'aaaaaaa\nbbbbbbb-v1.2\nccccccc\nbbbbbbb\n' >"$D/commits.txt"
pages "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv" "$PAGES/bbbbbbb/benchmark.csv file $D/three.csv"
rm -f "$D/log"
ingest --channel gh-pages
is "$rc $(lines "$D/out") $(requests) $(field entry)" '0 1 4 bbbbbbb' 'entries that are held cost nothing; one without a file is passed over'
grep -q '1 listed but not there' "$D/err"
ok $? 'and counted'
printf 'bbbbbbb-v1.2\n../../etc/passwd\nbbbbbbb\n' >"$D/commits.txt"
rm -f "$D/log"
ingest --channel gh-pages
is "$rc $(requests)" '65 1' 'a line that is no entry is refused, and asked for under no name'
grep -q 'commits.txt:2:1: ' "$D/err"
ok $? 'with its line'
grep -q 'aaaaaaa: no longer listed by upstream' "$D/err"
ok $? 'an entry that upstream dropped is told, and stays'
printf 'aaaaaaa\nbbbbbbb-v1.2\nbbbbbbb\n' >"$D/commits.txt"
pages "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv" "$PAGES/bbbbbbb-v1.2/benchmark.csv file $D/three.csv" \
	"$PAGES/bbbbbbb/benchmark.csv file $D/three.csv"
rm -f "$D/log"
ingest --channel gh-pages --recheck
is "$rc $(lines "$D/out") $(field entry) $(grep -c '"changed":true' "$D/out")" '0 1 bbbbbbb-v1.2 1' 'an entry that upstream changed is a new snapshot, and marked'
grep -q 'bbbbbbb-v1.2: upstream changed what it had published' "$D/err"
ok $? 'and reported'
printf 'gh-pages\tbbbbbbb-v1.2\tsha256:%s\n' "$TWO" >"$D/published"
ingest --channel gh-pages --published "$D/published"
is "$rc $(lines "$D/out")" '0 3' 'the catalog is given all that it lacks, the changed entry too'
printf '{"sha":"%s"}' $SHA_B >"$D/a.json"
printf 'aaaaaaa\n' >"$D/commits.txt"
pages "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv"
fresh
ingest --channel gh-pages
is "$rc $(snapshots)" '65 0' 'a commit that does not start as the entry does is refused'
printf '%s\n' "$PAGES/commits.txt file $D/commits.txt" "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv" "api.github.com $API/aaaaaaa status 422" >"$D/routes"
ingest --channel gh-pages
is "$rc $(lines "$D/out") $(field commit)" '0 1 ' 'a commit that upstream no longer knows stays unknown'
if [ -d "$CASES" ]; then
	printf '{"sha":"%s"}' $SHA_A >"$D/a.json"
	pages "$PAGES/aaaaaaa/benchmark.csv replay $CASES/h04_200_etag.http $CASES/h04_304_no_etag.http"
	fresh
	ingest --channel gh-pages
	is "$rc $(lines "$D/out")" '0 1' 'h04_200_etag is kept'
	rm -f "$D/log"
	for run in 2 3; do
		listing >"$D/before"
		ingest --channel gh-pages --recheck --quiet
		listing | cmp -s - "$D/before"
		is "$? $rc $(lines "$D/out") $(wc -c <"$D/err")" '0 0 0 0' "h04_304_no_etag changes nothing (run $run)"
	done
	is "$(grep -c '^If-None-Match: "v1-5d41"' "$D/log")" 2 'both runs send the ETag that was kept'
	pages "$PAGES/aaaaaaa/benchmark.csv replay $CASES/h10_weak_etag_a.http $CASES/h10_weak_etag_b.http $CASES/h10_weak_etag_b.http"
	fresh
	ingest --channel gh-pages
	ingest --channel gh-pages --recheck
	is "$rc $(snapshots) $(lines "$D/out")" '0 1 0' 'h10: equal bytes under another ETag are one snapshot and no new publication'
	ingest --channel gh-pages --recheck
	is "$(grep '^If-None-Match: W/' "$D/log" | tr -d '\r' | tr '\n' ' ')" 'If-None-Match: W/"a-1" If-None-Match: W/"b-2" ' \
		'h10: weak ETags are sent back untouched'
else
	skip 'stored ETags (H04, H10)' "no $CASES"
fi
pages "$PAGES/aaaaaaa/benchmark.csv file $D/one.csv"
printf '{"sha":"%s"}' $SHA_A >"$D/a.json"
printf '%s\n' "$LIST status 500" >>"$D/routes"
fresh
ingest --channel committed --channel gh-pages
is "$rc $(lines "$D/out") $(field channel)" '75 1 gh-pages' 'a channel that fails does not keep the others from running'

# --- local files ----------------------------------------------------------------------------------------------------------------
fresh
ingest --file "$D/one.csv" --commit 111111111111
is "$rc $(lines "$D/out") $(field channel) $(field commit) $(snapshots)" '0 1 committed 111111111111 1' 'a local file is kept like a fetched one'
is "$(requests)" 0 'without any request'
ingest --file "$D/one.csv" "$D/two.csv" --channel cutile
is "$rc $(lines "$D/out") $(snapshots)" '0 2 2' 'several files may be given'
ingest --file "$D/two.csv" --entry bbbbbbb-v1.2
is "$rc $(field channel) $(field entry)" '0 gh-pages bbbbbbb-v1.2' 'an entry belongs to gh-pages'
printf 'committed\t%s\tsha256:%s\n' $SHA1 "$ONE" >"$D/published"
ingest --file "$D/one.csv" --commit 111111111111 --published "$D/published"
is "$rc $(lines "$D/out")" '0 0' 'a local file that the catalog has is not handed over'
fresh
ingest --file "$D/one.csv" --commit $SHA1 --dry-run
is "$rc $(field path)" "0 $D/one.csv" 'in a dry run the line names the file itself'
[ ! -e "$D/store" ]
ok $? 'and nothing is kept'
ingest --file "$D/absent.csv"
is "$rc" 66 'a file that is not there is not found'
ingest --file "$D"
is "$rc" 65 'a directory is no table'
for arguments in '--file x --replay y' '--commit 111111111111' '--file a b --commit 111111111111' '--file x --commit main' \
	'--file x --entry ../x' '--file x --commit 111111111111 --entry aaaaaaa' '--file x --channel gh-pages' '--channel nowhere' \
	'--file x --backfill' 'x.csv' '--unknown' '--file'; do
	# shellcheck disable=SC2086
	ingest $arguments
	is "$rc" 64 "usage error: $arguments"
done
fresh
mkdir -p "$D/store/snapshots/$(echo "$ONE" | cut -c1-2)"
for wrong in '' 'a,b 1,3 '; do
	printf '%s' "$wrong" >"$SNAPSHOT"
	ingest --file "$D/one.csv" --commit $SHA1
	cmp -s "$D/one.csv" "$SNAPSHOT"
	is "$? $rc" '0 0' "a file with other bytes (\"$wrong\") in the snapshot's place is replaced"
	chmod u+w "$SNAPSHOT"
done
if command -v strace >/dev/null; then
	fresh
	ASAN_OPTIONS=detect_leaks=0 strace -y -e trace=fsync,rename,renameat,renameat2 -o "$D/trace" "$BIN/ki-ingest" --store "$D/store" \
		--config "$D/config" --file "$D/one.csv" >"$D/out" 2>"$D/err"
	is "$(grep "/$ONE" "$D/trace" | head -2 | sed 's/(.*//' | tr '\n' ' ')" 'fsync rename ' 'strace: the file is synced, then renamed'
	sed -n '3p' "$D/trace" | grep -q "^fsync([0-9]*<.*/snapshots/$(echo "$ONE" | cut -c1-2)>)"
	ok $? 'strace: then its directory is synced'
else
	skip 'the file is synced, renamed, and its directory synced' 'no strace here'
fi
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir -p "$D/small"
	head -c 600000 /dev/zero >"$D/large.csv"
	unshare -m sh -c '
		mount -t tmpfs -o size=512k none "$1/small" || exit 9
		run() { "$2" --store "$1/small/store" --config "$1/config" --file "$3" >"$1/out" 2>"$1/err"; }
		run "$1" "$2" "$1/one.csv" || exit 1
		run "$1" "$2" "$1/large.csv"
		[ $? -eq 74 ] && grep -q "No space left on device" "$1/err" || exit 2
		[ -z "$(find "$1/small" -name "*.tmp.*")" ] && [ "$(find "$1/small" -type f -size +300k | wc -l)" -eq 0 ] || exit 3
		mount -o remount,size=4m "$1/small" || exit 9
		run "$1" "$2" "$1/large.csv" || exit 4' sh "$D" "$BIN/ki-ingest"
	code=$?
	if [ $code -eq 9 ]; then
		skip 'a full disk is an I/O error, leaves no half snapshot, and passes' 'no tmpfs here'
	else
		is $code 0 'a full disk is an I/O error, leaves no half snapshot, and passes'
	fi
else
	skip 'a full disk is an I/O error, leaves no half snapshot, and passes' 'not root'
fi

# --- a tree of upstream's history ---------------------------------------------------------------------------------------------------
mkdir -p "$D/tree/committed" "$D/tree/gh-pages"
cp "$D/two.csv" "$D/tree/committed/2025-02-01T00-00-00Z-222222222222.csv"
cp "$D/one.csv" "$D/tree/committed/2025-01-01T00-00-00Z-111111111111.csv"
cp "$D/three.csv" "$D/tree/committed/2025-02-01T00-00-00Z_cutile-333333333333.csv"
cp "$D/three.csv" "$D/tree/committed/notes.csv"
cp "$D/one.csv" "$D/tree/gh-pages/bbbbbbb.csv"
cp "$D/two.csv" "$D/tree/gh-pages/aaaaaaa-v1.csv"
printf 'bbbbbbb\nccccccc\naaaaaaa-v1\n' >"$D/tree/gh-pages/commits.txt"
printf 'bbbbbbb\t%s\naaaaaaa-v1\t%s\n' $SHA_B $SHA_A >"$D/tree/gh-pages/entries.tsv"
fresh
ingest --replay "$D/tree"
is "$rc $(sed 's/.*"sizeBytes":\([0-9]*\)}$/\1/' "$D/out" | tr '\n' ' ')" '0 10 15 10 10 15 ' 'a tree is replayed in order of publication'
is "$(grep -o '"channel":"[a-z-]*","commit":"[0-9a-f]*"' "$D/out" | sort -u | wc -l | tr -d ' ')" 5 'with channel and commit of each file'
grep -q "\"committedAt\":\"2025-01-01T00:00:00Z\"" "$D/out"
ok $? 'and the time in its name'
grep -q 'notes.csv: left out' "$D/err"
ok $? 'a file of another name is left out, with a warning'
grep -q '1 listed but not there' "$D/err"
ok $? 'an entry without a file is counted'
ingest --replay "$D/tree" --channel cutile
is "$rc $(lines "$D/out") $(field commit)" '0 1 333333333333' 'channels can be chosen'
ingest --replay "$D"
is "$rc" 66 'a folder that is no such tree is not found'
if [ -d "$UPSTREAM" ]; then
	fresh
	ingest --replay "$UPSTREAM"
	is "$rc $(lines "$D/out")" '0 57' 'the tree of upstream gives 57 publications'
	is "$(cut -d, -f1,2 "$D/out" | sed -n '1p;41p')" '{"channel":"committed","commit":"b5672a153b7b"
{"channel":"gh-pages","commit":"b6ed7357bd32a06cf8fde9a1049c77e3c24cfb12"' 'committed files first, from 2024-09-03 on, then the drops from b6ed735 on'
	sed 's/.*"channel":"\([a-z-]*\)","commit":"\([0-9a-f]*\)","entry":"\([^"]*\)".*"sha256":"\(sha256:[0-9a-f]*\)","sizeBytes":[0-9]*}$/\1\t\3\t\4/
		t
		s/.*"channel":"\([a-z-]*\)","commit":"\([0-9a-f]*\)",.*"sha256":"\(sha256:[0-9a-f]*\)","sizeBytes":[0-9]*}$/\1\t\2\t\3/' "$D/out" >"$D/published"
	ingest --replay "$UPSTREAM" --published "$D/published"
	is "$rc $(lines "$D/out")" '0 0' 'replaying it for a catalog that has it all gives nothing'
else
	skip 'the tree of upstream' "no $UPSTREAM"
fi
"$BIN/ki-ingest" --help >"$D/out" 2>"$D/err" && grep -q '^usage: ki-ingest' "$D/out"
ok $? '--help explains'
"$BIN/ki-ingest" --version | grep -q '^ki-ingest [0-9.]* (libcurl/'
ok $? '--version names libcurl'
plan
