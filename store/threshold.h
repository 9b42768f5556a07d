/* Numbers of config/ that carry their reason: {"name": {"value": 1.05, "reason": "why"}}. */
#ifndef KI_STORE_THRESHOLD_H
#define KI_STORE_THRESHOLD_H

#include <jansson.h>

#include "core/err.h"

struct threshold {
	const char *name;
	double *to, least, below; /* least <= value < below */
};
/* Fills each of `wanted` from its member of `table`. A member that is missing, out of range or without a reason is ERR_CONFIG, named as
 * `where` and its name. */
int thresholds_read(const json_t *table, const struct threshold *wanted, size_t count, const char *file, const char *where, struct err *e);

#endif
