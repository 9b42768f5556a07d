/* The contract that dyt and dyt_no_beta share: included in the C half of their .cu files, after the enumerators. Axes ROWS, HIDDEN. Static,
 * because each operation is a unit of its own. */
#ifndef KI_DYT_H
#define KI_DYT_H

#include "kernel.h"

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[ROWS] > INT32_MAX || c->axis[HIDDEN] > 1 << 28) {
        *reason = "an axis is too large";
        return -1;
    }
    return 0;
}

/* x once, y once, the parameters (gamma, and beta where DYT_BETA names it) once. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double rows = (double)c->axis[ROWS], hidden = (double)c->axis[HIDDEN];
#ifdef DYT_BETA
    double parameters = 8 * hidden;
#else
    double parameters = 4 * hidden;
#endif
    double bytes = 2 * rows * hidden * (double)ki_dtype_bytes(c->dtype) + parameters;
    (void)pass;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

#endif
