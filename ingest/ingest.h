/* What the sources of publications (committed.c, pages.c, local.c) share: the run's settings, its counts, and the one way by which
 * a publication is kept and handed over. */
#ifndef KI_INGEST_INGEST_H
#define KI_INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "ingest/fetch.h"
#include "ingest/publication.h"
#include "ingest/published.h"
#include "ingest/snapshot.h"
#include "ingest/sources.h"
#include "ingest/state.h"

struct ingest {
	const struct sources *sources;
	struct snapshots *snapshots;
	const struct published *published; /* NULL: no list, only what is kept for the first time is handed over */
	struct fetch *fetch;               /* NULL when offline */
	bool dry_run;                      /* keep nothing, remember nothing */
	bool backfill, recheck;

	/* counts for the summary */
	unsigned kept;      /* publications kept for the first time */
	unsigned emitted;   /* source lines written */
	unsigned unchanged; /* publications looked at that had nothing new */
	unsigned changed;   /* entries whose bytes differ from those kept before */
	unsigned missing;   /* listed by upstream, but not there */
};

/* Local files through the same code: keeps `c` unless the catalog has it, and hands it over. Fills digest and size of `p`. */
int ingest_local(struct ingest *in, const struct content *c, struct publication *p, struct err *e);
/* A fetched body: keeps it and hands it over unless the catalog has it. Fills digest, size, URLs and headers of `p`. `before` is the
 * digest this publication had when it was fetched earlier, or NULL: the same bytes again are nothing new, other bytes are a change
 * and reported. */
int ingest_fetched(struct ingest *in, const struct fetch_reply *reply, const char *url, struct publication *p,
		   const struct digest *before, struct err *e);
/* Something kept earlier: hands it over when a list was given that lacks it. `p` has its digest. `*lost` is set when the snapshot is
 * not there whole and must be fetched again. */
int ingest_held(struct ingest *in, struct publication *p, bool *lost, struct err *e);

/* Channels over the network: manifests.md section 7. Each runs one channel to its end; the first error stops it, and what was done
 * before stays done. */
int committed_run(struct ingest *in, const struct source_channel *channel, struct err *e);
int pages_run(struct ingest *in, const struct source_channel *channel, struct err *e);

#endif
