/* The one writer of the catalog, a publication at a time: objects, cases and runs, then the publication, which makes them visible.
 *
 * Everything is hashed again, every citation resolved, every run body rebuilt from its row and compared. Batches of runs are committed
 * as they fill, beyond the published counts, where no reader looks; the transaction of writer_publish moves the counts. A writer that
 * stops before leaves nothing that anybody sees, and the next one drops the remains (recover.h). */
#ifndef KI_STORE_WRITER_H
#define KI_STORE_WRITER_H

#include <jansson.h>

#include "store/batch.h"
#include "store/channel.h"
#include "store/known.h"

struct writer {
	struct store *st;
	bool dry_run; /* one transaction from end to end, never committed */
	struct err *err;
	struct txn t;
	struct meta_counts counts; /* what this publication will publish */
	struct known known;
	struct channels channels;
	struct batch batch;
	struct batch_target target;
	uint64_t runs, objects, cases; /* rows taken, objects and cases added since writer_begin */
	struct buf text, external_id;
};
void writer_init(struct writer *w, struct store *st, bool dry_run, struct err *e);
void writer_fini(struct writer *w); /* whatever was not published is given up */

/* Begins a publication, and says of which channel; a channel is added when it is new. */
int writer_begin(struct writer *w);
int writer_channel(struct writer *w, struct slice name, bool entries);

/* Take a record of the wire. What it cites must have been taken before: ERR_DATA otherwise, and for bytes that are not those of the
 * digest. A run that the store has already is carried again. */
int writer_object(struct writer *w, const struct digest *d, struct slice body, struct slice metadata);
int writer_case(struct writer *w, const struct digest *d, struct slice body);
int writer_run(struct writer *w, const struct digest *d, const struct digest *case_digest, struct slice body, struct slice labels);
/* Takes a run that the store has, by its number. */
int writer_known_run(struct writer *w, uint32_t run);
/* The id of a label set, which is added when it is new. */
int writer_labels(struct writer *w, struct slice labels, uint32_t *id);

/* Writes what is left of the last batch; `target.carried` is then what the publication carries, `target.runs_new` how many are new. */
int writer_settle(struct writer *w);
/* Publishes all of it under the next id, durable when it returns 0. After writer_settle. */
int writer_publish(struct writer *w, const json_t *publication, const struct digest *snapshot);
/* Ends a publication without its runs. Objects and cases stay: they are true by themselves, and what comes later may cite them
 * without sending them again. */
int writer_drop(struct writer *w);

#endif
