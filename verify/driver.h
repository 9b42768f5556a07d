/* The CUDA driver's own interface, as far as replaying needs it: load a cubin, launch, fill, copy. The library is looked for at run
 * time, so that the program runs where there is none. Work goes to the current context, the runtime's own. Functions return 0 or a
 * CUresult; text() names it. A table of functions, so that a test can see what would be launched. */
#ifndef KI_VERIFY_DRIVER_H
#define KI_VERIFY_DRIVER_H

#include <stddef.h>

#include "core/err.h"

struct driver {
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*function)(void **function, void *module, const char *name);
    /* More than 48 KiB of shared memory has to be asked for. */
    int (*allow_shared)(void *function, unsigned size_bytes);
    int (*launch)(void *function, const unsigned grid[3], unsigned threads, unsigned shared_bytes, void *stream, void **args);
    int (*zero)(void *at, size_t size_bytes, void *stream);
    int (*copy)(void *to, const void *from, size_t size_bytes, void *stream);
    const char *(*text)(int error);
};

/* ERR_UNAVAILABLE when the driver is not installed. */
const struct driver *driver_find(struct err *);

#endif
