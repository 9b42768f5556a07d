/* Small canonical texts, compressed against a dictionary of text that all of them share. The dictionary is part of the store's
 * schema: the same text gives the same bytes, and changing it needs a new schema version. */
#ifndef KI_STORE_PACK_H
#define KI_STORE_PACK_H

#include "core/arena.h"
#include "core/err.h"

struct packer;
struct packer *packer_new(void);
void packer_free(struct packer *p); /* NULL is fine */

/* Appends the packed form of `text`. */
void pack(struct packer *p, struct slice text, struct buf *out);
/* Appends the text that `packed` holds; ERR_CORRUPT when it is not ours. */
int unpack(struct packer *p, struct slice packed, struct buf *out, struct err *e);

#endif
