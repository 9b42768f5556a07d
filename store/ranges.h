/* A set of run numbers as ranges, because what one publication carries is mostly consecutive. */
#ifndef KI_STORE_RANGES_H
#define KI_STORE_RANGES_H

#include <stdbool.h>

#include "core/arena.h"

struct range {
	uint32_t first, count;
};
/* Starts zeroed. Between ranges_add and ranges_sort the ranges may overlap and be in any order. */
struct ranges {
	struct range *items;
	size_t count, room;
};
void ranges_add(struct ranges *r, uint32_t number);
void ranges_sort(struct ranges *r); /* ascending, disjoint, not adjacent */
uint64_t ranges_total(const struct ranges *r); /* after sort */
bool ranges_has(const struct ranges *r, uint32_t number); /* after sort */
void ranges_fini(struct ranges *r);

/* Pairs of varints: gap to the end of the range before, count. */
void ranges_write(const struct ranges *r, struct buf *out);
bool ranges_read(struct slice text, struct ranges *out); /* false when the bytes are not ours */

#endif
