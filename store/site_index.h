/* The index page, and what its search reads.
 *
 *   data/names.js    {pages: [[name of a page, title]…], shards: [[shard, operation]…]}
 *   data/n-SLUG.js   [[external id up to the time, [[time, run digest]…]]…], the runs of one operation
 *   data/dAB.js      [[run digest, external id, …]…], the runs whose digest begins with AB; the rest: site_compare.h
 *
 * Each calls kiShard(NAME, VALUE): a page opened from file:// may load scripts, but not read files. */
#ifndef KI_STORE_SITE_INDEX_H
#define KI_STORE_SITE_INDEX_H

#include "store/site_html.h"

/* The form of the search, and the places of its answers; once a page. */
void site_put_search(struct page *p, const char *label);

/* Wants s->runs in the order of site_operations(); leaves it sorted by digest. */
int site_index(struct site *s);

#endif
