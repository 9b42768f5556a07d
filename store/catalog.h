/* What is published, read through one transaction: a consistent picture of one moment, however long the reader takes. */
#ifndef KI_STORE_CATALOG_H
#define KI_STORE_CATALOG_H

#include <jansson.h>

#include "normalize/record.h"
#include "store/channel.h"
#include "store/index.h"
#include "store/pack.h"
#include "store/ranges.h"
#include "store/run.h"

struct catalog_case {
	uint32_t id;
	struct digest digest, cohort; /* cohort: the comparison key */
	struct case_parts parts;
};

struct catalog {
	struct store st;
	bool borrowed;               /* `st` belongs to somebody else */
	struct txn t;
	struct meta_counts counts;
	struct channels channels;
	struct index digests, by_case[CHANNEL_ROOM];
	struct packer *packer;
	struct arena arena;          /* lives as long as the catalog */
	struct catalog_case **cases; /* by id, filled on first use */
	struct slice *labels;        /* likewise */
	struct ranges *carried;      /* runs by publication, all of them on first use; NULL before that */
	struct buf scratch;
	json_t *entries;             /* of entry.h, loaded on first use */
	struct link_table *links;    /* of link.h, likewise, in the arena */
	struct correction_table *corrections; /* of correction.h, likewise */
	struct err *err;
};

/* Opens DIR for reading. Close also when opening failed. */
int catalog_open(struct catalog *c, const char *directory, struct err *e);
/* The same on a store that is open already, for a writer that must read: LMDB wants one environment a process. Close before
 * writing. */
int catalog_attach(struct catalog *c, const struct store *st, struct err *e);
void catalog_close(struct catalog *c);

/* All of these return NULL or -1 when the store is damaged (the error is in c->err). */
const struct catalog_case *catalog_case(struct catalog *c, uint32_t id);
struct slice catalog_labels(struct catalog *c, uint32_t id); /* canonical JSON; `{}` when unreadable */
int catalog_run(struct catalog *c, uint32_t run, struct run_row *out);
/* Replaces `out` with the run's external id, resp. its canonical identity body. */
int catalog_external_id(struct catalog *c, const struct run_row *row, struct buf *out);
int catalog_body(struct catalog *c, const struct run_row *row, struct buf *out);
/* An object's id (1 found, 0 unknown, -1 failed); its canonical body, replacing `out`; its digest. */
int catalog_object_id(struct catalog *c, const struct digest *d, uint32_t *id);
int catalog_object(struct catalog *c, uint32_t id, struct digest *d, struct buf *out);
/* Metadata of an object as a JSON array of objects, in digest order. The caller owns it. */
json_t *catalog_metadata(struct catalog *c, uint32_t id);
/* Loads an object by digest as a tree; NULL when it is unknown (ERR_CORRUPT, since something cited it). Caller owns. */
json_t *catalog_load(struct catalog *c, const struct digest *d);
/* A publication as JSON. The caller owns it. */
json_t *catalog_publication(struct catalog *c, uint32_t id);
/* What upstream calls a publication: its gh-pages entry, or its commit. Valid as long as `publication`. */
const char *catalog_identity(const json_t *publication);
/* The runs that a publication carried; `out` starts zeroed. */
int catalog_carried(struct catalog *c, uint32_t id, struct ranges *out);
/* Publications that carried a run, ascending; *count of them; the caller frees. The first call reads the lists of all. */
uint32_t *catalog_carriers(struct catalog *c, uint32_t run, size_t *count);

/* Calls `found` for every published run of a case that a channel carried. */
int catalog_case_runs(struct catalog *c, uint8_t slot, uint32_t case_id, void (*found)(uint32_t run, void *context), void *context);

/* Runs of which a text is a digest or a prefix of one (8 or more hex digits, `sha256:` optional), an external id, or a name:
 * their numbers, ascending; the caller frees. *count is 0 when there are none. */
uint32_t *catalog_find(struct catalog *c, const char *text, size_t *count);
/* The same when exactly one run is meant: ERR_NOTFOUND, or ERR_USAGE that lists the candidates. */
int catalog_find_one(struct catalog *c, const char *text, uint32_t *run);

/* Replaces `out` with the name of a run, made of its external id (manifests.md section 3). */
void catalog_run_name(struct slice external_id, struct buf *out);

#endif
