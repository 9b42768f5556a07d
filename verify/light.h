/* The speed of light: what a GPU cannot undercut for a pass, from the operation's floor and the data sheet. */
#ifndef KI_VERIFY_LIGHT_H
#define KI_VERIFY_LIGHT_H

#include "kernels/kernel.h"

/* Dense peaks of a GPU as its data sheet has them; 0 where it says nothing. */
struct peak {
    double gbps, bf16_tflops, tf32_tflops, fp32_tflops;
};

/* L2 of the largest GPU in the tables, for records whose GPU's L2 nobody measured. */
#define LIGHT_L2_BYTES_UNKNOWN (126.0 * 1024 * 1024)

/* max(bytes / bandwidth, flops / rate), less the 5% by which boost clocks may exceed a data sheet. 0 when nothing binds: the floor is
 * not hard, or its bytes are fewer than four times L2 (writes may stay there) and it has no flops. */
double light_ns(const struct ki_floor *, const struct peak *, double l2_bytes);

#endif
