/* What was published, night by night, and how the store stands. */
#ifndef KI_STORE_JOURNAL_H
#define KI_STORE_JOURNAL_H

#include <stdio.h>

#include "store/catalog.h"

/* Publications, newest first, at most `limit` (0: all); as JSON, one canonical object a line. */
int journal_log(struct catalog *c, uint64_t limit, bool json, FILE *out);
/* Counts, sizes and the age of each channel. ERR_TEMP (after writing) when both the newest publication and the last night that
 * looked at upstream and took its news (report.json, core/nightly.c) are older than `max_age_hours` (0: never stale). */
int journal_status(struct catalog *c, double max_age_hours, bool json, FILE *out);
/* One line a publication made under the tables with digest `config`: channel, commit or entry, snapshot digest, by tabs: what
 * ki-ingest need not send again. */
int journal_published(struct catalog *c, const char *config, FILE *out);

#endif
