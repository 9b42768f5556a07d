/* config/tolerances.json: what each tensor of an operation may be off by. Checked whole when loaded; an unknown field, a missing
 * reason or a number that is not positive is ERR_CONFIG with line and column where there is one. */
#ifndef KI_VERIFY_TOLERANCE_H
#define KI_VERIFY_TOLERANCE_H

#include "core/err.h"
#include "kernels/kernel.h"
#include "verify/compare.h"

struct tolerances;

struct tolerances *tolerances_load(const char *path, struct err *);
void tolerances_free(struct tolerances *);

/* One tolerance for each tensor of the case's operation, by position; with `upstream`, with the exceptions for upstream's own code at the
 * case's float type. ERR_CONFIG when its class is not in the file. */
int tolerances_of(const struct tolerances *, const struct ki_case *, bool upstream, struct tolerance out[KI_MAX_TENSORS], struct err *);

#endif
