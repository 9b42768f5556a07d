#include "ingest/publication.h"

#include <string.h>

#include "core/json.h"
#include "core/when.h"

const char *publication_id(const struct publication *p)
{
	if (p->entry)
		return p->entry;
	return p->commit ? p->commit : "";
}

void publication_tag(const struct publication *p, struct buf *out)
{
	const char *id = publication_id(p);
	if (!p->entry && !p->commit)
		id = "local";
	buf_add(out, id, p->entry ? strlen(id) : strnlen(id, 12));
}

static void put_name(struct buf *out, const char *name)
{
	if (out->data[out->len - 1] != '{')
		buf_char(out, ',');
	json_put_str(out, name);
	buf_char(out, ':');
}

static void put_text(struct buf *out, const char *name, const char *text)
{
	if (!text || !json_is_utf8(text, strlen(text)))
		return;
	put_name(out, name);
	json_put_str(out, text);
}

static void put_bytes(struct buf *out, const struct publication *p)
{
	char text[DIGEST_TEXT + 1];
	digest_text(&p->sha256, text);
	put_text(out, "sha256", text);
	put_name(out, "sizeBytes");
	buf_i64(out, p->size_bytes);
}

void publication_put_provenance(const struct publication *p, struct buf *out)
{
	char fetched[WHEN_TEXT + 1];
	when_text(p->fetched_ms, fetched);
	buf_char(out, '{');
	put_text(out, "channel", p->channel);
	put_text(out, "commit", p->commit);
	put_text(out, "committedAt", p->committed_at);
	put_text(out, "entry", p->entry);
	put_text(out, "etag", p->etag);
	put_text(out, "fetchedAt", fetched);
	put_text(out, "file", p->file);
	put_text(out, "finalUrl", p->final_url);
	put_text(out, "lastModified", p->last_modified);
	put_text(out, "mediaType", p->media_type);
	put_text(out, "path", p->path);
	put_text(out, "requestedUrl", p->requested_url);
	put_bytes(out, p);
	buf_char(out, '}');
}

int publication_put_line(const struct publication *p, const char *path, struct slice provenance, struct buf *out, struct err *e)
{
	const char *texts[] = {p->file, path};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i] && !json_is_utf8(texts[i], strlen(texts[i])))
			return err_at(e, ERR_DATA, texts[i], 0, 0, "the name is not UTF-8");
	buf_char(out, '{');
	if (p->changed) {
		put_name(out, "changed");
		buf_str(out, "true");
	}
	put_text(out, "channel", p->channel);
	put_text(out, "commit", p->commit);
	put_text(out, "entry", p->entry);
	put_text(out, "file", p->file);
	put_text(out, "path", path);
	put_name(out, "provenance");
	buf_add(out, provenance.data, provenance.len);
	put_bytes(out, p);
	buf_str(out, "}\n");
	return 0;
}
