/* What reruns say about records: link entries, and the evidence level that follows from them (manifests.md section 5,
 * verification.md sections 1, 2 and 6). Derived on reading. */
#ifndef KI_STORE_LINK_H
#define KI_STORE_LINK_H

#include <jansson.h>

#include "store/catalog.h"

enum level { LEVEL_REPORTED, LEVEL_REPRODUCIBLE, LEVEL_VERIFIED, LEVEL_REPLICATED };
const char *level_name(enum level l);

/* Level of a run's latency. A native rerun that passed is verified itself and raises nobody else; an upstream rerun that
 * confirmed its subject makes that verified, and two of them that differ in signing key, GPU and machine make it replicated. */
enum level link_level(struct catalog *c, const struct digest *run);

/* The links in which a run is the subject or the rerun, oldest first, as a JSON array of link entries; the caller owns it. */
json_t *link_of(struct catalog *c, const struct digest *run);

/* The verdict on a subject that stands: a refutation only when two batches say so, else `inconclusive`. NULL without links. */
const char *link_verdict(const json_t *links, const char *subject);

#endif
