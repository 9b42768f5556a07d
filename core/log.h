/* One line an event, on stderr: `prog: text`. Quiet mode (cron) keeps only what needs a person. */
#ifndef KI_CORE_LOG_H
#define KI_CORE_LOG_H

#include <stdbool.h>

/* `prog` must outlive the process; `quiet` drops log_info and log_warn lines. */
void log_init(const char *prog, bool quiet);
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
