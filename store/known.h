/* What the writer keeps in memory of objects, cases and labels, so that the rows of one case cost one look-up: ids by digest,
 * loaded on first use. Grows with the number of distinct cases, not with rows. */
#ifndef KI_STORE_KNOWN_H
#define KI_STORE_KNOWN_H

#include "normalize/record.h"
#include "store/pack.h"
#include "store/store.h"

struct known_case {
	struct digest digest;
	struct case_parts parts;
	uint32_t id;
};

struct known {
	struct arena arena;
	struct packer *packer;
	struct known_case **cases; /* open addressing by digest prefix; `case_room` is a power of two */
	size_t case_count, case_room;
	struct slice *labels; /* by id */
	size_t label_count;
	uint32_t last_label;
};
void known_init(struct known *k);
void known_fini(struct known *k);

/* The next `…Digest":"sha256:…"` of a canonical text, where the pattern cannot stand inside a string, from `*at` on, which moves behind it:
 * 1 found, its text at `*cited`; 0 none; -1 one that is no digest. */
int known_citation(struct slice body, size_t *at, const char **cited, struct digest *out);
/* Id of an object: 1 found, 0 unknown, -1 failed. */
int known_object(struct txn *t, const struct digest *d, uint32_t *id);
/* Adds an object under the next id unless it is there, with its metadata; *added tells. The caller has checked the digest; ERR_DATA
 * when one of the texts is not canonical JSON, for readers would find it damaged. */
int known_add_object(struct known *k, struct txn *t, struct meta_counts *counts, const struct digest *d, struct slice body,
		     struct slice metadata, bool *added);

/* The case of a digest, or NULL when it is unknown or reading failed (then t->err says). */
const struct known_case *known_case(struct known *k, struct txn *t, const struct digest *d);
/* Adds a case unless it is there: every object it names must be known, and its text be canonical JSON. */
int known_add_case(struct known *k, struct txn *t, struct meta_counts *counts, const struct digest *d, struct slice body, bool *added);

/* The id of a label text, added when new; ERR_DATA when that is not canonical JSON. */
int known_label(struct known *k, struct txn *t, struct meta_counts *counts, struct slice labels, uint32_t *id);

/* Reads the packed value of an object (`cohort` NULL) or a case: its digest, its comparison key, its text appended to `out`. */
int known_unpack(struct packer *p, const MDB_val *value, struct digest *d, struct digest *cohort, struct buf *out, struct err *e);

/* 64-bit hash under which external prefixes are filed. */
uint64_t known_prefix_hash(struct slice prefix);

#endif
