#include "normalize/source.h"

#include <string.h>

#include "core/json.h"

/* The base name, with anything that would need an escape in JSON replaced. */
static const char *plain_name(const char *path, struct arena *a)
{
	const char *slash = strrchr(path, '/');
	char *name = arena_strdup(a, slash ? slash + 1 : path);
	bool utf8 = json_is_utf8(name, strlen(name));
	for (char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == '"' || *p == '\\' || ((unsigned char)*p >= 0x7f && !utf8))
			*p = '_';
	return name;
}

static bool known_channel(const char *channel)
{
	static const char *const channels[] = {"committed", "cutile", "cutedsl", "gh-pages"};
	for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
		if (strcmp(channel, channels[i]) == 0)
			return true;
	return false;
}

static bool valid_commit(const char *commit)
{
	size_t len = strlen(commit);
	return len >= 12 && len <= 40 && strspn(commit, "0123456789abcdef") == len;
}

static bool valid_entry(const char *entry)
{
	size_t hex = strspn(entry, "0123456789abcdef"), len = strlen(entry);
	return hex >= 7 && len <= 100 && (entry[hex] == '\0' || entry[hex] == '-') &&
	       strspn(entry, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+_-") == len;
}

static int check(const struct source *s, enum err_code code, const char *name, unsigned number, struct err *e)
{
	if (!known_channel(s->channel))
		return err_at(e, code, name, number, 0, "channel \"%s\" is not committed, cutile, cutedsl or gh-pages", s->channel);
	if (s->commit[0] && !valid_commit(s->commit))
		return err_at(e, code, name, number, 0, "\"%s\" is no commit of 12 to 40 hex digits", s->commit);
	if (s->entry[0] && !valid_entry(s->entry))
		return err_at(e, code, name, number, 0, "\"%s\" is no gh-pages entry", s->entry);
	if ((s->entry[0] != '\0') != (strcmp(s->channel, "gh-pages") == 0))
		return err_at(e, code, name, number, 0, "an entry belongs to channel gh-pages, and to no other");
	return 0;
}

int source_local(const char *path, const char *channel, const char *commit, const char *entry, struct arena *a, struct source *out,
		 struct err *e)
{
	*out = (struct source){
		.path = path,
		.file = plain_name(path, a),
		.channel = channel ? channel : entry ? "gh-pages" : "committed",
		.commit = commit ? commit : "",
		.entry = entry ? entry : "",
		.provenance = {"", 0},
	};
	return check(out, ERR_USAGE, "", 0, e);
}

static const char *text_of(const json_t *object, const char *key, struct arena *a)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? arena_strdup(a, text) : "";
}

static int take(const json_t *object, struct arena *a, struct source *out, const char *name, unsigned number, struct err *e)
{
	const json_t *provenance = json_object_get(object, "provenance");
	const char *digest = text_of(object, "sha256", a), *file = text_of(object, "file", a);
	struct buf text = {0};
	*out = (struct source){
		.path = text_of(object, "path", a),
		.channel = text_of(object, "channel", a),
		.commit = text_of(object, "commit", a),
		.entry = text_of(object, "entry", a),
		.has_digest = true,
	};
	out->file = plain_name(file[0] ? file : out->path, a);
	if (!out->path[0])
		return err_at(e, ERR_DATA, name, number, 0, "a source line without \"path\"");
	if (!digest_parse(digest, strlen(digest), &out->sha256) && !digest_parse_hex(digest, strlen(digest), &out->sha256))
		return err_at(e, ERR_DATA, name, number, 0, "a source line without a good \"sha256\"");
	if (json_is_object(provenance) && json_canonical(provenance, &text, e))
		return -1;
	out->provenance = (struct slice){arena_strndup(a, text.len ? text.data : "", text.len), text.len};
	buf_fini(&text);
	return check(out, ERR_DATA, name, number, e);
}

int source_parse(struct slice line, struct arena *a, struct source *out, const char *name, unsigned number, struct err *e)
{
	struct err inner = {0};
	json_t *object = line.len <= SOURCE_LINE_MAX ? json_load_text(line.data, line.len, name, &inner) : NULL;
	int rc = -1;
	if (!object)
		err_at(e, ERR_DATA, name, number, inner.column, "not a source line: %s", inner.code ? inner.text : "too long");
	else if (!json_is_object(object))
		err_at(e, ERR_DATA, name, number, 0, "not a source line: not an object");
	else
		rc = take(object, a, out, name, number, e);
	json_decref(object);
	return rc;
}
