/* Upstream's own code as an implementation, run by a sealed child (verify/child.h) on this process's tensors.
 *
 * The child gets handles to the memory of every input set and makes its own objects on them. As an implementation it is asked for a call
 * and waited for. As a window (bench_remote) the call is queued behind a hold in the child's own stream; what is drawn after that is
 * news to it, so nothing can have been computed beforehand; the release, and the end that the device writes into a shared page, are read
 * by this process's clock. Beside that stands what the child's own events say: two clocks, which have to agree. */
#ifndef KI_VERIFY_GUEST_H
#define KI_VERIFY_GUEST_H

#include "verify/bench.h"
#include "verify/child.h"
#include "verify/trial.h"

struct guest;

/* Gives the case to the child, with the tensors of every set of the trial. `provider`: whose code. `role`: which dishonest child it is to be for
 * this case, "" for none. ERR_UNAVAILABLE, in words, when the child cannot run it. The child and the trial must outlive it. */
struct guest *guest_open(struct child *, const char *provider, const char *role, const struct trial *, struct err *e);
void guest_close(struct guest *); /* NULL is fine; the child forgets the case */

struct implementation guest_implementation(struct guest *);
/* Valid as long as the guest. NULL when the call waits for the device by itself: it cannot be held. */
const struct bench_remote *guest_remote(struct guest *);

/* The source's protocol in the child. 0 or -1. */
int guest_source(struct guest *, double budget_ms, struct bench_source *out);

/* What went wrong first with the child, for the callers of all the above, which give numbers only. ERR_NONE when nothing did: a failure is
 * this process's own then. */
const struct err *guest_error(const struct guest *);

#endif
