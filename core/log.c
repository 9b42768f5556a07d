#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"

static const char *log_prog = "ki";
static bool log_quiet, log_json, log_journal;

/* What journald says of our stderr: `device:inode` of the stream that it reads. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat info;
	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &info) == 0 && info.st_dev == device &&
	       info.st_ino == inode;
}

void log_init(const char *prog, bool quiet)
{
	const char *format = getenv("KI_LOG_FORMAT");
	log_prog = prog;
	log_quiet = quiet;
	log_json = format && strcmp(format, "json") == 0;
	log_journal = stderr_is_journal();
}

int log_set_format(const char *text, struct err *e)
{
	if (strcmp(text, "text") != 0 && strcmp(text, "json") != 0)
		return err_set(e, ERR_USAGE, "--log-format %s: want text or json", text);
	return setenv("KI_LOG_FORMAT", text, 1) == 0 ? 0 : err_errno(e, "KI_LOG_FORMAT", "cannot set");
}

struct level {
	const char *name, *prefix; /* in JSON, in text */
	int priority;              /* syslog's */
};
static const struct level info = {"info", "", 6}, warning = {"warning", "warning: ", 4}, error = {"error", "", 3};

static void put_text(struct buf *out, const char *name, const char *text)
{
	struct buf shown = {0};
	text_put_printable(&shown, text, strlen(text));
	buf_printf(out, "\"%s\":", name);
	json_put_string(out, shown.data ? shown.data : "", shown.len);
	buf_fini(&shown);
}

/* `e` gives the position, `text` the words. Names in canonical order. */
static void put_object(struct buf *out, const struct level *level, const struct err *e, const char *text)
{
	char now[WHEN_TEXT + 1];
	when_text(when_now_ms(), now);
	buf_char(out, '{');
	if (e->code)
		buf_printf(out, "\"code\":%d,", (int)e->code);
	if (e->column)
		buf_printf(out, "\"column\":%u,", e->column);
	if (e->file[0]) {
		put_text(out, "file", e->file);
		buf_char(out, ',');
	}
	buf_printf(out, "\"level\":\"%s\",", level->name);
	if (e->line)
		buf_printf(out, "\"line\":%u,", e->line);
	put_text(out, "message", text);
	buf_printf(out, ",\"program\":\"%s\",\"time\":\"%s\"}", log_prog, now);
}

/* One write a line, so that lines of several processes stay whole. */
static void put_line(const struct level *level, const struct err *e, const char *text)
{
	struct buf out = {0};
	char words[sizeof e->file + sizeof e->text + 32];
	if (log_journal)
		buf_printf(&out, "<%d>", level->priority);
	if (log_json)
		put_object(&out, level, e, text);
	else
		buf_printf(&out, "%s: %s%s", log_prog, level->prefix, e->code ? err_format(e, words, sizeof words) : text);
	buf_char(&out, '\n');
	fwrite(out.data, 1, out.len, stderr);
	buf_fini(&out);
}

static void line(const struct level *level, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void line(const struct level *level, const char *format, va_list args)
{
	static const struct err nowhere;
	char text[1200];
	vsnprintf(text, sizeof text, format, args);
	put_line(level, &nowhere, text);
}

void log_info(const char *format, ...)
{
	va_list args;
	if (log_quiet)
		return;
	va_start(args, format);
	line(&info, format, args);
	va_end(args);
}

void log_warn(const char *format, ...)
{
	va_list args;
	if (log_quiet)
		return;
	va_start(args, format);
	line(&warning, format, args);
	va_end(args);
}

void log_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	line(&error, format, args);
	va_end(args);
}

int log_failure(const struct err *e)
{
	put_line(&error, e, e->text);
	return (int)e->code;
}
