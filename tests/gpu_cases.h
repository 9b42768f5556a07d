/* The shapes that gpu-test and gpu-bench run, read from fixtures/gpu/cases.txt, and the options that choose among them. */
#ifndef GPU_CASES_H
#define GPU_CASES_H

#include "kernels/kernel.h"

enum { GPU_CASES_MAX = 512, GPU_CHECKS_MAX = 8192 };

struct gpu_case {
    const struct ki_operation *operation; /* NULL: not in the registry; the name is in `name` */
    char name[64], tags[64], dtypes[32], axes[160];
    struct ki_axis_value axis[KI_MAX_AXES];
    char axis_name[KI_MAX_AXES][32];
    size_t n_axes;
    double best_us[2]; /* forward, backward of others; 0 if none is known */
};

/* One thing to do: a case in one dtype and pass. */
struct gpu_check {
    const struct gpu_case *of;
    enum ki_dtype dtype;
    enum ki_pass pass;
};

struct gpu_options {
    const char *cases, *config, *log; /* log: a directory, or NULL */
    const char *only, *tag, *pass, *dtype; /* comma-separated lists, or NULL for all */
    double seconds;                        /* stop starting work after that long */
    double check_seconds;                  /* one check takes at most that long */
    uint64_t seed;
    bool list, markdown;                   /* gpu-bench: rows of a table for docs */
};

/* Options from the command line; prints usage and exits with 64 on a bad one. */
struct gpu_options gpu_options(int argc, char **argv, const char *program);
/* The cases of the file; prints what is wrong with it and exits with 65. */
size_t gpu_cases_read(const char *path, struct gpu_case cases[GPU_CASES_MAX]);
/* Whether a comma-separated list (NULL: everything) has the word. */
bool gpu_chosen(const char *list, const char *word);
bool gpu_tagged(const struct gpu_case *, const char *tags);

/* "2048x16384": the axes' values, for tables. */
const char *gpu_shape(const struct gpu_case *, char *out, size_t out_size);
double gpu_seconds(void);

#endif
