#include "verify/stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_quantile(const double *v, int64_t n, double q)
{
    double at = q * (double)(n - 1), below = floor(at);
    int64_t i = (int64_t)below;
    return i + 1 < n ? v[i] + (at - below) * (v[i + 1] - v[i]) : v[n - 1];
}

double stats_quantile(double *v, int64_t n, double q)
{
    if (n < 1)
        return NAN;
    qsort(v, (size_t)n, sizeof *v, ascending);
    return sorted_quantile(v, n, q);
}

double stats_median_half_width(double *v, int64_t n)
{
    if (n < 6)
        return INFINITY;
    double median = stats_quantile(v, n, 0.5), reach = 0.98 * sqrt((double)n); /* 1.96 sqrt(n)/2 ranks either way */
    int64_t low = (int64_t)floor(((double)n - 1) / 2 - reach), high = (int64_t)ceil(((double)n - 1) / 2 + reach);
    low = low < 0 ? 0 : low;
    high = high > n - 1 ? n - 1 : high;
    return (v[high] - v[low]) / (2 * median);
}
