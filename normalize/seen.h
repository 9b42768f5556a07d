/* Which runs of one file have been seen: exact duplicates are emitted once, and two values under one external id are noticed.
 * Bounded: it remembers the last SEEN_MAX runs at least, far more than any published file has; what repeats farther apart is
 * emitted again, which changes nothing in an append-only store. */
#ifndef KI_NORMALIZE_SEEN_H
#define KI_NORMALIZE_SEEN_H

#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"

enum { SEEN_MAX = 1 << 15 };

enum seen_result { SEEN_NEW, SEEN_DUPLICATE, SEEN_CONFLICT };

struct seen_run {
	uint64_t id, digest; /* 64 bits of each; id 0 is a free slot */
};
/* A table starts zeroed. */
struct seen {
	struct seen_run *now, *before; /* two generations; the older is dropped when the younger is full */
	size_t slots, used;             /* of `now`; `before` exists only at the largest size */
};

void seen_fini(struct seen *s);
void seen_clear(struct seen *s);
/* Remembers a run. SEEN_CONFLICT: the id is there already, with other digests only. */
enum seen_result seen_add(struct seen *s, const char *external_id, size_t len, const struct digest *digest);

#endif
