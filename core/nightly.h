/* The nightly job: lock, ingest | normalize | store put, export, report. */
#ifndef KI_CORE_NIGHTLY_H
#define KI_CORE_NIGHTLY_H

#include "core/json.h"

/* argv[0] is the verb. The error's code is the exit code; its text is empty when a stage has already said what went wrong. */
int nightly_main(int argc, char **argv, struct err *e);

/* The report that the last night left in a store (docs/schemas/report.schema.json), for the caller to keep; NULL when there is none, and,
 * with an error, when it cannot be read. */
json_t *nightly_report(const char *store, struct err *e);

#endif
