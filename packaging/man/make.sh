#!/bin/sh
# Makes the pages of section 1 from what the programs say with --help, so that they name the options that there are:
#   packaging/man/make.sh BIN-DIRECTORY OUT-DIRECTORY
# PAGE.mdoc beside this file, where there is one, goes on after the description.
set -eu
here=$(dirname "$0")
bin=$1
out=$2
date=$(sed -n '1s/.*(\(.*\))$/\1/p' CHANGELOG.md)
mkdir -p "$out"

section() { # HEADING COMMAND…: synopsis, description and options of one --help; HEADING "" for a page of one command
	heading=$1
	shift
	program=$1
	shift
	"$bin/$program" "$@" --help | awk -v heading="$heading" -f "$here/help.awk"
}
page() { # NAME DESCRIPTION; the body is on standard input
	{
		printf '.Dd %s\n.Dt %s 1\n.Os kernelindex\n.Sh NAME\n.Nm %s\n.Nd %s\n' "$date" "$(echo "$1" | tr a-z A-Z)" "$1" "$2"
		cat
		grep -v "^\.Xr $1 1 ,$" "$here/tail.mdoc"
	} >"$out/$1.1"
}
verb() { # VERB DESCRIPTION
	{
		section '' ki "$1"
		[ ! -e "$here/ki-$1.mdoc" ] || cat "$here/ki-$1.mdoc"
	} | page "ki-$1" "$2"
}

"$bin/ki" --help | sed -n 's/^  \([a-z][a-z-]*\)  *\(.*\)/\1	\2/p' | while IFS='	' read -r name what; do
	case $name in
	ingest | normalize | verify) ;;
	config) printf '.so man1/ki-normalize.1\n' >"$out/ki-config.1" ;;
	*) verb "$name" "$what" ;;
	esac
done
section '' ki-ingest | page ki-ingest 'fetch what upstream publishes, and keep it'
section '' ki-normalize | page ki-normalize 'rows of benchmark tables to records'
section '' ki-store | page ki-store 'publish records, and answer questions about them'
for words in 'ki verify' 'ki verify plan' 'ki verify import' ki-verify; do
	# shellcheck disable=SC2086
	section "$words" $words
done | page ki-verify 'rerun records on a GPU'
section '' ki | page ki 'evidence engine for published GPU-kernel benchmark numbers'
cp "$here"/*.5 "$out"
