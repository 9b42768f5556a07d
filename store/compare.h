/* 2 to 8 runs side by side. */
#ifndef KI_STORE_COMPARE_H
#define KI_STORE_COMPARE_H

#include "store/screen.h"
#include "store/view.h"

enum { COMPARE_MAX = 8 };
/* Writes aligned fields, those that differ marked; the first difference that makes the runs incomparable; medians as bars, of
 * runs that may be compared; the ratio of each median to the first, with what the spreads allow to say: where [p20, p80] overlap, no change is claimed. */
int compare_runs(struct catalog *c, const uint32_t *runs, size_t count, bool json, const struct screen *on);

/* Columns of view.h in the order in which a difference matters: the first of these that differs is why two runs cannot be compared. */
extern const char *const compare_material[];
extern const size_t compare_material_count;

/* What may be said of one run against another, and its words. */
struct compare_claim {
	const char *claim, *words;
};
extern const struct compare_claim compare_claims[];
extern const size_t compare_claim_count;

/* What the spreads of two runs of one cohort allow to say of `b` against `a`, in words. */
const char *compare_claim_words(const struct member *a, const struct member *b);

#endif
