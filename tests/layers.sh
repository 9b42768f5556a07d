#!/bin/sh
# Which folder may include which: core <- ingest; core <- normalize <- store (record.h only); verify -> core, kernels,
# normalize/record.h and build.h; kernels and core include no other folder.
cd "$(dirname "$0")/.." || exit 70
bad=$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[a-z]+/' core/*.[ch] ingest/*.[ch] normalize/*.[ch] store/*.[ch] \
	$(ls verify/*.[ch] verify/*.cu verify/*.cuh kernels/*.[ch] kernels/*.cu kernels/*.cuh 2>/dev/null) |
	awk -F'[:/"]' '{
		from = $1; line = $0
		split(line, q, "\""); split(q[2], t, "/"); to = t[1]; file = q[2]
		ok = to == from || (to == "core" && from != "kernels") || (from == "store" && file == "normalize/record.h") ||
		     (from == "verify" && (to == "kernels" || file == "normalize/record.h" || file == "normalize/build.h"))
		if (!ok) print line
	}')
if [ -n "$bad" ]; then
	echo "layers: includes against the direction:"
	echo "$bad"
	exit 1
fi
echo "layers: clean"
