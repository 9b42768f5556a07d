/* The measured process: reads requests from its standard input, does what they ask on its device, writes replies to its standard
 * output, and ends when there are no more. It is started by the watchdog, knows no other case than the one it is asked for, and
 * may be killed at any time. */
#ifndef KI_VERIFY_WORKER_H
#define KI_VERIFY_WORKER_H

#include "core/err.h"

/* `device` is "cuda" or "cpu", `config` the directory of tolerances.json. 0 at the end of its input, or when the device is not to be
 * trusted any more (the last reply says so); -1 when a request cannot be read or answered. */
int worker_run(const char *device, const char *config, struct err *);

#endif
