/* Sentinels: calls whose result is known before and after, read round and between the cases of a batch. A batch whose sentinels
 * drift, or whose timer does not measure known lengths, is void. */
#ifndef KI_VERIFY_SENTINEL_H
#define KI_VERIFY_SENTINEL_H

#ifdef __cplusplus
extern "C" {
#endif

#include "verify/wire.h"

/* Read all of them: an empty launch, copies of 1 GiB (the best of three placements), an fp16 matrix product (NAN without cuBLAS), spins of known lengths. With
 * `stretch` other than 1 the spins last that much longer than they say, as if the clock ran fast: control 5. */
#ifdef __cplusplus
int sentinels_read(struct bench *, double stretch, struct sentinels *, struct err *);
#else
int sentinels_read(struct bench *, double stretch, struct sentinels *, struct err *) __attribute__((weak));
#endif

/* NULL when all `n` readings of a batch are within limits of themselves and of the first; else what is not: slope of the known lengths
 * within 0.5% of 1, empty launch within 25% or 1 us, copy within 3%, matrix product within 8% (its clock follows power). A copy
 * counts as the best of a reading and its neighbours: on an H200 one of eight readings is 3.81 instead of 4.25 TB/s, by where its
 * buffers lie, while every kernel measured beside it keeps its time. */
const char *sentinels_check(const struct sentinels readings[], int n);

#ifdef __cplusplus
}
#endif

#endif
