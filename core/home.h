/* Where this installation keeps its programs and its config, found from the running program: build/bin (or build/asan/bin) under
 * config/'s folder in a checkout; PREFIX/bin beside PREFIX/etc/kernelindex when installed, or /usr/bin with /etc/kernelindex. */
#ifndef KI_CORE_HOME_H
#define KI_CORE_HOME_H

#include "core/arena.h"
#include "core/err.h"

#define KI_VERSION "0.1.0"

/* Path of a sibling program, in the arena. */
const char *home_program(struct arena *a, const char *name);
/* The config directory: `given` when not NULL, else $KI_CONFIG, else the installation's. NULL (ERR_CONFIG) when none exists. */
const char *home_config(struct arena *a, const char *given, struct err *e);
/* The store directory: `given` when not NULL, else $KI_STORE, else var/store under the current directory. */
const char *home_store(const char *given);

#endif
