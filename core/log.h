/* One line an event, on stderr, in one of two formats:
 *
 *   text  `prog: text`, `prog: warning: text`; under journald (JOURNAL_STREAM names this stderr) behind `<3>`, `<4>` or `<6>`, from
 *         which journald takes the priority
 *   json  one canonical object: {"code":65,"column":52,"file":"x.csv","level":"error","line":1840,"message":"…","program":"ki-normalize",
 *         "time":"2026-07-26T05:10:00.000Z"}; level is error, warning or info, message is the text alone; code (the exit code), file,
 *         line and column stand where they are known. docs/schemas/log.schema.json
 *
 * Quiet mode (cron) keeps only what needs a person: errors. The format is $KI_LOG_FORMAT, so that children write the same one. */
#ifndef KI_CORE_LOG_H
#define KI_CORE_LOG_H

#include <stdbool.h>

#include "core/err.h"

/* `prog` must outlive the process; `quiet` drops log_info and log_warn lines. Before any other line; may be called again. */
void log_init(const char *prog, bool quiet);
/* For --log-format: sets $KI_LOG_FORMAT, which counts from the next log_init on. ERR_USAGE for anything but text and json. */
int log_set_format(const char *text, struct err *e);
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An error as one line, with its position and code. Returns its exit code, so that main() may end with it. */
int log_failure(const struct err *e);

#endif
