/* Device time of a call, measured like an instrument: verification.md section 4. Knows nothing of operations: what is timed is
 * whatever `enqueue` puts on the stream.
 *
 * One sample: new inputs and poison (`prepare`), persisting-L2 carve-out zeroed, then a kernel that holds the stream until the
 * host has queued the rest: twice the L2 size written, start event, call, end event, check (`after`), a clock probe. Launch
 * cost is therefore hidden, and the window is what the device does between the two events, right after a flush as in the source.
 * Dangers of the holding kernel: a call that waits for the stream can never be released; the kernel gives up after 2 s, and the
 * sample is refused. All modules must be loaded before (CUDA_MODULE_LOADING=EAGER, and a first call outside of any sample).
 *
 * Functions return 0 or -1 and fill the error: ERR_TEMP for a deadline or short memory, ERR_IO for a failing device. */
#ifndef KI_VERIFY_BENCH_H
#define KI_VERIFY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define BENCH_OPTIONAL
#else
#define BENCH_OPTIONAL __attribute__((weak)) /* not there without nvcc: ask bench_built_in() */
#endif

#include "core/err.h"

/* A call that runs in another process: queued there behind a hold, released by this one, timed by both. 0 or a cudaError_t. */
struct bench_remote {
    /* Returns when all is queued and held, or, when it fails, nothing is; `empty`: all but the call itself. */
    int (*queue)(void *state, bool empty);
    /* Lets it go and waits for its end. `outer_ns`: from the release to the end, by this process's clock. Asks nothing of the other process. */
    int (*release)(void *state, double *outer_ns);
    /* What the other process says between its events: only after what the call left has been looked at, since it may work while it answers. */
    int (*times)(void *state, double *inner_ns);
    void *state;
};

struct bench_call {
    /* Before each call, outside the window: give it values it has not seen. May be NULL. 0 or a cudaError_t. */
    int (*prepare)(void *state, void *stream, uint64_t sample);
    /* The timed work. Must not wait. 0 or a cudaError_t. */
    int (*enqueue)(void *state, void *stream);
    /* Right behind the end event in stream order: enqueue a look at the outputs. May be NULL. 0 or a cudaError_t. */
    int (*after)(void *state, void *stream, uint64_t sample);
    /* When the sample is over (`number` as given): 0 to keep it, 1 to refuse it (state knows why), or -1 on error. May be NULL. */
    int (*accept)(void *state, uint64_t sample);
    void *state;
    /* NULL: the call runs here. Else enqueue is not used for samples, and renew gives the held call values it has not seen. */
    const struct bench_remote *remote;
    int (*renew)(void *state, void *stream, uint64_t sample);
};

struct bench_sample {
    double ns;         /* between the events */
    double outer_ns;   /* of a remote call: by this process's clock, with all that is round the call */
    double cycles;     /* ns at the SM clock measured beside it */
    float clock_mhz;
    uint32_t throttle; /* reasons, as the caller's throttle() gave them */
};

struct bench_limits {
    int64_t least_samples;      /* 200 */
    double least_gpu_ns;        /* 0.25e9: either of the two is enough */
    double cap_ns;              /* wall clock of a block, once the least is reached: 2e9 */
    double wall_ns;             /* wall clock of a block whatever happens */
    double precision;           /* relative half-width of the 95% interval of the median: 0.005 */
    double warm_ns;             /* of the real call before the first sample */
};
extern const struct bench_limits bench_defaults BENCH_OPTIONAL;

struct bench;

/* Take the current device: stream, events, flush buffer of twice its L2. `throttle` (may be NULL) is asked after each sample. */
struct bench *bench_open(uint32_t (*throttle)(void *state), void *state, struct err *) BENCH_OPTIONAL;
void bench_close(struct bench *) BENCH_OPTIONAL;
void *bench_stream(const struct bench *) BENCH_OPTIONAL;
/* Why the timer itself refused a sample (a carve-out of L2, waiting for the device); NULL when it did not. */
const char *bench_refused(const struct bench *) BENCH_OPTIONAL;
int64_t bench_l2_bytes(const struct bench *) BENCH_OPTIONAL;

/* Run the call for `ns` of wall clock at least, then until three clock readings in a row agree within 0.5% or a second passes. */
int bench_warm(struct bench *, const struct bench_call *, double ns, struct err *) BENCH_OPTIONAL;

/* One sample. 0 kept, 1 refused by `accept`, -1 error. */
int bench_one(struct bench *, const struct bench_call *, uint64_t number, struct bench_sample *out, struct err *) BENCH_OPTIONAL;

/* A block of samples by the rule above. `out` has room for `room`; throttled samples are kept out of it and counted. `complete`
 * is false when the wall clock ended it before the least was reached. 0, 1 (a sample was refused) or -1. */
struct bench_block {
    struct bench_sample *sample;
    int64_t room, samples, throttled;
    double half_width; /* relative, of the 95% interval of the median */
    bool complete;
};
int bench_block(struct bench *, const struct bench_call *, const struct bench_limits *, uint64_t first, struct bench_block *, struct err *)
    BENCH_OPTIONAL;

/* One untimed sample that is held for `hold_ns` with everything queued. `look` is called while it is held, with another stream to
 * work on (nothing of the call may have run yet), and again when the whole device is idle (nothing may have changed since the
 * end event): 0 fine, 1 refused, -1 error. */
int bench_held(struct bench *, const struct bench_call *, double hold_ns, uint64_t number, int (*look)(void *state, void *stream, bool idle),
    struct err *) BENCH_OPTIONAL;

/* The second method: the call captured in a graph between two event nodes and replayed, in turn with samples of the first, `n` of each,
 * so that both see the same clock. `nodes` is how many nodes the call itself added: none means that it did nothing. 0, 1
 * (refused) or -1. */
struct bench_methods {
    double graph_ns, stream_ns; /* medians */
    int nodes;
};
int bench_methods(struct bench *, const struct bench_call *, int n, uint64_t first, struct bench_methods *out, struct err *) BENCH_OPTIONAL;

/* For a remote call: what is round it, as the median of `n` samples without the call, by this process's clock, beyond what the other process
 * has between its two events then. 0 or -1. */
int bench_outer(struct bench *, const struct bench_call *, int n, double *ns, struct err *e) BENCH_OPTIONAL;

/* The source's protocol: 25 ms warm-up, then as many calls as fit in `budget_ms` at the time an iteration takes, each behind a 256 MB
 * write and between two events, no waiting in between. Values are not renewed. */
struct bench_source {
    double median_ns, p20_ns, p80_ns;
    double host_ns;  /* host time to enqueue one iteration, median of the first 20: before the queue is full */
    double flush_ns; /* device time of the 256 MB write */
    int64_t samples;
};
int bench_source(struct bench *, const struct bench_call *, double budget_ms, struct bench_source *out, struct err *) BENCH_OPTIONAL;

/* A call that lasts a known time by the device's nanosecond timer, and one that copies; for sentinels and controls. */
int bench_spin(void *stream, double ns) BENCH_OPTIONAL;
int bench_copy(void *stream, void *to, const void *from, size_t size_bytes) BENCH_OPTIONAL;
#ifndef __cplusplus
static inline bool bench_built_in(void)
{
    return bench_open != NULL;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
