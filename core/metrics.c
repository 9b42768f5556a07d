#include "core/metrics.h"

#include <string.h>

#include "core/home.h"
#include "core/when.h"

#define PREFIX "kernelindex_"

static void family(struct buf *out, const char *name, const char *help)
{
	buf_printf(out, "# TYPE " PREFIX "%s gauge\n# HELP " PREFIX "%s %s\n", name, name, help);
}

static void sample(struct buf *out, const char *name, const char *label, const char *value, double number)
{
	char text[JSON_NUMBER_MAX];
	json_number(number, text);
	buf_printf(out, PREFIX "%s", name);
	if (label) {
		buf_printf(out, "{%s=\"", label);
		for (; *value; value++)
			buf_printf(out, *value == '"' || *value == '\\' ? "\\%c" : *value == '\n' ? "\\n" : "%c", *value);
		buf_str(out, "\"}");
	}
	buf_printf(out, " %s\n", text);
}

static void gauge(struct buf *out, const char *name, const char *help, double number)
{
	family(out, name, help);
	sample(out, name, NULL, NULL, number);
}

/* A family with a sample for a member that is a time; nothing when it is not. */
static void time_gauge(struct buf *out, const char *name, const char *help, const json_t *from, const char *member)
{
	const char *text = json_text_of(from, member);
	int64_t ms;
	if (when_parse_text(text, strlen(text), &ms))
		gauge(out, name, help, (double)ms / 1000);
}

/* Rows of the night's publications, each under one outcome. */
static void put_rows(struct buf *out, const json_t *report)
{
	static const struct {
		const char *outcome, *member;
	} outcomes[] = {{"bound", "bound"}, {"duplicate", "duplicates"}, {"conflict", "conflicts"}, {"rejected", "rejectedTotal"}, {"skipped", "skippedTotal"}};
	family(out, "rows", "Rows of the files that the last night published or refused, by outcome.");
	for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
		size_t k;
		json_t *p;
		json_int_t sum = 0;
		json_array_foreach(json_object_get(report, "publications"), k, p)
			sum += json_total(json_object_get(json_object_get(p, "report"), outcomes[i].member));
		sample(out, "rows", "outcome", outcomes[i].outcome, (double)sum);
	}
}

static void put_report(struct buf *out, const json_t *report)
{
	const char *step;
	json_t *p, *ms;
	size_t i, refused = 0;
	if (!report)
		return;
	time_gauge(out, "nightly_last_success_timestamp_seconds", "When the last night that succeeded began.", report, "lastSuccessAt");
	time_gauge(out, "upstream_seen_timestamp_seconds", "When upstream was last looked at and its news taken.", report, "upstreamSeenAt");
	put_rows(out, report);
	json_array_foreach(json_object_get(report, "publications"), i, p)
		refused += json_object_get(p, "refused") != NULL;
	gauge(out, "publications_refused", "Files of the last night that the gates refused.", (double)refused);
	gauge(out, "runs_new", "Runs that the last night added.", (double)json_total(json_object_get(json_object_get(report, "totals"), "newRuns")));
	family(out, "nightly_step_duration_seconds", "How long the steps of the last night took.");
	json_object_foreach(json_object_get(report, "stepsMs"), step, ms)
		sample(out, "nightly_step_duration_seconds", "step", step, json_number_value(ms) / 1000);
}

static void put_status(struct buf *out, const json_t *status)
{
	static const char *const counts[] = {"runs", "cases", "objects", "publications"};
	size_t i;
	json_t *channel;
	family(out, "records", "What the store holds, by kind.");
	for (i = 0; i < sizeof counts / sizeof *counts; i++)
		sample(out, "records", "kind", counts[i], (double)json_total(json_object_get(status, counts[i])));
	family(out, "store_bytes", "Size of the catalog: its file, and the pages in use.");
	sample(out, "store_bytes", "kind", "file", (double)json_total(json_object_get(status, "fileBytes")));
	sample(out, "store_bytes", "kind", "live", (double)json_total(json_object_get(status, "liveBytes")));
	family(out, "channel_published_timestamp_seconds", "When the newest publication of a channel was made.");
	json_array_foreach(json_object_get(status, "channels"), i, channel) {
		const char *text = json_text_of(channel, "publishedAt");
		int64_t ms;
		if (when_parse_text(text, strlen(text), &ms))
			sample(out, "channel_published_timestamp_seconds", "channel", json_text_of(channel, "channel"), (double)ms / 1000);
	}
}

/* Counts the lines of each code. */
static void put_flags(struct buf *out, const char *lines)
{
	json_t *counts = json_object(), *count;
	const char *code;
	for (const char *at = lines, *end; (end = strchr(at, '\n')); at = end + 1) {
		struct err ignored = {0};
		json_t *flag = json_load_text(at, (size_t)(end - at), "flags", &ignored);
		code = json_text_of(flag, "code");
		json_object_set_new(counts, code, json_integer(json_whole_of(counts, code) + 1));
		json_decref(flag);
	}
	family(out, "flags", "Numbers that deserve doubt, by code.");
	json_object_foreach(counts, code, count)
		sample(out, "flags", "code", code, json_number_value(count));
	json_decref(counts);
}

/* Whether a command has answered. One that fails says why; one that could not run or be read, or was killed, cannot. */
static bool ask(const struct command *c, struct buf *out, struct err *e)
{
	struct err unsaid = {0};
	int code = process_read(c, out, &unsaid);
	if (code > 128)
		err_at(&unsaid, ERR_BUG, c->words[0], 0, 0, "ended by signal %d", code - 128);
	if (unsaid.code && !e->code)
		*e = unsaid;
	return code == 0;
}

void metrics_text(const struct metrics_night *n, struct buf *out, struct err *e)
{
	struct buf status = {0}, flags = {0};
	family(out, "build_info", "1, with the version of the programs.");
	sample(out, "build_info", "version", KI_VERSION, 1);
	gauge(out, "nightly_start_timestamp_seconds", "When the last night began.", (double)n->started_ms / 1000);
	gauge(out, "nightly_duration_seconds", "How long the last night took.", (double)n->duration_ns / 1e9);
	gauge(out, "nightly_exit_code", "Exit code of the last night; 0 and 1 are successes.", n->exit_code);
	put_report(out, n->report);
	if (ask(n->status, &status, e)) {
		json_t *s = json_load_text(status.data, status.len, "status", e);
		put_status(out, s);
		json_decref(s);
		if (ask(n->flags, &flags, e))
			put_flags(out, flags.data);
	}
	buf_str(out, "# EOF\n");
	buf_fini(&status);
	buf_fini(&flags);
}
