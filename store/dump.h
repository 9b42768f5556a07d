/* All that a catalog holds, as text: what `ki import` (load.h) makes an equal store from, digest for digest. Beside it a store has kept
 * files (snapshots/, evidence/, samples/), named by their digests and referred to from here; they are copied as they are.
 *
 * One canonical JSON object a line, in this order; ids and numbers follow from the order:
 *
 *   {"channels":[{"entries":B,"name":T},…],"counts":{"cases":N,"entries":N,"labels":N,"objects":N,"publications":N,"runs":N},"dump":1,"type":"store"}
 *   an object line of the wire (normalize/record.h) for each object and metadata text of it, `{}` when it has none
 *   a case line of the wire for each case
 *   {"set":{…labels…},"type":"labels"} for each set of labels
 *   for each publication {"publication":{…},"runs":[[first,count],…],"type":"publication"}, the numbers of all runs that it carried, and
 *     then a run line of the wire for each run that it brought
 *   {"entry":{…},"type":"entry"} for each entry
 *   {"lines":N,"type":"end"}, N being the lines before it
 *
 * Times of publication are in it, so unlike those of export.h two dumps are equal only when one store came from the other. */
#ifndef KI_STORE_DUMP_H
#define KI_STORE_DUMP_H

#include <stdio.h>

#include "store/catalog.h"

enum { DUMP_VERSION = 1, DUMP_LINE_MAX = 256 << 20 /* a publication's list of runs has no other limit */ };

/* Writes the dump to `out`. */
int dump_write(struct catalog *c, FILE *out);
/* The digest of the text that dump_write writes, and its lines. */
int dump_digest(struct catalog *c, struct digest *out, uint64_t *lines);

#endif
