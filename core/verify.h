/* `ki verify`: plan, run and import in one, and the way to each step. Serves the front door alone. */
#ifndef KI_CORE_VERIFY_H
#define KI_CORE_VERIFY_H

#include "core/err.h"

/* argv[0] is the verb. The error's code is the exit code; its text is empty when a stage has already said what went wrong. */
int verify_main(int argc, char **argv, struct err *e);

#endif
