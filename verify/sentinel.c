#include "verify/sentinel.h"

#include <math.h>

static const double slope_limit = 0.005, empty_share = 0.25, empty_ns = 1000, copy_limit = 0.03, matmul_limit = 0.08;

static bool near(double v, double first, double share, double absolute)
{
    if (isnan(first) && isnan(v))
        return true;
    return fabs(v - first) <= fmax(share * fabs(first), absolute);
}

/* The best copy of a reading and its neighbours: where its buffers lie costs a single reading a tenth, drift costs all of them. */
static double copy_about(const struct sentinels readings[], int n, int i)
{
    double best = readings[i].copy_gbps;
    if (i > 0)
        best = fmax(best, readings[i - 1].copy_gbps);
    if (i + 1 < n)
        best = fmax(best, readings[i + 1].copy_gbps);
    return best;
}

const char *sentinels_check(const struct sentinels readings[], int n)
{
    for (int i = 0; i < n; i++) {
        const struct sentinels *s = &readings[i], *first = &readings[0];
        if (!(fabs(s->slope - 1) <= slope_limit))
            return "the timer does not measure spins of known length";
        if (!near(s->empty_ns, first->empty_ns, empty_share, empty_ns))
            return "the empty launch drifted";
        if (!near(copy_about(readings, n, i), copy_about(readings, n, 0), copy_limit, 0))
            return "the large copy drifted";
        if (!near(s->matmul_tflops, first->matmul_tflops, matmul_limit, 0))
            return "the matrix product drifted";
    }
    return n < 2 ? "sentinels were not read before and after" : NULL;
}
