/* Which system calls a role may make, as lists of names. Everything else fails with EPERM. Source: seccomp_rule_add(3). */
#ifndef KI_CORE_SECCOMP_H
#define KI_CORE_SECCOMP_H

#include "core/sandbox.h"

/* The process must have no_new_privs. ERR_NOPERM when the kernel cannot do it or will not; then nothing has changed. */
int seccomp_enter(enum sandbox_role role, struct err *e);

#endif
