/* What the watchdog asks of a worker process and what comes back: one JSON object a line each way, both ends here.
 *
 * The watchdog trusts nothing that it reads: lengths, ranges and counts are checked in wire_read_reply(), and whether an answer can be
 * true at all in reply_check(). A worker that is asked for a control named forged_… lies on purpose. */
#ifndef KI_VERIFY_WIRE_H
#define KI_VERIFY_WIRE_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/digest.h"
#include "verify/bench.h"
#include "verify/compare.h"
#include "verify/device.h"

enum { WIRE_LINE_MAX = 1 << 20, WIRE_SAMPLES_MAX = 10000, WIRE_SPINS = 4 };

enum ask { ASK_DEVICE, ASK_SENTINELS, ASK_BLOCK };

struct request {
    enum ask ask;
    char nonce[65];
    /* ASK_BLOCK */
    struct ki_case work;
    enum ki_pass pass;
    uint64_t seed;            /* below 2^53 */
    int64_t memory_bytes;     /* cap on what the case may take; 0: what there is */
    double source_budget_ms;
    bool first;               /* of the batch: warm up longer */
    bool whole;               /* of the case: also the whole check, the held call and the second method */
    double host_delay_us;     /* planted before every call, to see what a launch-bound case looks like; 0 */
    char control[32];         /* a dishonest implementation in place of the kernel; "" for the kernel */
    char bundles[1024];       /* folder of bundles; "" for the kernel */
    struct digest bundle;     /* with a folder: which one is replayed in place of the kernel */
    char child[1024];         /* program that runs the bundle's code, or the control, in a sealed process; "" to replay */
};

/* Readings of calls whose results are known (verify/sentinel.h); NAN where there is none. */
struct sentinels {
    double empty_ns, copy_gbps, matmul_tflops;
    double spin_ns[WIRE_SPINS]; /* windows of spins of 10, 50, 200 and 1000 us */
    double slope;               /* least squares of window on length */
    double clock_mhz;
};

struct reply {
    char nonce[65];
    char status[32]; /* one of the schema's statuses of a run */
    char text[256];
    struct device_cuda device;     /* ASK_DEVICE */
    struct sentinels sentinels;    /* ASK_SENTINELS */
    /* ASK_BLOCK */
    int64_t samples, throttled;
    double *ns, *cycles;           /* in the arena of wire_read_reply(), or the worker's */
    bool timed, complete, power_capped;
    int temperature_c, power_mw;   /* when the block ended; DEVICE_UNKNOWN without NVML */
    double half_width;
    struct bench_source source;
    struct bench_methods methods;  /* NAN when the second method was not asked for */
    bool checked;                  /* the whole check was made: `result` */
    struct compare_result result;
    int64_t compared;              /* timed calls compared whole */
    int64_t tensor_bytes;
};

void wire_put_request(const struct request *, struct buf *out);
int wire_read_request(struct slice line, struct request *, struct err *);

void wire_put_reply(enum ask, const struct reply *, struct buf *out);
/* ERR_DATA for anything but a well-formed reply to `request`. */
int wire_read_reply(struct slice line, const struct request *, struct arena *, struct reply *, struct err *);

/* Whether a block's reply can be true: its nonce is the request's, its samples are enough (or it says that it is incomplete), they fit
 * into the wall clock that the watchdog saw, and none claims to beat light (`light_ns`, 0 for no floor). NULL when it can, else
 * why not. */
const char *reply_check(const struct request *, const struct reply *, double wall_ns, double light_ns);

#endif
