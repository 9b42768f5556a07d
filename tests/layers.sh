#!/bin/sh
# Which folder may include which: core <- ingest; core <- normalize <- store (record.h only); verify -> core, kernels,
# normalize/record.h and build.h; kernels and core include no other folder. No name goes up. Of libraries,
# only ingest sees libcurl, only store LMDB, only verify and kernels CUDA.
cd "$(dirname "$0")/.." || exit 70
bad=$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+("|<(curl/|lmdb|cuda))' core/*.[ch] ingest/*.[ch] normalize/*.[ch] store/*.[ch] \
	$(ls verify/*.[ch] verify/*.cu verify/*.cuh kernels/*.[ch] kernels/*.cu kernels/*.cuh 2>/dev/null) |
	awk -F'[:/"]' '{
		from = $1; line = $0
		if (line ~ /include[ \t]+</) {
			if (!(line ~ /<curl/ ? from == "ingest" : line ~ /<lmdb/ ? from == "store" : from == "verify" || from == "kernels")) print line
			next
		}
		split(line, q, "\""); split(q[2], t, "/"); to = t[1]; file = q[2]
		ok = file !~ /\// || to == from || (to == "core" && from != "kernels") || (from == "store" && file == "normalize/record.h") ||
		     (from == "verify" && (to == "kernels" || file == "normalize/record.h" || file == "normalize/build.h"))
		if (!ok) print line
	}')
if [ -n "$bad" ]; then
	echo "layers: includes against the direction:"
	echo "$bad"
	exit 1
fi
echo "layers: clean"
