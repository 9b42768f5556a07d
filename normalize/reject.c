#include "normalize/reject.h"

#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"

/* A hostile file can hold any number of names, so their count and their total length are bounded; what is beyond is counted
 * under one name. */
enum { NAMES_MAX = 500, NAME_LONG = 600, NAME_BYTES_MAX = 128 * 1024 };
#define OTHER_NAMES "(other names)"

struct tally_item {
	char *name;
	size_t len;
	uint64_t count;
};
struct tally {
	struct tally_item items[NAMES_MAX + 1];
	size_t count, bytes;
};

static const struct {
	const char *word;
	bool skips;
} reasons[REASONS] = {
	[SKIP_METRIC] = {"unknown_metric", true},
	[SKIP_KERNEL] = {"unknown_kernel", true},
	[SKIP_CONFIG] = {"unknown_config", true},
	[SKIP_PROVIDER] = {"unknown_provider", true},
	[SKIP_GPU] = {"unknown_gpu", true},
	[SKIP_MODE] = {"unknown_mode", true},
	[REJECT_FIELD_COUNT] = {"field_count", false},
	[REJECT_NOT_UTF8] = {"not_utf8", false},
	[REJECT_BAD_CONFIG] = {"bad_config", false},
	[REJECT_RANGE] = {"out_of_range", false},
	[REJECT_MEDIAN] = {"bad_median", false},
	[REJECT_TIMESTAMP] = {"bad_timestamp", false},
	[REJECT_VERSION] = {"bad_version", false},
};

bool reason_skips(enum reason r)
{
	return reasons[r].skips;
}

const char *reason_word(enum reason r)
{
	return reasons[r].word;
}

static void tally_free(struct tally *t)
{
	for (size_t i = 0; t && i < t->count; i++)
		free(t->items[i].name);
	free(t);
}

static struct tally_item *tally_find(struct tally *t, struct slice name)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].len == name.len && memcmp(t->items[i].name, name.data, name.len) == 0)
			return &t->items[i];
	return NULL;
}

/* A very long name is stood for by its beginning and its digest, so that no two are ever merged by cutting. */
static struct slice shorten(struct slice name, char *room)
{
	if (name.len <= NAME_LONG)
		return name;
	struct digest d = digest_of(name.data, name.len);
	size_t keep = 64;
	while (keep > 0 && ((unsigned char)name.data[keep] & 0xc0) == 0x80)
		keep--;
	memcpy(room, name.data, keep);
	memcpy(room + keep, "...", 3);
	digest_text(&d, room + keep + 3);
	return (struct slice){room, keep + 3 + DIGEST_TEXT};
}

static void tally_add(struct tally **tally, struct slice full)
{
	char room[64 + 3 + DIGEST_TEXT + 1];
	struct tally *t = *tally ? *tally : (*tally = xcalloc(1, sizeof **tally));
	struct slice name = shorten(full, room);
	struct tally_item *item = tally_find(t, name);
	if (!item && (t->count >= NAMES_MAX || t->bytes + name.len > NAME_BYTES_MAX)) {
		name = (struct slice){OTHER_NAMES, strlen(OTHER_NAMES)};
		item = tally_find(t, name);
	}
	if (!item) {
		item = &t->items[t->count++];
		item->name = xmalloc(name.len + 1);
		memcpy(item->name, name.data, name.len);
		item->name[name.len] = '\0';
		item->len = name.len;
		t->bytes += name.len;
	}
	item->count++;
}

void report_fini(struct report *r)
{
	for (int i = 0; i < REASONS; i++)
		tally_free(r->skipped[i]);
	tally_free(r->new_rule);
	tally_free(r->new_provider);
	tally_free(r->new_gpu);
	uint64_t listed = report_rejected(r) < REJECTS_LISTED ? report_rejected(r) : REJECTS_LISTED;
	for (uint64_t i = 0; i < listed; i++)
		free(r->rejects[i].text);
	buf_fini(&r->drift);
	*r = (struct report){0};
}

void report_skip(struct report *r, enum reason reason, struct slice name)
{
	r->reasons[reason]++;
	tally_add(&r->skipped[reason], name);
}

void report_reject(struct report *r, enum reason reason, unsigned line, unsigned column, const char *text)
{
	uint64_t number = report_rejected(r);
	r->reasons[reason]++;
	if (number < REJECTS_LISTED)
		r->rejects[number] = (struct reject){line, column, reason, xstrdup(text)};
}

void report_conflict(struct report *r, unsigned line)
{
	if (r->conflicts < REJECTS_LISTED)
		r->conflict_lines[r->conflicts] = line;
	r->conflicts++;
}

void report_drift(struct report *r, const char *text)
{
	buf_str(&r->drift, text);
	buf_char(&r->drift, '\n');
}

void report_new(struct tally **t, struct slice name)
{
	tally_add(t, name);
}

static uint64_t total(const struct report *r, bool skips)
{
	uint64_t sum = 0;
	for (int i = 0; i < REASONS; i++)
		if (reasons[i].skips == skips)
			sum += r->reasons[i];
	return sum;
}

uint64_t report_rejected(const struct report *r)
{
	return total(r, false);
}

uint64_t report_skipped(const struct report *r)
{
	return total(r, true);
}

