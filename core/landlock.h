/* Landlock: from now on files are opened for writing, made, renamed and removed only under folders that were named, and, when asked,
 * read only there. Raw system calls, since Debian 12's C library has none. Source: landlock(7), linux/landlock.h. */
#ifndef KI_CORE_LANDLOCK_H
#define KI_CORE_LANDLOCK_H

#include <stdbool.h>

#include "core/err.h"

/* Lists end in NULL. `reads` NULL: everything may be read; else only what is under `reads` and `writes`, and what of `reads` is not
 * there does not matter. `runs`: programs may still be run; signals reach only those then, where the kernel
 * can see to it (6.12). What of `writes` is not there stands for the nearest folder above it. The process must have no_new_privs.
 * ERR_NOPERM when the kernel cannot do it or will not; then nothing has changed. */
int landlock_enter(const char *const *reads, const char *const *writes, bool runs, struct err *e);

#endif
