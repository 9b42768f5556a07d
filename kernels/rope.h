/* The contract that rope and llama4_rope share, but for the order of the shapes: included in the C half of their .cu files, after
 * the enumerators. Axes SEQ, HIDDEN, Q_HEADS, KV_HEADS and the derived HEAD_DIM; scalar theta. Static, because each operation
 * is a unit of its own. */
#ifndef KI_ROPE_H
#define KI_ROPE_H

#include "kernel.h"

static int derive(struct ki_case *c, const char **reason)
{
    int64_t hidden = c->axis[HIDDEN], heads = c->axis[Q_HEADS];
    if (hidden % heads || hidden / heads % 2 || hidden / heads > 512) {
        *reason = "head_dim must be even, whole and at most 512";
        return -1;
    }
    if (c->axis[SEQ] >= 1 << 24 || heads > 1 << 16 || c->axis[KV_HEADS] > 1 << 16) {
        *reason = "an axis is too large";
        return -1;
    }
    c->axis[HEAD_DIM] = hidden / heads;
    return 0;
}

/* operations.md 1.1: 2S(Hq + Hk)Ds each way; full does both on different data. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double elements = (double)c->axis[SEQ] * (double)(c->axis[Q_HEADS] + c->axis[KV_HEADS]) * (double)c->axis[HEAD_DIM];
    double bytes = (pass == KI_FULL ? 4 : 2) * elements * (double)ki_dtype_bytes(c->dtype);
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

#endif
