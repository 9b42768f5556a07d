/* All runs that pass a filter, each with its standing in its cohort, in a chosen order. Holds about 60 bytes a run. */
#ifndef KI_STORE_LISTING_H
#define KI_STORE_LISTING_H

#include "store/view.h"

enum sort {
	SORT_STORE,   /* as first published */
	SORT_TIME,    /* observedAt */
	SORT_VERSION, /* liger_version */
	SORT_RANK,    /* unranked last */
	SORT_ID,      /* external id */
	SORT_DIGEST,
};
bool sort_parse(const char *text, enum sort *out); /* store, time, version, rank, id, digest */

struct listing {
	struct catalog *c;
	struct listing_item *items;
	struct cohort *heads; /* key and counts of each cohort seen; no members */
	size_t count, room, head_count;
	struct member current;
	const struct filter *filter;
	enum sort sort;
};
int listing_load(struct catalog *c, const struct filter *filter, enum sort sort, struct listing *out);
void listing_fini(struct listing *l);
/* Fills the view of item `i`, valid until the next call. */
int listing_view(struct listing *l, size_t i, struct view *v);

#endif
