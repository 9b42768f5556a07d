/* The nightly job: lock, ingest | normalize | store put, export, report. Serves `ki nightly` alone. */
#ifndef KI_CORE_NIGHTLY_H
#define KI_CORE_NIGHTLY_H

#include "core/err.h"

/* argv[0] is the verb. The error's code is the exit code; its text is empty when a stage has already said what went wrong. */
int nightly_main(int argc, char **argv, struct err *e);

#endif
