#include "store/journal.h"

#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/when.h"

static const char *text_of(const json_t *p, const char *name)
{
	const char *text = json_string_value(json_object_get(p, name));
	return text ? text : "";
}

static const char *identity_of(const json_t *p)
{
	const char *entry = text_of(p, "entry");
	return *entry ? entry : text_of(p, "commit");
}

static long long whole_of(const json_t *p, const char *name)
{
	return (long long)json_integer_value(json_object_get(p, name));
}

static int put_json_line(const json_t *value, FILE *out, struct err *e)
{
	struct buf text = {0};
	int rc = json_canonical(value, &text, e);
	if (rc == 0)
		fprintf(out, "%s\n", text.data);
	buf_fini(&text);
	return rc;
}

static void put_log_line(const json_t *p, FILE *out)
{
	const json_t *copy = json_object_get(p, "copyOf");
	fprintf(out, "%4lld  %.19s  %-9s %-12.12s  %6lld rows, %6lld carried, %6lld new", whole_of(p, "id"), text_of(p, "publishedAt"), text_of(p, "channel"),
		identity_of(p), whole_of(json_object_get(p, "report"), "rows"), whole_of(p, "carried"), whole_of(p, "newRuns"));
	if (whole_of(p, "conflicts"))
		fprintf(out, ", %lld conflicts", whole_of(p, "conflicts"));
	if (json_object_get(p, "changes"))
		fprintf(out, "; other bytes than publication %lld had", whole_of(p, "changes"));
	if (copy)
		fprintf(out, "; byte copy of %s %s", text_of(copy, "channel"), text_of(copy, "commit"));
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
			put_json_line(p, out, c->err);
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
			bool mine = strcmp(text_of(p, "channel"), c->channels.items[slot].name) == 0;
			if (mine) {
				when_parse_text(text_of(p, "publishedAt"), strlen(text_of(p, "publishedAt")), &at);
				json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "channel", text_of(p, "channel"), "identity", identity_of(p),
								      "publishedAt", text_of(p, "publishedAt"), "ageHours",
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
	return s;
}

static void put_status(const json_t *s, FILE *out)
{
	size_t i;
	json_t *channel;
	fprintf(out, "store         %s (schema %lld)\n", text_of(s, "store"), whole_of(s, "schema"));
	fprintf(out, "runs          %lld in %lld cases, citing %lld objects\n", whole_of(s, "runs"), whole_of(s, "cases"), whole_of(s, "objects"));
	fprintf(out, "size          %lld bytes on disk, %lld live, %lld a run\n", whole_of(s, "fileBytes"), whole_of(s, "liveBytes"),
		whole_of(s, "liveBytesPerRun"));
	fprintf(out, "publications  %lld\n", whole_of(s, "publications"));
	json_array_foreach(json_object_get(s, "channels"), i, channel)
		fprintf(out, "  %-10s  %-12.12s  %s, %lld hours ago\n", text_of(channel, "channel"), text_of(channel, "identity"),
			text_of(channel, "publishedAt"), whole_of(channel, "ageHours"));
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
		rc = put_json_line(s, out, c->err);
	else
		put_status(s, out);
	json_decref(s);
	if (rc == 0 && stale)
		rc = err_set(c->err, ERR_TEMP, "stale: the newest publication is %.0f hours old (limit %.0f)", age_hours, max_age_hours);
	return rc;
}

int journal_published(struct catalog *c, const char *config, FILE *out)
{
	for (uint32_t id = 0; id < c->counts.publications; id++) {
		json_t *p = catalog_publication(c, id);
		if (!p)
			return -1;
		if (!config || strcmp(text_of(p, "config"), config) == 0)
			fprintf(out, "%s\t%s\t%s\n", text_of(p, "channel"), identity_of(p), text_of(p, "sha256"));
		json_decref(p);
	}
	return 0;
}
