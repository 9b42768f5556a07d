/* Order statistics of samples. Plain functions of their arguments; nothing is dropped as an outlier. */
#ifndef KI_VERIFY_STATS_H
#define KI_VERIFY_STATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts `v` in place and returns its quantile `q`, linear between neighbours (as upstream's timer does); NAN when n is 0. */
double stats_quantile(double *v, int64_t n, double q);
/* Half of the 95% interval of the median, over the median; by ranks, so that no distribution is assumed. Sorts `v`. */
double stats_median_half_width(double *v, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
