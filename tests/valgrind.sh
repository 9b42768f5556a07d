#!/bin/sh
# Runs test programs as tests/run.sh does, with every program of ours that they start under valgrind's memcheck: B/valgrind is laid out like
# B and holds a stand-in for each, which runs that of B. Fails when a test does, or when memcheck has anything to say: what it says of a
# process stays in B/valgrind/log. Tools that tests use (sh, jq, chromium, the server of tests) run as they are. Arguments: as of prove.
set -u
B=${B:-build}
V=$B/valgrind
rm -rf "$V"
mkdir -p "$V/bin" "$V/log"
command -v valgrind >/dev/null || { echo 'valgrind: none here: apt-get install valgrind' >&2; exit 69; }
${CC:-cc} -std=c17 -D_GNU_SOURCE -shared -fPIC -O1 -o "$V/confined.so" tests/valgrind.c || exit 1

mkdir "$V/tests" && cp -p "$B"/tests/*_server "$V/tests/" || exit 1
for program in "$B"/bin/ki "$B"/bin/ki-* "$B"/tests/test_* "$B"/tests/fuzz/*; do
	case $program in *.[do] | *\*) continue ;; esac
	stand_in=$V/${program#"$B"/}
	mkdir -p "$(dirname "$stand_in")"
	cat >"$stand_in" <<-SCRIPT
		#!/bin/sh
		# valgrind would take the number of a standard stream that is closed; this is what our programs put there (core/file.h)
		[ -e /proc/\$\$/fd/0 ] || exec 0</dev/null
		[ -e /proc/\$\$/fd/1 ] || exec 1</dev/null
		[ -e /proc/\$\$/fd/2 ] || exec 2</dev/null
		LD_PRELOAD=$PWD/$V/confined.so exec valgrind -q --vgdb=no --trace-children=yes --trace-children-skip='/bin/*,/usr/bin/*' \\
			--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=99 \\
			--log-file=$PWD/$V/log/%p.%n.${stand_in##*/} $PWD/$program "\$@"
	SCRIPT
	chmod +x "$stand_in"
done

B=$V tests/run.sh "$@"
status=$?
found=$(grep -l '^==' "$V"/log/* 2>/dev/null)
for log in $found; do
	echo "# $log"
	head -30 "$log"
done
[ -z "$found" ] || exit 1
exit $status
