#include "ingest/sources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/json.h"
#include "core/locate.h"
#include "ingest/address.h"

enum { CONFIG_BYTES_MAX = 1 << 20, PATH_DEPTH = 4 };

struct loaded { /* what sources_free needs; `sources` first, so that one pointer serves */
	struct sources sources;
	struct arena arena;
};

struct reader {
	struct arena *arena;
	const char *file;
	struct buf text;
	struct step {
		const char *name; /* member of an object, or NULL */
		size_t index;     /* element of an array when `name` is NULL */
	} steps[PATH_DEPTH];
	size_t depth;
	struct err *e;
};

enum field_type { FIELD_TEXT, FIELD_NUMBER, FIELD_ANY };

struct field {
	const char *name;
	enum field_type type;
	bool required;
	size_t offset; /* of a `const char *` or a `long` */
	long min, max;
};

#define TEXT_FIELD(type, member, required) {#member, FIELD_TEXT, required, offsetof(type, member), 0, 0}
#define NUMBER_FIELD(type, member, min, max) {#member, FIELD_NUMBER, true, offsetof(type, member), min, max}

static const struct field top_fields[] = {
	TEXT_FIELD(struct sources, repository, true),
	TEXT_FIELD(struct sources, api, true),
	TEXT_FIELD(struct sources, raw, true),
	{"version", FIELD_ANY, false, 0, 0, 0},
	{"about", FIELD_ANY, false, 0, 0, 0},
	{"hosts", FIELD_ANY, true, 0, 0, 0},
	{"token", FIELD_ANY, false, 0, 0, 0},
	{"limits", FIELD_ANY, true, 0, 0, 0},
	{"retry", FIELD_ANY, true, 0, 0, 0},
	{"polite", FIELD_ANY, true, 0, 0, 0},
	{"channels", FIELD_ANY, true, 0, 0, 0},
	{"testing", FIELD_ANY, false, 0, 0, 0},
	{0},
};
static const struct field limit_fields[] = {
	NUMBER_FIELD(struct source_limits, redirects, 0, 3),
	NUMBER_FIELD(struct source_limits, connectSeconds, 1, 300),
	NUMBER_FIELD(struct source_limits, totalSeconds, 1, 3600),
	NUMBER_FIELD(struct source_limits, lowSpeedBytesPerSecond, 1, 1 << 20),
	NUMBER_FIELD(struct source_limits, lowSpeedSeconds, 1, 3600),
	NUMBER_FIELD(struct source_limits, fileBytes, 1, 1 << 30),
	NUMBER_FIELD(struct source_limits, listBytes, 1, 1 << 30),
	{0},
};
static const struct field retry_fields[] = {
	NUMBER_FIELD(struct source_retry, attempts, 1, 5),
	NUMBER_FIELD(struct source_retry, backoffSeconds, 0, 60),
	NUMBER_FIELD(struct source_retry, waitMaxSeconds, 0, 900),
	{0},
};
static const struct field polite_fields[] = {
	NUMBER_FIELD(struct source_polite, pageSize, 1, 100),
	NUMBER_FIELD(struct source_polite, delayMilliseconds, 0, 60000),
	{0},
};
static const struct field host_fields[] = {
	{"host", FIELD_TEXT, true, offsetof(struct source_host, name), 0, 0},
	TEXT_FIELD(struct source_host, accept, false),
	{0},
};
static const struct field token_fields[] = {
	{"host", FIELD_TEXT, true, offsetof(struct sources, token_host), 0, 0},
	{"file", FIELD_TEXT, false, offsetof(struct sources, token_file), 0, 0},
	{0},
};
static const struct field commits_channel_fields[] = {
	{"channel", FIELD_TEXT, true, offsetof(struct source_channel, name), 0, 0},
	TEXT_FIELD(struct source_channel, commits, true),
	{0},
};
static const struct field drops_channel_fields[] = {
	{"channel", FIELD_TEXT, true, offsetof(struct source_channel, name), 0, 0},
	TEXT_FIELD(struct source_channel, branch, true),
	TEXT_FIELD(struct source_channel, index, true),
	TEXT_FIELD(struct source_channel, folder, true),
	TEXT_FIELD(struct source_channel, file, true),
	{0},
};
static const struct field testing_fields[] = {
	{"hostMap", FIELD_ANY, true, 0, 0, 0},
	{"caFile", FIELD_TEXT, false, offsetof(struct sources, ca_file), 0, 0},
	{0},
};

