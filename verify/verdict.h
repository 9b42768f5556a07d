/* The verdict on one record, policy verify-v1 (verification.md sections 1, 2 and 6): a pure function of numbers that one evidence
 * line holds. Nothing is read, measured or remembered here. Times in ns; widths and sizes of effects in natural logarithms. */
#ifndef KI_VERIFY_VERDICT_H
#define KI_VERIFY_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_POLICY "verify-v1"
enum { VERDICT_BLOCKS_MAX = 16 };

/* How host and device times relate: which of a record's quantities can be reproduced. */
enum rerun_class { CLASS_DEVICE, CLASS_MIXED, CLASS_LAUNCH };
const char *rerun_class_text(enum rerun_class);
/* rho = h / (flush + T_dev): device when rho <= 0.5 and T_src exceeds T_dev by at most 3% or 1.5 us, launch from 1.4 on, else mixed.
 * The 1.5 us: with the queue filled while the device runs, as the source does, a window is longer than with the queue filled while it
 * is held: by 0.8 us in the median and 1.5 us at the 95th percentile of 233 calls of 6 to 1,000 us on an H200, whatever is flushed and
 * when. That is no sign of a host that cannot keep up; with it, 294 of 297 native calls are device class, without it 272. */
enum rerun_class rerun_class_of(double t_dev_ns, double t_src_ns, double h_ns, double flush_ns, double *rho);

enum verdict_code {
    VERDICT_INVALID_RUN,       /* the gate is shut: sentinels, throttling, Xid, ECC, correctness or controls */
    VERDICT_NOT_TIMED,         /* correctness only, by a device that times nothing */
    /* upstream reruns */
    VERDICT_CONFIRMED, VERDICT_REFUTED, VERDICT_SLOWER_THAN_RERUN, VERDICT_INCONCLUSIVE, VERDICT_HOST_DEPENDENT,
    /* native runs, a cross-check for the record that asked */
    VERDICT_NOT_COMPARABLE, VERDICT_TOO_FAST, VERDICT_FAR, VERDICT_PLAUSIBLE,
};
const char *verdict_text(enum verdict_code);
/* False when the text is no code. */
bool verdict_parse(const char *text, enum verdict_code *out);

struct verdict_input {
    /* the record */
    double median_ns, p20_ns, p80_ns; /* p20, p80: 0 when the record has none */
    int64_t samples;                  /* how many it has, as its source's budget lets one estimate; at least 1 */
    double width_p90;                 /* 90th percentile of ln(p80/p20) in its size class; 0: verdict_width_p90() */
    bool framework;                   /* its code lives in a framework whose version is unknown (torch, huggingface) */
    double light_ns;                  /* what its GPU cannot undercut, allowance taken off; 0 when no floor binds */
    /* the rerun */
    bool native, same_product, timed; /* same_product: its GPU counts as the record's (env-v1) */
    bool same_code;                   /* upstream: what ran is shown to be the record's code (env-v1) */
    bool gate;                        /* sentinels, health, correctness and controls are all right */
    int blocks;
    double block_ns[VERDICT_BLOCKS_MAX]; /* medians */
    double t_dev_ns, t_src_ns, h_ns, flush_ns;
};

struct verdict {
    enum verdict_code code;
    enum rerun_class class;
    double rho, d, u95, u99; /* 0 where they have no meaning */
    double s_record, s_block;
    bool against_light;      /* refuted or too fast because the record is under the speed of light */
};

struct verdict verdict_of(const struct verdict_input *);

/* Verdicts of separate batches on one record, oldest first: a refutation stands only when two of them say so. */
enum verdict_code verdict_combine(const enum verdict_code codes[], int n);

/* The width that records of a size had when the policy was made, for a record without one of its own. */
double verdict_width_p90(double median_ns);

/* Quantiles of Student's t for the policy's two levels (one-sided 0.95 and 0.995), 1 degree of freedom and up. */
double verdict_t95(int degrees);
double verdict_t995(int degrees);

#endif
