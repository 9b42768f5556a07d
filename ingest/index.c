#include "ingest/index.h"

#include <string.h>

#include "ingest/sources.h"

enum { ENTRIES_MAX = 100000 };

/* Takes the next line (without its end) off the text. */
static struct slice next_line(struct slice *text)
{
	const char *end = memchr(text->data, '\n', text->len);
	struct slice line = {text->data, end ? (size_t)(end - text->data) : text->len};
	size_t used = line.len + (end != NULL);
	text->data += used;
	text->len -= used;
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

static bool has(const struct entry_index *index, const char *entry)
{
	for (size_t i = 0; i < index->count; i++)
		if (strcmp(index->entries[i], entry) == 0)
			return true;
	return false;
}

int index_read(struct arena *a, struct slice text, const char *name, struct entry_index *out, struct err *e)
{
	size_t lines = 1;
	int rc = 0;
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	*out = (struct entry_index){0};
	if (lines > ENTRIES_MAX)
		return err_at(e, ERR_DATA, name, 0, 0, "more than %d lines", ENTRIES_MAX);
	out->entries = arena_alloc(a, lines * sizeof *out->entries);
	for (unsigned number = 1; text.len > 0; number++) {
		struct slice line = next_line(&text);
		if (line.len == 0)
			continue;
		char *entry = arena_strndup(a, line.data, line.len);
		if (strlen(entry) != line.len || !source_entry_valid(entry))
			rc = err_at(e, ERR_DATA, name, number, 1, "not an entry (a short commit, perhaps with -tag)");
		else if (!has(out, entry))
			out->entries[out->count++] = entry;
	}
	return rc;
}

const char *index_commit(struct arena *a, struct slice table, const char *entry)
{
	size_t len = strlen(entry), prefix = strcspn(entry, "-");
	while (table.len > 0) {
		struct slice line = next_line(&table);
		if (line.len != len + 41 || memcmp(line.data, entry, len) != 0 || line.data[len] != '\t')
			continue;
		char *commit = arena_strndup(a, line.data + len + 1, 40);
		if (source_commit_valid(commit) && strncmp(commit, entry, prefix) == 0)
			return commit;
	}
	return NULL;
}
