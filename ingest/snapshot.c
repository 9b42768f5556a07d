#include "ingest/snapshot.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"

enum { PROVENANCE_MAX = 64 * 1024 };

struct snapshots {
	char *directory; /* STORE/snapshots */
	int lock;        /* -1: reading only */
};

static struct snapshots *new_snapshots(const char *store)
{
	struct snapshots *s = xmalloc(sizeof *s);
	struct buf directory = {0};
	buf_printf(&directory, "%s/snapshots", store);
	s->directory = directory.data;
	s->lock = -1;
	return s;
}

static bool is_folder(const char *name)
{
	return strcmp(name, "state") == 0 || (strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2);
}

/* Whoever writes here holds the lock, and we do: temporaries are of writers that died. */
static void remove_temporaries(const char *directory)
{
	struct buf path = {0};
	DIR *d = opendir(directory);
	file_sweep_directory(directory);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s", directory, entry->d_name);
		if (is_folder(entry->d_name))
			file_sweep_directory(path.data);
	}
	if (d)
		closedir(d);
	buf_fini(&path);
}

struct snapshots *snapshots_open(const char *store, struct err *e)
{
	struct snapshots *s = new_snapshots(store);
	struct buf path = {0};
	buf_printf(&path, "%s/state", s->directory);
	int rc = file_make_dirs(path.data, e);
	if (rc == 0) {
		buf_clear(&path);
		buf_printf(&path, "%s/lock", s->directory);
		s->lock = file_lock(path.data, e);
		rc = s->lock < 0 ? -1 : 0;
	}
	buf_fini(&path);
	if (rc) {
		snapshots_close(s);
		return NULL;
	}
	remove_temporaries(s->directory);
	return s;
}

struct snapshots *snapshots_open_readonly(const char *store)
{
	return new_snapshots(store);
}

void snapshots_close(struct snapshots *s)
{
	if (!s)
		return;
	if (s->lock >= 0)
		close(s->lock);
	free(s->directory);
	free(s);
}

void snapshots_path(const struct snapshots *s, const struct digest *sha256, struct buf *out)
{
	char hex[DIGEST_HEX + 1];
	digest_hex(sha256, hex);
	buf_printf(out, "%s/%.2s/%s", s->directory, hex, hex);
}

void snapshots_state_path(const struct snapshots *s, const char *channel, struct buf *out)
{
	buf_printf(out, "%s/state/%s.json", s->directory, channel);
}

static void provenance_path(const struct snapshots *s, const struct publication *p, struct buf *out)
{
	snapshots_path(s, &p->sha256, out);
	buf_printf(out, ".%s-", p->channel);
	publication_tag(p, out);
	buf_str(out, ".json");
}

/* Writes the bytes; they are hashed once more on the way, as a local file may change under our eyes. */
static int write_bytes(const char *path, const struct content *c, const struct digest *expected, struct err *e)
{
	struct content_reader r;
	struct slice block;
	if (content_open(&r, c, e))
		return -1;
	struct file_out *f = file_begin(path, 0444, e);
	if (!f) {
		content_close(&r);
		return -1;
	}
	struct digest_stream *stream = digest_stream_new();
	int rc;
	while ((rc = content_next(&r, CONTENT_BLOCK, &block, e)) == 0 && block.len > 0) {
		digest_stream_add(stream, block.data, block.len);
		if ((rc = file_add(f, block.data, block.len, e)))
			break;
	}
	struct digest found = digest_stream_end(stream);
	content_close(&r);
	if (rc == 0 && digest_cmp(&found, expected) != 0)
		rc = err_at(e, ERR_TEMP, c->path, 0, 0, "changed while it was read");
	if (rc) {
		file_abort(f);
		return -1;
	}
	return file_commit(f, e);
}

static int keep_bytes(const struct snapshots *s, const struct content *c, const struct publication *p, struct err *e)
{
	struct buf path = {0};
	snapshots_path(s, &p->sha256, &path);
	int rc = 0;
	if (!content_same_as(c, p->size_bytes, path.data)) {
		char *slash = strrchr(path.data, '/');
		*slash = '\0';
		rc = file_make_dirs(path.data, e);
		*slash = '/';
		if (rc == 0)
			rc = write_bytes(path.data, c, &p->sha256, e);
	}
	buf_fini(&path);
	return rc;
}

/* Appends the provenance at `path` when it is one, of these bytes. */
static bool read_provenance(const char *path, const struct publication *p, struct buf *out)
{
	char expected[DIGEST_TEXT + 1];
	struct err ignored = {0};
	struct buf text = {0};
	json_t *value = NULL;
	digest_text(&p->sha256, expected);
	if (file_read(path, PROVENANCE_MAX, &text, &ignored) == 0)
		value = json_load_text(text.data, text.len, path, &ignored);
	const char *found = json_string_value(json_object_get(value, "sha256"));
	bool good = found && strcmp(found, expected) == 0 && json_canonical(value, out, &ignored) == 0;
	json_decref(value);
	buf_fini(&text);
	return good;
}

static int keep_provenance(const struct snapshots *s, const struct publication *p, struct buf *out, struct err *e)
{
	struct buf path = {0};
	int rc = 0;
	provenance_path(s, p, &path);
	if (!read_provenance(path.data, p, out)) {
		struct buf text = {0};
		publication_put_provenance(p, &text);
		buf_add(out, text.data, text.len);
		buf_char(&text, '\n');
		rc = file_write(path.data, text.data, text.len, 0444, e);
		buf_fini(&text);
	}
	buf_fini(&path);
	return rc;
}

int snapshots_keep(struct snapshots *s, const struct content *c, const struct publication *p, struct buf *provenance, struct err *e)
{
	if (keep_bytes(s, c, p, e))
		return -1;
	return keep_provenance(s, p, provenance, e);
}

bool snapshots_have(const struct snapshots *s, struct publication *p, struct buf *provenance)
{
	struct buf path = {0};
	struct err ignored = {0};
	struct digest found;
	snapshots_path(s, &p->sha256, &path);
	struct content c = {.path = path.data};
	bool have = content_digest(&c, &found, &p->size_bytes, &ignored) == 0 && digest_cmp(&found, &p->sha256) == 0;
	if (have) {
		buf_clear(&path);
		provenance_path(s, p, &path);
		have = read_provenance(path.data, p, provenance);
	}
	buf_fini(&path);
	return have;
}
