/* Order statistics of samples. Plain functions of their arguments; nothing is dropped as an outlier. Times in ns. */
#ifndef KI_VERIFY_STATS_H
#define KI_VERIFY_STATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts `v` in place and returns its quantile `q`, linear between neighbours (as upstream's timer does); NAN when n is 0. */
double stats_quantile(double *v, int64_t n, double q);
/* The median; `v` stays as it is. */
double stats_median(const double *v, int64_t n);
/* Half of the 95% interval of the median, over the median; by ranks, so that no distribution is assumed. Sorts `v`. */
double stats_median_half_width(double *v, int64_t n);

struct stats_summary {
    int64_t samples;
    double median, mean, p05, p20, p80, p95, minimum, maximum, mad; /* mad: median of |x - median|, not scaled */
    double low95, high95;                                           /* bootstrap interval of the median */
    int64_t outliers;                                               /* beyond 5 mad of the median; labelled, kept */
};

/* Summary of the samples of `blocks` blocks that lie one after another in `v` (left as it is), `count` in each. The bootstrap draws
 * blocks and then samples inside them, 1,000 times, with a generator seeded by `seed`: the same input gives the same bits. */
void stats_summarize(const double *v, const int64_t count[], int blocks, uint64_t seed, struct stats_summary *out);

#ifdef __cplusplus
}
#endif

#endif
