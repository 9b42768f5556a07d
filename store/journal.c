#include "store/journal.h"

#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/json.h"
#include "core/when.h"

static void put_log_line(const json_t *p, FILE *out)
{
	const json_t *copy = json_object_get(p, "copyOf");
	fprintf(out, "%4lld  %.19s  %-9s %-12.12s  %6lld rows, %6lld carried, %6lld new", json_whole_of(p, "id"), json_text_of(p, "publishedAt"), json_text_of(p, "channel"),
		catalog_identity(p), json_whole_of(json_object_get(p, "report"), "rows"), json_whole_of(p, "carried"), json_whole_of(p, "newRuns"));
	if (json_whole_of(p, "conflicts"))
		fprintf(out, ", %lld conflicts", json_whole_of(p, "conflicts"));
	if (json_object_get(p, "changes"))
		fprintf(out, "; other bytes than publication %lld had", json_whole_of(p, "changes"));
	if (copy)
		fprintf(out, "; byte copy of %s %s", json_text_of(copy, "channel"), json_text_of(copy, "commit"));
	fputc('\n', out);
}

int journal_log(struct catalog *c, uint64_t limit, bool json, FILE *out)
{
	uint32_t count = c->counts.publications;
	for (uint32_t i = 0; i < count && (limit == 0 || i < limit); i++) {
		json_t *p = catalog_publication(c, count - 1 - i);
		if (!p)
			return -1;
		if (json)
			json_put_line(p, out, c->err);
		else
			put_log_line(p, out);
		json_decref(p);
	}
	return c->err->code ? -1 : 0;
}

/* Pages in use by the tables, in bytes. */
static uint64_t live_bytes(struct catalog *c)
{
	uint64_t bytes = 0;
	for (int i = 0; i < TABLES; i++) {
		MDB_stat s;
		if (mdb_stat(c->t.mdb, c->st.tables[i], &s) == 0)
			bytes += (uint64_t)s.ms_psize * (s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages);
	}
	return bytes;
}

/* Newest publication of each channel, with its age. */
static json_t *channels_json(struct catalog *c, int64_t now_ms, int64_t *newest_ms)
{
	json_t *list = json_array();
	*newest_ms = 0;
	for (size_t slot = 0; slot < c->channels.count; slot++)
		for (uint32_t id = c->counts.publications; id-- > 0;) {
			json_t *p = catalog_publication(c, id);
			int64_t at = 0;
			bool mine = strcmp(json_text_of(p, "channel"), c->channels.items[slot].name) == 0;
			if (mine) {
				when_parse_text(json_text_of(p, "publishedAt"), strlen(json_text_of(p, "publishedAt")), &at);
				json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "channel", json_text_of(p, "channel"), "identity", catalog_identity(p),
								      "publishedAt", json_text_of(p, "publishedAt"), "ageHours",
								      (json_int_t)((now_ms - at) / 3600000)));
			}
			json_decref(p);
			if (at > *newest_ms)
				*newest_ms = at;
			if (mine)
				break;
		}
	return list;
}

enum { REPORT_MAX = 16 << 20 };

/* When a night last looked at upstream and took its news, as `ki nightly` keeps it; NULL when none has. The caller owns it. */
static json_t *upstream_seen(struct catalog *c)
{
	struct buf path = {0}, text = {0};
	struct err ignored = {0}; /* a store that is filled otherwise has no report */
	json_t *report = NULL;
	buf_printf(&path, "%s/report.json", c->st.directory);
	if (file_read(path.data, REPORT_MAX, &text, &ignored) == 0)
		report = json_load_text(text.data, text.len, path.data, &ignored);
	json_t *seen = json_incref(json_object_get(report, "upstreamSeenAt"));
	json_decref(report);
	buf_fini(&path);
	buf_fini(&text);
	return seen;
}

static json_t *status_json(struct catalog *c, int64_t *newest_ms)
{
	struct stat info = {0};
	uint64_t live = live_bytes(c);
	stat(c->st.file, &info);
	json_t *s = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I}", "store", c->st.directory, "schema", c->counts.schema, "runs", c->counts.runs,
			      "cases", c->counts.cases, "objects", c->counts.objects, "publications", c->counts.publications, "fileBytes",
			      (json_int_t)info.st_size, "liveBytes", (json_int_t)live);
	if (c->counts.runs)
		json_object_set_new(s, "liveBytesPerRun", json_integer((json_int_t)(live / c->counts.runs)));
	json_object_set_new(s, "channels", channels_json(c, when_now_ms(), newest_ms));
	json_object_set_new(s, "upstreamSeenAt", upstream_seen(c));
	int64_t seen_ms;
	const char *seen = json_text_of(s, "upstreamSeenAt");
	if (when_parse_text(seen, strlen(seen), &seen_ms) && seen_ms > *newest_ms)
		*newest_ms = seen_ms;
	return s;
}

static void put_status(const json_t *s, FILE *out)
{
	size_t i;
	json_t *channel;
	fprintf(out, "store         %s (schema %lld)\n", json_text_of(s, "store"), json_whole_of(s, "schema"));
	fprintf(out, "runs          %lld in %lld cases, citing %lld objects\n", json_whole_of(s, "runs"), json_whole_of(s, "cases"), json_whole_of(s, "objects"));
	fprintf(out, "size          %lld bytes on disk, %lld live, %lld a run\n", json_whole_of(s, "fileBytes"), json_whole_of(s, "liveBytes"),
		json_whole_of(s, "liveBytesPerRun"));
	fprintf(out, "publications  %lld\n", json_whole_of(s, "publications"));
	if (json_object_get(s, "upstreamSeenAt"))
		fprintf(out, "upstream      last seen %s\n", json_text_of(s, "upstreamSeenAt"));
	json_array_foreach(json_object_get(s, "channels"), i, channel)
		fprintf(out, "  %-10s  %-12.12s  %s, %lld hours ago\n", json_text_of(channel, "channel"), json_text_of(channel, "identity"),
			json_text_of(channel, "publishedAt"), json_whole_of(channel, "ageHours"));
}

int journal_status(struct catalog *c, double max_age_hours, bool json, FILE *out)
{
	int64_t newest_ms;
	json_t *s = status_json(c, &newest_ms);
	double age_hours = (double)(when_now_ms() - newest_ms) / 3600000;
	bool stale = max_age_hours > 0 && age_hours > max_age_hours;
	int rc = 0;
	json_object_set_new(s, "stale", json_boolean(stale));
	if (json)
		rc = json_put_line(s, out, c->err);
	else
		put_status(s, out);
	json_decref(s);
	if (rc == 0 && stale)
		rc = err_set(c->err, ERR_TEMP, "stale: nothing was published and upstream not seen for %.0f hours (limit %.0f)", age_hours, max_age_hours);
	return rc;
}

int journal_published(struct catalog *c, const char *config, FILE *out)
{
	for (uint32_t id = 0; id < c->counts.publications; id++) {
		json_t *p = catalog_publication(c, id);
		if (!p)
			return -1;
		if (!config || strcmp(json_text_of(p, "config"), config) == 0)
			fprintf(out, "%s\t%s\t%s\n", json_text_of(p, "channel"), catalog_identity(p), json_text_of(p, "sha256"));
		json_decref(p);
	}
	return 0;
}
