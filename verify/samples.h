/* Raw samples of a case: every window in ns and in cycles, in order, block by block, as an artifact that is named by its content.
 *
 * {"blocks":[{"cycles":[…],"ns":[…]},…]}, canonical JSON; its name is the SHA-256 of that text; the file is that text under
 * zstd, DIR/samples/<hex>.json.zst. */
#ifndef KI_VERIFY_SAMPLES_H
#define KI_VERIFY_SAMPLES_H

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"

enum { SAMPLES_BLOCKS_MAX = 16, SAMPLES_TEXT_MAX = 64 << 20 };

struct samples {
    int blocks;
    int64_t count[SAMPLES_BLOCKS_MAX];
    const double *ns[SAMPLES_BLOCKS_MAX], *cycles[SAMPLES_BLOCKS_MAX]; /* whole numbers */
};

/* Writes the artifact into DIR/samples (made when missing) and gives its name. */
int samples_write(const char *dir, const struct samples *, struct digest *out, struct err *);
/* Reads one back: ERR_NOTFOUND when it is not there, ERR_DATA when its bytes are not what its name says. Arrays in the arena. */
int samples_read(const char *dir, const struct digest *, struct arena *, struct samples *, struct err *);

/* The seed that everything random about these samples starts from: the first 8 bytes of their name. */
uint64_t samples_seed(const struct digest *);

#endif
