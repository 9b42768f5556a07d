/* One block: a case, an implementation, the rules of verify/trial.h and the clock of verify/bench.h put together. This is the only
 * place where all four meet, and the dishonest implementations take the same way as the kernels. */
#ifndef KI_VERIFY_MEASURE_H
#define KI_VERIFY_MEASURE_H

#include "verify/tolerance.h"
#include "verify/wire.h"

/* Fills the status, text and block part of `reply`; its ns and cycles must have room for WIRE_SAMPLES_MAX. `bench` NULL: no clock, the
 * calls are only checked. -1 (with the error) when the process had better end, because its device is not to be trusted any
 * more; the reply holds a status then too. */
int measure_block(const struct place *, struct bench *, struct nvml *, const struct request *, const struct tolerances *, struct reply *,
    struct err *);

#endif