/* Fails at the value the reader stands on, or at its member `name`. */
static int wrong(struct reader *r, const char *name, const char *what)
{
	unsigned line, column;
	struct buf pointer = {0};
	buf_str(&pointer, "");
	for (size_t i = 0; i < r->depth; i++) {
		if (r->steps[i].name)
			buf_printf(&pointer, "/%s", r->steps[i].name);
		else
			buf_printf(&pointer, "/%zu", r->steps[i].index);
	}
	if (name)
		buf_printf(&pointer, "/%s", name);
	locate(r->text.data, r->text.len, pointer.data, &line, &column);
	buf_fini(&pointer);
	return err_at(r->e, ERR_CONFIG, r->file, line, column, "%s%s%s", name ? name : "", name ? ": " : "", what);
}

static void enter_member(struct reader *r, const char *name)
{
	r->steps[r->depth++] = (struct step){name, 0};
}

static void enter_element(struct reader *r, size_t index)
{
	r->steps[r->depth++] = (struct step){NULL, index};
}

static void leave(struct reader *r)
{
	r->depth--;
}

static int read_field(struct reader *r, const struct field *f, json_t *value, void *into)
{
	char *place = (char *)into + f->offset;
	if (f->type == FIELD_TEXT) {
		if (!json_is_string(value) || json_string_length(value) == 0)
			return wrong(r, f->name, "not a text");
		const char *text = arena_strdup(r->arena, json_string_value(value));
		memcpy(place, &text, sizeof text);
	} else if (f->type == FIELD_NUMBER) {
		int64_t number;
		if (!json_whole(value, &number) || number < f->min || number > f->max)
			return wrong(r, f->name, "not a whole number in the allowed range");
		long narrow = (long)number;
		memcpy(place, &narrow, sizeof narrow);
	}
	return 0;
}

/* Reads the members of an object by its table. */
static int read_fields(struct reader *r, json_t *object, const struct field *fields, void *into)
{
	const char *name;
	json_t *value;
	if (!json_is_object(object))
		return wrong(r, NULL, "not an object");
	json_object_foreach(object, name, value) {
		const struct field *f = fields;
		while (f->name && strcmp(f->name, name) != 0)
			f++;
		if (!f->name)
			return wrong(r, name, "unknown field");
		if (read_field(r, f, value, into))
			return -1;
	}
	for (const struct field *f = fields; f->name; f++)
		if (f->required && !json_object_get(object, f->name)) {
			struct buf text = {0};
			buf_printf(&text, "field %s is missing", f->name);
			wrong(r, NULL, text.data);
			buf_fini(&text);
			return -1;
		}
	return 0;
}

static int read_member(struct reader *r, json_t *root, const char *name, const struct field *fields, void *into)
{
	json_t *value = json_object_get(root, name);
	if (!value)
		return 0;
	enter_member(r, name);
	int rc = read_fields(r, value, fields, into);
	leave(r);
	return rc;
}

