/* Bundles: what upstream's own code does on the device for one case and pass, as verify/capture.py found it: kernels as cubins, launches,
 * fills and copies in order, and the buffers that they touch, by the names of the operation's contract. docs/verify-files.md shows
 * every field.
 *
 * A folder of bundles holds bundles/<hex>.json (canonical text, named by its digest), blobs/<hex> (cubins, constants) and cases/<hex>, which
 * names the bundle of a case. Whoever made it is trusted in nothing: sizes, indices and offsets are checked here, every file against
 * its digest, and what the bundle computes against fp64 later. Owns nothing: what is read lives in the arena. */
#ifndef KI_VERIFY_BUNDLE_H
#define KI_VERIFY_BUNDLE_H

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"
#include "kernels/kernel.h"

enum { BUNDLE_BUFFERS_MAX = 64, BUNDLE_KERNELS_MAX = 64, BUNDLE_OPS_MAX = 256, BUNDLE_ARGS_MAX = 64, BUNDLE_TEXT_MAX = 1 << 20 };

struct bundle_place {
    int buffer;
    int64_t offset;              /* bytes */
};

struct bundle_arg {
    bool pointer;
    struct bundle_place at;      /* pointer */
    uint64_t value;              /* else: the low bytes of the argument */
};

enum bundle_op_kind { BUNDLE_LAUNCH, BUNDLE_FILL, BUNDLE_COPY };

struct bundle_op {
    enum bundle_op_kind kind;
    int kernel;                  /* LAUNCH */
    unsigned grid[3];
    int args;
    struct bundle_arg *arg;
    struct bundle_place to, from; /* FILL with zero bytes, COPY */
    int64_t size_bytes;
};

struct bundle_buffer {
    int64_t size_bytes;
    int reads, writes;           /* tensors of the operation whose values it holds before, after; -1: none. Both: in place */
    enum ki_dtype dtype;         /* of its elements, where it has a tensor */
    bool constant;               /* holds a blob before the call */
    struct digest blob;
};

struct bundle_kernel {
    const char *name;
    struct digest cubin;
    unsigned threads, shared_bytes;
};

struct bundle_ops {
    struct bundle_op *op;
    int count;
};

struct bundle {
    struct digest digest, workload;
    const char *kernel, *provider;
    enum ki_pass pass;
    const char *package, *version, *triton, *torch; /* what was installed; version "" for a tree */
    struct digest files;         /* of the package's files */
    const char *product;         /* of the GPU it was compiled for */
    const char *foreign;         /* first piece of device work that cannot be replayed; "" when all can */
    struct bundle_ops setup;     /* what the timed part needs beforehand; empty when the contract's own forward gives it */
    struct bundle_ops timed;
    struct bundle_buffer buffer[BUNDLE_BUFFERS_MAX];
    struct bundle_kernel kernels[BUNDLE_KERNELS_MAX];
    int buffers, kernel_count;
    struct {
        double median_ns, p20_ns, p80_ns, host_ns, flush_ns;
        int64_t samples;
    } source;                    /* the source's protocol with upstream's own callable, on the host that captured */
};

/* Reads a manifest for an operation. ERR_DATA when it is none or contradicts itself. */
int bundle_read(struct slice text, const char *name, const struct ki_operation *, struct arena *, struct bundle *, struct err *);

/* Whether it delivers what a pass of a case has to, with tensors of the right sizes. NULL when it does, else why not. */
const char *bundle_unfit(const struct bundle *, const struct ki_case *, enum ki_pass);

/* What a bundle is found by. One of commit and version is ""; `workload` is the digest of the body. */
struct bundle_key {
    const char *kernel, *provider, *commit, *version;
    enum ki_pass pass;
    struct digest workload;
};
struct digest bundle_key_digest(const struct bundle_key *);

/* Finds and reads the bundle of a case in a folder. ERR_NOTFOUND, in words, when there is none. */
int bundle_find(const char *folder, const struct bundle_key *, const struct ki_operation *, struct arena *, struct bundle *, struct err *);
/* Reads the bundle of that digest. */
int bundle_open(const char *folder, const struct digest *, const struct ki_operation *, struct arena *, struct bundle *, struct err *);
/* Reads a blob and checks its digest. */
int bundle_blob(const char *folder, const struct digest *, struct buf *out, struct err *);

#endif
