#include "ingest/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/file.h"
#include "ingest/sources.h"

enum { LIST_BYTES_MAX = 256 << 20 };

struct line {
	struct digest sha256;
	const char *channel, *id; /* point into the text */
};

struct published {
	struct buf text;
	struct line *lines; /* by digest */
	size_t count, room;
};

static int by_digest(const void *a, const void *b)
{
	return digest_cmp(&((const struct line *)a)->sha256, &((const struct line *)b)->sha256);
}

static bool read_line(char *text, struct line *out)
{
	char *id = strchr(text, '\t'), *digest = id ? strchr(id + 1, '\t') : NULL;
	if (!digest || id == text || !digest_parse(digest + 1, strlen(digest + 1), &out->sha256))
		return false;
	*id = *digest = '\0';
	out->channel = text;
	out->id = id + 1;
	return true;
}

static int read_lines(struct published *list, const char *name, struct err *e)
{
	unsigned number = 1;
	for (char *p = list->text.data, *end = p + list->text.len; p < end; number++) {
		char *stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop)
			return err_at(e, ERR_DATA, name, number, 0, "the last line is not complete");
		*stop = '\0';
		if (list->count == list->room) {
			list->room = list->room ? list->room * 2 : 64;
			list->lines = xrealloc(list->lines, list->room * sizeof *list->lines);
		}
		if (strlen(p) != (size_t)(stop - p) || !read_line(p, &list->lines[list->count++]))
			return err_at(e, ERR_DATA, name, number, 0, "not channel, commit or entry, and digest, with tabs between");
		p = stop + 1;
	}
	if (list->count > 0)
		qsort(list->lines, list->count, sizeof *list->lines, by_digest);
	return 0;
}

static int read_stdin(struct buf *out, struct err *e)
{
	char block[16 * 1024];
	size_t got;
	while ((got = fread(block, 1, sizeof block, stdin)) > 0)
		buf_add(out, block, got);
	return ferror(stdin) ? err_errno(e, "standard input", "cannot read") : 0;
}

struct published *published_load(const char *path, struct err *e)
{
	struct published *list = xcalloc(1, sizeof *list);
	bool standard = strcmp(path, "-") == 0;
	if ((standard ? read_stdin(&list->text, e) : file_read(path, LIST_BYTES_MAX, &list->text, e)) == 0 &&
	    read_lines(list, standard ? "standard input" : path, e) == 0)
		return list;
	published_free(list);
	return NULL;
}

void published_free(struct published *list)
{
	if (!list)
		return;
	buf_fini(&list->text);
	free(list->lines);
	free(list);
}

static bool same_id(const struct publication *p, const char *id)
{
	const char *own = publication_id(p);
	if (p->entry || !p->commit)
		return strcmp(own, id) == 0;
	size_t a = strlen(own), b = strlen(id);
	return source_commit_prefix_valid(id) && strncmp(own, id, a < b ? a : b) == 0;
}

bool published_has(const struct published *list, const struct publication *p)
{
	struct line key = {.sha256 = p->sha256};
	const struct line *hit = list->count ? bsearch(&key, list->lines, list->count, sizeof key, by_digest) : NULL;
	if (!hit)
		return false;
	while (hit > list->lines && by_digest(hit - 1, &key) == 0)
		hit--;
	for (; hit < list->lines + list->count && by_digest(hit, &key) == 0; hit++)
		if (strcmp(hit->channel, p->channel) == 0 && same_id(p, hit->id))
			return true;
	return false;
}
