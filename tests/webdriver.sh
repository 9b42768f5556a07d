# A browser, driven over W3C WebDriver by curl and jq. To be sourced after tests/tap.sh.
# shellcheck shell=sh
WEBDRIVER= # address of the session
browser_start() { # false, with the reason in $D/err, when no browser comes up
	chromedriver --port=0 >"$D/driver.log" 2>&1 &
	TO_KILL="$TO_KILL $!"
	local port='' tries=0
	while [ -z "$port" ] && [ $tries -lt 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
		port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$D/driver.log")
	done
	# as root Chromium has no sandbox; pages are our own
	curl -s --max-time 60 "http://127.0.0.1:$port/session" -d '{"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args":
		["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir='"$D"'/browser"]}}}}' >"$D/session" 2>"$D/err"
	WEBDRIVER=http://127.0.0.1:$port/session/$(jq -r '.value.sessionId // "none"' "$D/session")
	if jq -e .value.sessionId "$D/session" >/dev/null; then
		: >"$D/err"
	else
		cat "$D/driver.log" "$D/session" >"$D/err"
		return 1
	fi
}
browser_stop() {
	curl -s --max-time 30 -X DELETE "$WEBDRIVER" >/dev/null
}
wd() { # wd COMMAND JSON - the value of the answer
	printf '%s' "$2" | curl -s --max-time 60 "$WEBDRIVER/$1" -d @- | jq -c .value
}
cdp() { # cdp COMMAND JSON - of Chromium's own protocol
	wd goog/cdp/execute "{\"cmd\": \"$1\", \"params\": $2}"
}
open_page() { # open_page FILE[?QUERY]
	wd url "{\"url\": \"file://$1\"}" >/dev/null
}
eval_page() { # eval_page SCRIPT - what it returns, a text as it is; may wait for a promise
	jq -nc --arg script "$1" '{$script, args: []}' >"$D/script"
	wd execute/sync "$(cat "$D/script")" | jq -r 'if type == "object" and .error then "error: " + .message else . end'
}
width() { # width PIXELS
	cdp Emulation.setDeviceMetricsOverride "{\"width\": $1, \"height\": 900, \"deviceScaleFactor\": 1, \"mobile\": false}" >/dev/null
}
media() { # media TYPE light|dark
	cdp Emulation.setEmulatedMedia "{\"media\": \"$1\", \"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"$2\"}]}" >/dev/null
}
press() { # press KEY [TIMES] - as WebDriver names it: \uE004 is Tab, \uE007 Enter
	jq -nc --arg key "$(printf '"%s"' "$1" | jq -r .)" --argjson times "${2:-1}" \
		'{actions: [{type: "key", id: "k", actions: [range($times) | {type: "keyDown", value: $key}, {type: "keyUp", value: $key}]}]}' >"$D/script"
	wd actions "$(cat "$D/script")" >/dev/null
}
