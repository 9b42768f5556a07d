#!/bin/sh
# Every input that fuzzing has found or was given to start from, through the code it was found in; canonical JSON against Python's.
. tests/tap.sh

for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	name=${name#fuzz_}
	set -- "tests/fuzz/corpus/$name"
	[ -d "tests/fuzz/found/$name" ] && set -- "$@" "tests/fuzz/found/$name"
	inputs=$(find "$@" -type f | wc -l)
	done=$("$B/tests/fuzz/$name" "$@" 2>"$D/all")
	status=$?
	tail -30 "$D/all" >"$D/err"
	ok $status "no input of $name does harm"
	is "$done" "$inputs" "every committed input of $name was tried"
done

if have python3; then
	python3 tests/fuzz/canonical.py "$B/bin/ki-normalize" --seed 1 --count 4000 >"$D/err" 2>&1
	ok $? "4,000 random documents have the canonical text that Python's parser and float text give them"
	printf '%s\n' '#!/bin/sh' 'sed "s/0/1/"' >"$D/wrong"
	chmod +x "$D/wrong"
	python3 tests/fuzz/canonical.py "$D/wrong" --seed 1 --count 10 >"$D/out" 2>&1
	is $? 1 "a program that writes another text is told apart"
else
	skip "random documents have the canonical text that Python gives them" "no python3"
fi
plan