bool source_name_valid(const char *text)
{
	size_t len = strlen(text);
	return len >= 1 && len <= 100 && text[0] != '.' && text[0] != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

static size_t hex_run(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

bool source_commit_valid(const char *text)
{
	return hex_run(text) == 40 && text[40] == '\0';
}

bool source_commit_prefix_valid(const char *text)
{
	size_t len = hex_run(text);
	return len >= 12 && len <= 40 && text[len] == '\0';
}

bool source_entry_valid(const char *text)
{
	size_t len = hex_run(text);
	if (!source_name_valid(text) || len < 7 || len > 40)
		return false;
	return text[len] == '\0' || (text[len] == '-' && source_name_valid(text + len + 1));
}

/* Names joined by single slashes. */
static bool path_valid(const char *path)
{
	char name[101];
	for (const char *p = path;; p++) {
		size_t len = strcspn(p, "/");
		if (len >= sizeof name)
			return false;
		memcpy(name, p, len);
		name[len] = '\0';
		if (!source_name_valid(name))
			return false;
		p += len;
		if (*p == '\0')
			return true;
	}
}

/* A DNS name of two labels or more whose last one starts with a letter: no IP literal in any of its spellings. */
static bool host_valid(const char *host)
{
	const char *last = strrchr(host, '.');
	size_t len = strlen(host);
	return last && last != host && !strstr(host, "..") && islower((unsigned char)last[1]) && len <= 253 &&
	       host[0] != '-' && host[0] != '.' && strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len;
}

static int read_hosts(struct reader *r, json_t *root, struct sources *s)
{
	json_t *list = json_object_get(root, "hosts");
	enter_member(r, "hosts");
	if (!json_is_array(list) || json_array_size(list) == 0)
		return wrong(r, NULL, "not a list of hosts");
	s->hosts = arena_alloc(r->arena, json_array_size(list) * sizeof *s->hosts);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct source_host host = {0};
		enter_element(r, i);
		if (read_fields(r, json_array_get(list, i), host_fields, &host))
			return -1;
		if (!host_valid(host.name))
			return wrong(r, "host", "not a lowercase DNS name");
		if (host.accept && strpbrk(host.accept, "\r\n"))
			return wrong(r, "accept", "not one line");
		if (sources_host(s, host.name))
			return wrong(r, "host", "listed twice");
		s->hosts[s->host_count++] = host;
		leave(r);
	}
	leave(r);
	return 0;
}

static int check_channel(struct reader *r, const struct sources *s, const struct source_channel *c)
{
	if (!source_name_valid(c->name))
		return wrong(r, "channel", "not a plain name");
	if (sources_channel(s, c->name))
		return wrong(r, "channel", "listed twice");
	if (c->commits)
		return path_valid(c->commits) ? 0 : wrong(r, "commits", "not a plain path");
	if (!source_name_valid(c->branch))
		return wrong(r, "branch", "not a plain name");
	if (!path_valid(c->index))
		return wrong(r, "index", "not a plain path");
	if (!path_valid(c->folder))
		return wrong(r, "folder", "not a plain path");
	return source_name_valid(c->file) ? 0 : wrong(r, "file", "not a plain name");
}

static int read_channels(struct reader *r, json_t *root, struct sources *s)
{
	json_t *list = json_object_get(root, "channels");
	enter_member(r, "channels");
	if (!json_is_array(list) || json_array_size(list) == 0)
		return wrong(r, NULL, "not a list of channels");
	s->channels = arena_alloc(r->arena, json_array_size(list) * sizeof *s->channels);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *item = json_array_get(list, i);
		struct source_channel channel = {0};
		enter_element(r, i);
		if (read_fields(r, item, json_object_get(item, "branch") ? drops_channel_fields : commits_channel_fields, &channel) ||
		    check_channel(r, s, &channel))
			return -1;
		s->channels[s->channel_count++] = channel;
		leave(r);
	}
	leave(r);
	return 0;
}

static bool read_port(const char *text, unsigned *out)
{
	size_t len = strspn(text, "0123456789");
	unsigned long port = len >= 1 && len <= 5 && text[len] == '\0' ? strtoul(text, NULL, 10) : 0;
	*out = (unsigned)port;
	return port >= 1 && port <= 65535;
}

static int map_host(struct reader *r, struct sources *s, const char *name, json_t *value)
{
	const struct source_host *known = sources_host(s, name);
	const char *text = json_string_value(value), *colon = text ? strrchr(text, ':') : NULL;
	if (!known)
		return wrong(r, name, "not one of the hosts");
	struct source_host *host = &s->hosts[known - s->hosts];
	if (!colon || !read_port(colon + 1, &host->mapped_port))
		return wrong(r, name, "not address:port");
	char *address = arena_strndup(r->arena, text, (size_t)(colon - text));
	if (!address_text_is_loopback(address))
		return wrong(r, name, "not a loopback address");
	host->mapped_address = address;
	return 0;
}

