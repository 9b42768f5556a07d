/* What people say about a run, signed: that it is retracted, or a note. Entries of entry.h; nothing of a run itself is ever changed.
 *
 * A retracted run leaves its ranking with the code RETRACTED and stays readable; a note changes nothing. Each is undone by a later
 * entry, and that one by another. What was signed is an in-toto statement about the run, in a DSSE envelope (core/sign.h), whose
 * predicate is {"type":"retract","at","code","reason"}, {"type":"note","at","text"} or {"type":"undo","at","entry","reason"?}. The
 * entry is the predicate with
 *
 *   "run"          digest of the run
 *   "id"           digest of the payload: what another entry names it by, and what `ki show` prints
 *   "key"          of the signer, approved in config/signers.json when the entry was made
 *   "publications" how many the store had then: where the entry stands among them
 *   "envelope"     as it was signed */
#ifndef KI_STORE_CORRECTION_H
#define KI_STORE_CORRECTION_H

#include <jansson.h>

#include "store/catalog.h"

/* Whether an entry is a retraction, a note or an undo. */
bool correction_is(const json_t *entry);

/* The retraction of a run that stands, the latest of them; NULL when none does. It belongs to the catalog. */
const json_t *correction_retraction(struct catalog *c, const struct digest *run);

/* The entries about a run, oldest first, without their envelopes; those that were undone have "undone": true. The caller owns it. */
json_t *correction_of(struct catalog *c, const struct digest *run);

/* The one entry of which a text is the id, or 8 or more hex digits that it begins with; NULL with ERR_NOTFOUND or ERR_USAGE. */
const json_t *correction_find(struct catalog *c, const char *text);

/* A moment at which a run was retracted, or stood again. */
struct correction_step {
	struct digest run; /* first, for digest_search */
	uint64_t at; /* place in the log: publications before it, less one, << 32 | number of the entry + 1 */
	bool retracted;
	const json_t *entry; /* the catalog's */
};
/* All of them, by run, then in order; `*count` of them. They belong to the catalog. */
const struct correction_step *correction_steps(struct catalog *c, size_t *count);

#endif
