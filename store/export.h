/* Normalized JSON dumps: objects, cases and runs as canonical JSON lines, in kind and digest order, so that the same catalog
 * gives the same bytes whatever the order in which it came. No fetch or publish time is inside.
 *
 *   {"body":{…},"digest":D,"kind":K,"metadata":[…],"type":"object"}
 *   {"body":{…},"digest":D,"type":"case"}
 *   {"body":{…manifest…},"case":D,…the columns of view.h by their JSON names…,"labels":{…},"type":"run",…}
 *
 * The dump is compressed with zstd; latest.json beside it says {file, sha256, sizeBytes, lines, generatedAt}. */
#ifndef KI_STORE_EXPORT_H
#define KI_STORE_EXPORT_H

#include <stdio.h>

#include "store/listing.h"

/* Writes the dump of the runs that pass the filter, and what they cite, to `out` as JSON lines. */
int export_jsonl(struct catalog *c, const struct filter *filter, FILE *out);
/* The same as one JSON array, for --format json. */
int export_json(struct catalog *c, const struct filter *filter, FILE *out);
/* Writes DIR/catalog-<date of the newest publication>-<8 hex digits of the file's digest>.jsonl.zst and DIR/latest.json.
 * `path` receives the dump's path (the caller frees it). */
int export_files(struct catalog *c, const struct filter *filter, const char *directory, char **path);

#endif
