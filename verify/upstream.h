/* Upstream's own code as an implementation: a bundle replayed through the driver. Every launch, fill and copy of the bundle goes to the
 * caller's stream in order, on the tensors of the call where a buffer is one, and on memory of its own for the rest: scratch, constants,
 * what works in place (the call's inputs stay as they are) or on another float type. Copies between the two are made before and after
 * the call, outside of any timed window. The host code is this program's: nothing of upstream's runs on the host. */
#ifndef KI_VERIFY_UPSTREAM_H
#define KI_VERIFY_UPSTREAM_H

#include "verify/bundle.h"
#include "verify/compare.h"
#include "verify/driver.h"

struct upstream;

/* Loads the bundle's kernels from its folder and allocates its memory; the bundle must be fit for the case and outlive the result.
 * ERR_DATA for a bundle that cannot be loaded, ERR_TEMP when memory is short. */
struct upstream *upstream_open(const char *folder, const struct bundle *, const struct place *, const struct driver *, const struct ki_case *,
    struct err *);
void upstream_close(struct upstream *); /* NULL is fine */

struct implementation upstream_implementation(struct upstream *);

#endif
