/* Two releases of every series side by side. */
#ifndef KI_STORE_PAIR_H
#define KI_STORE_PAIR_H

#include "store/screen.h"
#include "store/series.h"

enum claim { CLAIM_SLOWER, CLAIM_FASTER, CLAIM_OVERLAP, CLAIM_NO_SPREAD, CLAIM_ONLY_FROM, CLAIM_ONLY_TO, CLAIMS };
/* What the published spreads allow to say of `to` against `from`; NULL for a release that the series has no run of. */
enum claim pair_claim(const struct series_point *from, const struct series_point *to);

/* The latest run of a release: a liger_version, a gh-pages entry, or a commit by 7 or more digits. NULL when there is none. */
const struct series_point *pair_find(const struct series *s, const char *release);

/* Writes a line a series that has a run of either, and a count of each claim; as JSON, one canonical object a line.
 * ERR_NOTFOUND when no series has a run of one of the releases. */
int pair_print(struct catalog *c, const struct series *const *series, size_t count, const char *from, const char *to, bool json,
	       const struct screen *on);

#endif
