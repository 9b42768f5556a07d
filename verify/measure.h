/* One block: a case, an implementation, the rules of verify/trial.h and the clock of verify/bench.h put together. This is the only
 * place where all four meet, and the dishonest implementations take the same way as the kernels. */
#ifndef KI_VERIFY_MEASURE_H
#define KI_VERIFY_MEASURE_H

#include "verify/child.h"
#include "verify/tolerance.h"
#include "verify/wire.h"

/* What a measured process measures with, from block to block. */
struct measurer {
    const struct place *place;
    struct bench *bench;                 /* NULL: no clock, calls are only checked */
    struct nvml *nvml;                   /* may be NULL */
    const struct tolerances *tolerances;
    struct child *child;                 /* the one that runs upstream's code; NULL until a request needs it. Whoever owns this ends it. */
    bool dishonest;                      /* it has played a control: upstream's code gets another one */
};

/* Fills the status, text and block part of `reply`; its ns and cycles must have room for WIRE_SAMPLES_MAX. -1 (with the error) when the
 * process had better end, because its device is not to be trusted any more; the reply holds a status then too. */
int measure_block(struct measurer *, const struct request *, struct reply *, struct err *);

#endif
