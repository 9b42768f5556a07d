/* What a stage gives up before it reads what others wrote: docs/hardening.md has the table.
 *
 * Layers, each of which holds when another is missing: resource limits, no_new_privs, Landlock (which files may be opened; Linux
 * 5.13 and later where it is switched on), seccomp (which system calls are made). A refused call fails with EPERM or EACCES and is
 * reported as any failure is. Nothing can be taken back, and children inherit all of it. Descriptors that are open stay usable.
 * Sources: landlock(7), seccomp_rule_add(3), prctl(2). */
#ifndef KI_CORE_SANDBOX_H
#define KI_CORE_SANDBOX_H

#include <stdbool.h>

#include "core/err.h"

enum sandbox_role {
	SANDBOX_INGEST,    /* network; files are written under `writes` and read under `reads` and where the system keeps its own */
	SANDBOX_NORMALIZE, /* no network; writes to open descriptors only */
	SANDBOX_STORE,     /* no network; files are written under `writes` */
};

struct sandbox {
	enum sandbox_role role;
	const char *const *reads;  /* ends in NULL; for SANDBOX_INGEST only: the others read what they may */
	const char *const *writes; /* ends in NULL; one that is not there yet stands for the nearest folder above it that is */
	bool strict;               /* what cannot be given up is an error */
};

/* Enters the role. A layer that cannot be had is a warning, or ERR_NOPERM when strict. */
int sandbox_enter(const struct sandbox *s, struct err *e);
/* Says on stderr, once and also when quiet, what sandbox_enter() would warn of; for a program that starts quiet stages. */
void sandbox_probe(void);

#endif
