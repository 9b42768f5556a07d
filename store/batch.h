/* A batch of run rows on its way into the catalog: finds which are new, numbers those, appends them and indexes them. */
#ifndef KI_STORE_BATCH_H
#define KI_STORE_BATCH_H

#include "store/index.h"
#include "store/ranges.h"
#include "store/run.h"

enum { BATCH_RUNS = 32768, CHANNELS_MAX = 64 };

struct batch {
	struct run_row *rows; /* BATCH_RUNS of them, in file order */
	size_t count;
	struct batch_scratch *scratch;
};
void batch_init(struct batch *b);
void batch_fini(struct batch *b);

/* What a flush reads and moves on. */
struct batch_target {
	struct index digests;
	struct index channels[CHANNELS_MAX]; /* by slot */
	size_t channel_count;
	uint8_t slot;          /* of the channel being published */
	uint32_t runs;         /* next run number */
	uint32_t next_segment;
	struct ranges carried; /* runs of this publication, old and new */
	uint64_t runs_new, conflicts;
};

/* Writes the batch in the given transaction and empties it. A conflict is a new run whose case and time an older run has too. */
int batch_flush(struct batch *b, struct txn *t, struct batch_target *target);

#endif
