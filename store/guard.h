/* Damage that is met while reading. LMDB trusts its file: one that is cut under an open map, or a disk that fails, is a bus error, and a
 * page that is not what it should be trips an assertion or leads anywhere in memory. `ki check` looks at every page first, which a short
 * command cannot afford; so such an end is told as what it is, exit 80 with a line on stderr, instead of a crash. Nothing but the
 * catalog is mapped in ki-store. A pointer that is nearly NULL stays a crash. */
#ifndef KI_STORE_GUARD_H
#define KI_STORE_GUARD_H

#include <lmdb.h>

/* For the rest of the process. `file` is copied, for the message; of several stores the last is named. */
void guard(MDB_env *env, const char *file);

#endif
