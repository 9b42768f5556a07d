#include "verify/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

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

double stats_median(const double *v, int64_t n)
{
    double *copy = xmalloc((size_t)(n + 1) * sizeof *copy);
    memcpy(copy, v, (size_t)n * sizeof *copy);
    double median = stats_quantile(copy, n, 0.5);
    free(copy);
    return median;
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

/* SplitMix64. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Ranks of the samples among all, so that a resample is counted instead of sorted: its median is where the counts pass half. */
struct ranked {
    double value;
    int64_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : (x->at > y->at) - (x->at < y->at);
}

/* Lower median of the values whose ranks were drawn `count` times each. */
static double counted_median(const struct ranked *sorted, const uint32_t *count, int64_t n, int64_t drawn)
{
    int64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        seen += count[i];
        if (2 * seen >= drawn)
            return sorted[i].value;
    }
    return sorted[n - 1].value;
}

static double resample(const struct ranked *sorted, const int64_t *rank, uint32_t *drawn, const int64_t count[], const int64_t first[],
    int blocks, int64_t n, uint64_t *state)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        drawn[i] = 0;
    for (int b = 0; b < blocks; b++) {
        int from = (int)(next_bits(state) % (uint64_t)blocks);
        if (count[from] == 0)
            continue;
        for (int64_t i = 0; i < count[from]; i++)
            drawn[rank[first[from] + (int64_t)(next_bits(state) % (uint64_t)count[from])]]++;
        total += count[from];
    }
    return counted_median(sorted, drawn, n, total);
}

enum { RESAMPLES = 1000, STATS_BLOCKS_MAX = 64 };

static void bootstrap(const struct ranked *sorted, int64_t n, const int64_t count[], int blocks, uint64_t seed, struct stats_summary *out)
{
    int64_t first[STATS_BLOCKS_MAX + 1] = { 0 }, *rank = xmalloc((size_t)n * sizeof *rank);
    uint32_t *drawn = xmalloc((size_t)n * sizeof *drawn);
    double median[RESAMPLES];
    for (int b = 0; b < blocks; b++)
        first[b + 1] = first[b] + count[b];
    for (int64_t i = 0; i < n; i++)
        rank[sorted[i].at] = i;
    for (int r = 0; r < RESAMPLES; r++)
        median[r] = resample(sorted, rank, drawn, count, first, blocks, n, &seed);
    out->low95 = stats_quantile(median, RESAMPLES, 0.025);
    out->high95 = stats_quantile(median, RESAMPLES, 0.975);
    free(rank);
    free(drawn);
}

static void deviations(const double *sorted, int64_t n, struct stats_summary *out)
{
    double *d = xmalloc((size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++)
        d[i] = fabs(sorted[i] - out->median);
    out->mad = stats_quantile(d, n, 0.5);
    for (int64_t i = 0; i < n; i++)
        out->outliers += d[i] > 5 * out->mad;
    free(d);
}

void stats_summarize(const double *v, const int64_t count[], int blocks, uint64_t seed, struct stats_summary *out)
{
    int64_t n = 0;
    for (int b = 0; b < blocks; b++)
        n += count[b];
    *out = (struct stats_summary){ .samples = n };
    if (n == 0 || blocks > STATS_BLOCKS_MAX)
        return;
    struct ranked *sorted = xmalloc((size_t)n * sizeof *sorted);
    double *values = xmalloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (struct ranked){ v[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0; i < n; i++) {
        values[i] = sorted[i].value;
        out->mean += values[i] / (double)n;
    }
    out->median = sorted_quantile(values, n, 0.5);
    out->p05 = sorted_quantile(values, n, 0.05);
    out->p20 = sorted_quantile(values, n, 0.2);
    out->p80 = sorted_quantile(values, n, 0.8);
    out->p95 = sorted_quantile(values, n, 0.95);
    out->minimum = values[0];
    out->maximum = values[n - 1];
    deviations(values, n, out);
    bootstrap(sorted, n, count, blocks, seed, out);
    free(sorted);
    free(values);
}
