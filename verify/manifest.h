/* The manifests of a controlled rerun: project, implementation, protocol, environment and run, as identity bodies with digests and
 * metadata (manifests.md; JSON Schemas of the kinds). They are published under their own digests, beside those of the record. */
#ifndef KI_VERIFY_MANIFEST_H
#define KI_VERIFY_MANIFEST_H

#include "normalize/build.h"
#include "verify/device.h"
#include "verify/hardware.h"
#include "verify/job.h"
#include "verify/stats.h"

/* The project whose kernels these are. */
int manifest_project(struct arena *, struct object *out, struct err *);
/* Its kernel for the operation of a job; cites the operation. */
int manifest_implementation(const struct job *, struct arena *, struct object *out, struct err *);
/* Upstream's code as it was replayed: what the record's implementation states, and beside it release and commit as far as they are known, and
 * what it was compiled for. `same_code`: the installed files are shown to be those of the commit or release that the record names. */
int manifest_upstream(const struct job *, const struct hardware *, bool same_code, struct arena *, struct object *out, struct err *);
/* The controlled protocol for a pass, here or in a child: method and constants, no tool version. */
int manifest_protocol(enum ki_pass, bool by_child, struct arena *, struct object *out, struct err *);
/* What two boards of one product with equal software share: no serial number, clock or host in it. */
int manifest_environment(const struct device_cuda *, const struct device_nvml *, const struct device_host *, const struct hardware *,
    struct arena *, struct object *out, struct err *);
/* The CPU device's: what checked the result, since nothing was timed. */
int manifest_environment_cpu(const struct device_host *, struct arena *, struct object *out, struct err *);

struct manifest_run {
    const struct job *job;
    struct digest implementation, protocol, environment, samples;
    const char *status;
    double max_error;                   /* largest over all tensors; NAN when it was not checked */
    const struct stats_summary *timing; /* NULL: not timed */
    double t_src_ns, h_ns;              /* medians; used with timing */
    double bytes, flops, copy_gbps;     /* of the operation's floor (dense); measured copy, NAN for none */
    int64_t observed_ms;
    const char *batch;
};
/* The run; cites workload, implementation, protocol and environment. */
int manifest_run(const struct manifest_run *, struct arena *, struct object *out, struct err *);

#endif