/* ---- JSON: a tree is fine here, once a file ---- */

static void set_count(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *tally_json(const struct tally *t)
{
	json_t *object = json_object();
	for (size_t i = 0; t && i < t->count; i++)
		json_object_setn_new(object, t->items[i].name, t->items[i].len, json_integer((json_int_t)t->items[i].count));
	return object;
}

static json_t *rejects_json(const struct report *r)
{
	json_t *array = json_array();
	uint64_t count = report_rejected(r);
	for (uint64_t i = 0; i < count && i < REJECTS_LISTED; i++) {
		json_t *item = json_object();
		set_count(item, "line", r->rejects[i].line);
		set_count(item, "column", r->rejects[i].column);
		json_object_set_new(item, "reason", json_string(reason_word(r->rejects[i].reason)));
		json_object_set_new(item, "text", json_string(r->rejects[i].text));
		json_array_append_new(array, item);
	}
	return array;
}

static json_t *drift_json(const struct report *r)
{
	json_t *array = json_array();
	const char *p = r->drift.len ? r->drift.data : "";
	for (const char *end; (end = strchr(p, '\n')); p = end + 1)
		json_array_append_new(array, json_stringn(p, (size_t)(end - p)));
	return array;
}

static void reasons_json(const struct report *r, json_t *root)
{
	json_t *skipped = json_object(), *rejected = json_object();
	for (int i = 0; i < REASONS; i++) {
		if (reasons[i].skips)
			json_object_set_new(skipped, reasons[i].word, tally_json(r->skipped[i]));
		else
			set_count(rejected, reasons[i].word, r->reasons[i]);
	}
	json_object_set_new(root, "skipped", skipped);
	json_object_set_new(root, "rejected", rejected);
	set_count(root, "skippedTotal", report_skipped(r));
	set_count(root, "rejectedTotal", report_rejected(r));
}

void report_json(const struct report *r, struct buf *out)
{
	json_t *root = json_object(), *runs = json_object(), *fresh = json_object(), *lines = json_array();
	struct err ignored = {0};
	set_count(root, "rows", r->rows);
	set_count(root, "speed", r->speed);
	set_count(root, "memory", r->memory);
	set_count(root, "bound", r->bound);
	set_count(root, "duplicates", r->duplicates);
	set_count(root, "conflicts", r->conflicts);
	set_count(root, "prior", r->prior);
	for (int m = 0; m < 2; m++)
		set_count(runs, metric_name((enum metric)m), r->runs[m]);
	json_object_set_new(root, "runs", runs);
	json_object_set_new(fresh, "rule", tally_json(r->new_rule));
	json_object_set_new(fresh, "provider", tally_json(r->new_provider));
	json_object_set_new(fresh, "gpu", tally_json(r->new_gpu));
	json_object_set_new(root, "new", fresh);
	for (uint64_t i = 0; i < r->conflicts && i < REJECTS_LISTED; i++)
		json_array_append_new(lines, json_integer(r->conflict_lines[i]));
	json_object_set_new(root, "conflictLines", lines);
	json_object_set_new(root, "rejects", rejects_json(r));
	json_object_set_new(root, "drift", drift_json(r));
	reasons_json(r, root);
	json_canonical(root, out, &ignored);
	json_decref(root);
}

/* ---- for people ---- */

void report_quote(struct slice value, struct buf *out)
{
	size_t shown = value.len < 80 ? value.len : 80;
	bool utf8 = json_is_utf8(value.data, value.len);
	while (utf8 && shown < value.len && ((unsigned char)value.data[shown] & 0xc0) == 0x80)
		shown--;
	buf_char(out, '"');
	text_put_printable(out, value.data, shown);
	buf_str(out, shown < value.len ? "\"..." : "\"");
}

static void print_names(const struct tally *t, const char *word, const char *file)
{
	for (size_t i = 0; t && i < t->count; i++) {
		struct buf name = {0};
		report_quote((struct slice){t->items[i].name, t->items[i].len}, &name);
		log_info("%s: %llu rows skipped, %s: %s", file, (unsigned long long)t->items[i].count, word, name.data);
		buf_fini(&name);
	}
}

void report_print(const struct report *r, const char *file)
{
	uint64_t rejected = report_rejected(r);
	const char *p = r->drift.len ? r->drift.data : "";
	for (const char *end; (end = strchr(p, '\n')); p = end + 1)
		log_warn("%s: %.*s", file, (int)(end - p), p);
	for (uint64_t i = 0; i < rejected && i < REJECTS_LISTED; i++)
		log_info("%s:%u:%u: %s", file, r->rejects[i].line, r->rejects[i].column, r->rejects[i].text);
	for (uint64_t i = 0; i < r->conflicts && i < REJECTS_LISTED; i++)
		log_info("%s:%u: another value for an external id that this file has already", file, r->conflict_lines[i]);
	for (int i = 0; i < REASONS; i++)
		print_names(r->skipped[i], reasons[i].word, file);
	if (r->duplicates)
		log_info("%s: %llu exact duplicates", file, (unsigned long long)r->duplicates);
	if (rejected)
		log_info("%s: %llu of %llu rows rejected", file, (unsigned long long)rejected, (unsigned long long)r->rows);
}
