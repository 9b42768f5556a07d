#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static const char *log_prog = "ki";
static bool log_quiet;

void log_init(const char *prog, bool quiet)
{
	log_prog = prog;
	log_quiet = quiet;
}

static void line(const char *level, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void line(const char *level, const char *format, va_list args)
{
	char text[1200];
	vsnprintf(text, sizeof text, format, args);
	fprintf(stderr, "%s: %s%s\n", log_prog, level, text); /* one call, so that lines of several processes stay whole */
}

void log_info(const char *format, ...)
{
	va_list args;
	if (log_quiet)
		return;
	va_start(args, format);
	line("", format, args);
	va_end(args);
}

void log_warn(const char *format, ...)
{
	va_list args;
	if (log_quiet)
		return;
	va_start(args, format);
	line("warning: ", format, args);
	va_end(args);
}

void log_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	line("", format, args);
	va_end(args);
}
