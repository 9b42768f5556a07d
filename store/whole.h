/* A run with everything it cites: its identity body, the objects behind it, the publications that carried it. One cache serves many
 * runs, for they cite a few hundred objects between them. */
#ifndef KI_STORE_WHOLE_H
#define KI_STORE_WHOLE_H

#include <jansson.h>

#include "store/view.h"

struct whole_cache; /* objects by digest and publications by id, parsed once */
struct whole_cache *whole_cache_new(struct catalog *c);
void whole_cache_free(struct whole_cache *cache); /* NULL is fine */
/* An object's body, and a publication without its report. They belong to the cache. NULL when the store is damaged. */
const json_t *whole_object(struct whole_cache *cache, const struct digest *d);
const json_t *whole_publication(struct whole_cache *cache, uint32_t id);

struct whole {
	struct catalog *c;
	struct whole_cache *cache;
	struct view v;
	const struct case_parts *parts;
	const json_t *operation, *workload, *implementation, *protocol, *environment, *project; /* identity bodies, the cache's */
	uint32_t *carriers; /* publications, ascending */
	size_t carrier_count;
};
/* `w` starts zeroed and may be loaded again and again; whole_fini frees it. `k` and `m` must outlive it. */
int whole_load(struct whole *w, struct whole_cache *cache, const struct cohort *k, const struct member *m);
void whole_fini(struct whole *w);

/* Calls `put` for everything that a run's manifest says was measured, in the order in which pages and text show it. */
typedef void whole_measurement(void *context, const char *metric, const char *statistic, const json_t *value, const char *unit);
void whole_measurements(const json_t *manifest, whole_measurement *put, void *context);

/* All of it as one tree: the columns of view.h, `manifest`, `cites`, `config`, `publications`, `reruns`, and `corrections` where there
 * are any. The caller owns it; NULL when
 * the store is damaged. */
json_t *whole_json(struct whole *w);

#endif
