#!/bin/sh
# Checks every dependency; installs what is missing with apt where it may, and otherwise prints exactly what to install.
# usage: packaging/deps.sh [build]      build: what the programs need; without it, what their tests need too
set -u
missing=""
need() { # package, then a test that succeeds when it is there
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
header() { printf '#include <%s>\n' "$1" | ${CC:-cc} -E -x c - ; }

need gcc sh -c 'command -v ${CC:-cc}'
need pkg-config command -v pkg-config
need libcsv-dev header csv.h
need libcurl4-openssl-dev header curl/curl.h
need libjansson-dev header jansson.h
need libssl-dev header openssl/evp.h
need liblmdb-dev header lmdb.h
need libzstd-dev header zstd.h
need libseccomp-dev header seccomp.h
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
if [ "${1:-}" != build ]; then
	need libcmocka-dev sh -c 'printf "#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n" | ${CC:-cc} -E -x c -'
	need perl command -v prove
	need openssl command -v openssl
	need jq command -v jq
	need zstd command -v zstd
	need strace command -v strace
	need tidy command -v tidy
	need mandoc command -v mandoc
	need python3-jsonschema sh -c 'python3 -c "import jsonschema"'
	need chromium command -v chromium
	need chromium-driver command -v chromedriver
	need curl command -v curl
	need bsdutils command -v script
fi

if [ -n "$missing" ]; then
	echo "deps: missing:$missing"
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -q >/dev/null 2>&1
		# shellcheck disable=SC2086
		apt-get install -y -q --no-install-recommends $missing >/dev/null || {
			echo "deps: apt-get could not install them; by hand: apt-get install$missing" >&2
			exit 69
		}
		echo "deps: installed"
	else
		echo "deps: install them with: sudo apt-get install$missing" >&2
		exit 69
	fi
fi
command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ] ||
	echo "deps: no nvcc here: ki-verify is built with its CPU device only"
