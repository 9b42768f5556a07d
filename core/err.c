#include "core/err.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct err *e, enum err_code code, const char *file, unsigned line, unsigned column, const char *format,
		 va_list args) __attribute__((format(printf, 6, 0)));

static void fill(struct err *e, enum err_code code, const char *file, unsigned line, unsigned column, const char *format,
		 va_list args)
{
	if (e->code != ERR_NONE)
		return;
	e->code = code;
	e->line = line;
	e->column = column;
	snprintf(e->file, sizeof e->file, "%s", file ? file : "");
	vsnprintf(e->text, sizeof e->text, format, args);
}

int err_set(struct err *e, enum err_code code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fill(e, code, NULL, 0, 0, format, args);
	va_end(args);
	return -1;
}

int err_at(struct err *e, enum err_code code, const char *file, unsigned line, unsigned column, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fill(e, code, file, line, column, format, args);
	va_end(args);
	return -1;
}

enum err_code err_code_of(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR: return ERR_NOTFOUND;
	case EACCES:
	case EPERM:
	case EROFS: return ERR_NOPERM;
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ENOLCK: return ERR_TEMP;
	default: return ERR_IO;
	}
}

int err_errno(struct err *e, const char *file, const char *what)
{
	return err_at(e, err_code_of(errno), file, 0, 0, "%s: %s", what, strerror(errno));
}

void err_in_config(struct err *e)
{
	if (e->code == ERR_DATA || e->code == ERR_NOTFOUND || e->code == ERR_NOPERM)
		e->code = ERR_CONFIG;
}

int err_option(struct err *e, char *const *argv, const char *prog)
{
	return err_set(e, ERR_USAGE, "%s: no such option, or its value is missing; see %s --help", argv[optind - 1], prog);
}

const char *err_format(const struct err *e, char *out, size_t out_size)
{
	if (e->file[0] && e->line && e->column)
		snprintf(out, out_size, "%s:%u:%u: %s", e->file, e->line, e->column, e->text);
	else if (e->file[0] && e->line)
		snprintf(out, out_size, "%s:%u: %s", e->file, e->line, e->text);
	else if (e->file[0])
		snprintf(out, out_size, "%s: %s", e->file, e->text);
	else
		snprintf(out, out_size, "%s", e->text);
	return out;
}