static int read_testing(struct reader *r, json_t *root, bool allowed, struct sources *s)
{
	json_t *testing = json_object_get(root, "testing"), *map = json_object_get(testing, "hostMap"), *value;
	const char *name;
	if (!testing)
		return 0;
	if (!allowed)
		return wrong(r, "testing", "accepted only from a directory given with --config");
	if (read_member(r, root, "testing", testing_fields, s))
		return -1;
	enter_member(r, "testing");
	enter_member(r, "hostMap");
	if (!json_is_object(map))
		return wrong(r, NULL, "not an object");
	json_object_foreach(map, name, value)
		if (map_host(r, s, name, value))
			return -1;
	leave(r);
	leave(r);
	return 0;
}

/* `https://` and one of the hosts, nothing after it. */
static bool base_valid(const struct sources *s, const char *base)
{
	return strncmp(base, "https://", 8) == 0 && sources_host(s, base + 8);
}

static int check_whole(struct reader *r, const struct sources *s)
{
	if (!path_valid(s->repository) || !strchr(s->repository, '/'))
		return wrong(r, "repository", "not owner/name");
	if (!base_valid(s, s->api))
		return wrong(r, "api", "not https:// and one of the hosts");
	if (!base_valid(s, s->raw))
		return wrong(r, "raw", "not https:// and one of the hosts");
	if (s->token_host && !sources_host(s, s->token_host))
		return wrong(r, "token", "its host is not one of the hosts");
	return 0;
}

static int read_all(struct reader *r, json_t *root, bool testing_allowed, struct sources *s)
{
	if (read_fields(r, root, top_fields, s) || read_hosts(r, root, s) || read_channels(r, root, s) ||
	    read_member(r, root, "token", token_fields, s) || read_member(r, root, "limits", limit_fields, &s->limits) ||
	    read_member(r, root, "retry", retry_fields, &s->retry) ||
	    read_member(r, root, "polite", polite_fields, &s->polite) || read_testing(r, root, testing_allowed, s))
		return -1;
	return check_whole(r, s);
}

/* Paths in the file are relative to its directory. */
static const char *beside(struct arena *a, const char *directory, const char *path)
{
	return !path || path[0] == '/' ? path : arena_printf(a, "%s/%s", directory, path);
}

struct sources *sources_load(const char *directory, bool testing_allowed, struct err *e)
{
	struct loaded *l = xcalloc(1, sizeof *l);
	struct reader r = {.arena = &l->arena, .file = arena_printf(&l->arena, "%s/sources.json", directory), .e = e};
	struct err why = {0};
	json_t *root = NULL;
	int rc = file_read(r.file, CONFIG_BYTES_MAX, &r.text, &why);
	if (rc == 0 && !(root = json_load_text(r.text.data, r.text.len, r.file, &why)))
		rc = -1;
	if (rc) {
		err_in_config(&why);
		err_at(e, why.code, r.file, why.line, why.column, "%s", why.text);
	} else {
		rc = read_all(&r, root, testing_allowed, &l->sources);
	}
	json_decref(root);
	buf_fini(&r.text);
	if (rc) {
		sources_free(&l->sources);
		return NULL;
	}
	l->sources.token_file = beside(&l->arena, directory, l->sources.token_file);
	l->sources.ca_file = beside(&l->arena, directory, l->sources.ca_file);
	return &l->sources;
}

void sources_free(struct sources *s)
{
	if (!s)
		return;
	struct loaded *l = (struct loaded *)s;
	struct arena a = l->arena;
	free(l);
	arena_fini(&a);
}

const struct source_host *sources_host(const struct sources *s, const char *name)
{
	for (size_t i = 0; i < s->host_count; i++)
		if (strcasecmp(s->hosts[i].name, name) == 0)
			return &s->hosts[i];
	return NULL;
}

const struct source_channel *sources_channel(const struct sources *s, const char *name)
{
	for (size_t i = 0; i < s->channel_count; i++)
		if (strcmp(s->channels[i].name, name) == 0)
			return &s->channels[i];
	return NULL;
}
