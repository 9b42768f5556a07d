/* The compare page: up to COMPARE_MAX runs side by side, whichever a reader chooses. Its address names them,
 * compare.html#DIGEST,DIGEST…; a script reads what the export wrote of each and says what `ki compare` says: what differs, the ratio to
 * the first where the comparison keys are equal, and why there is none where they are not.
 *
 *   data/compare.js   {max, shard, run: [[column, title]…], case: likewise, objects: likewise, material: [column…], claims: {claim: words}}
 *   data/dAB.js       of each run whose digest begins with AB, behind what site_index.h has: case, [fields…], [median, p20, p80],
 *                     [the same as people read them], flags
 *   data/kN.js        of `shard` cases from N * shard on: [[fields…], [number of each object…]]
 *   data/oN.js        of `shard` objects likewise: [digest, [[leaf, text]…]]
 *
 * Cases and objects keep their numbers, so that their files stay as they are when others are added. */
#ifndef KI_STORE_SITE_COMPARE_H
#define KI_STORE_SITE_COMPARE_H

#include "store/compare.h"
#include "store/site_html.h"

/* A link to the page with these runs; the first is what the others are held against. */
void site_compare_link(struct page *p, const struct digest *const *runs, size_t count, const char *text);
/* Appends what dAB.js has of a run for this page, a comma before it. */
void site_compare_run(struct site *s, const struct site_run *r, struct buf *out);
/* Writes compare.html, its script and its data. */
int site_compare(struct site *s);

#endif
