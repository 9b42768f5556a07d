#include "ingest/local.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/when.h"
#include "ingest/index.h"

enum { DATE = 20, LIST_BYTES_MAX = 64 << 20 };

struct tree {
	struct ingest *in;
	const char *directory; /* of the tree's part */
	bool (*wanted)(const void *context, const char *channel);
	const void *context;
	struct arena arena;
	char **names; /* of its `.csv` files, sorted by bytes */
	size_t count;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

int local_file(struct ingest *in, const char *path, const struct source_channel *channel, const char *commit, const char *entry,
	       struct err *e)
{
	struct content c = {.path = path};
	struct publication p = {
		.channel = channel->name,
		.commit = commit,
		.entry = entry,
		.path = channel->commits,
		.file = base_name(path),
	};
	return ingest_local(in, &c, &p, e);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_in_csv(const char *name)
{
	size_t len = strlen(name);
	return len > 4 && strcmp(name + len - 4, ".csv") == 0;
}

static int list_names(struct tree *t, struct err *e)
{
	size_t room = 0;
	DIR *d = opendir(t->directory);
	if (!d)
		return err_errno(e, t->directory, "cannot open directory");
	for (struct dirent *entry; (entry = readdir(d));) {
		if (!ends_in_csv(entry->d_name))
			continue;
		if (t->count == room) {
			room = room ? room * 2 : 64;
			t->names = xrealloc(t->names, room * sizeof *t->names);
		}
		t->names[t->count++] = arena_strdup(&t->arena, entry->d_name);
	}
	closedir(d);
	if (t->count)
		qsort(t->names, t->count, sizeof *t->names, by_bytes);
	return 0;
}

static void tree_fini(struct tree *t)
{
	free(t->names);
	arena_fini(&t->arena);
}

/* `2025-05-14T23-53-13Z` to `2025-05-14T23:53:13Z`; NULL when it is no date. */
static const char *date_of(struct arena *a, const char *name)
{
	int64_t ignored;
	if (strlen(name) < DATE)
		return NULL;
	char *date = arena_strndup(a, name, DATE);
	if (date[13] != '-' || date[16] != '-')
		return NULL;
	date[13] = date[16] = ':';
	return when_parse(date, DATE, &ignored) ? date : NULL;
}

/* What the name of a committed file tells; false when it is named otherwise. */
static bool read_name(struct tree *t, const char *name, struct publication *p)
{
	const char *date = date_of(&t->arena, name), *dash = strrchr(name, '-');
	if (!date || dash < name + DATE)
		return false;
	const char *suffix = arena_strndup(&t->arena, name + DATE, (size_t)(dash - name) - DATE);
	char *commit = arena_strndup(&t->arena, dash + 1, strlen(dash + 1) - 4);
	const struct source_channel *channel = NULL;
	if (*suffix == '\0')
		channel = sources_channel(t->in->sources, "committed");
	else if (*suffix == '_')
		channel = sources_channel(t->in->sources, suffix + 1);
	if (!channel || !channel->commits || !source_commit_prefix_valid(commit))
		return false;
	*p = (struct publication){
		.channel = channel->name,
		.commit = commit,
		.path = channel->commits,
		.file = base_name(channel->commits),
		.committed_at = date,
	};
	return true;
}

static int replay_committed(struct tree *t, struct err *e)
{
	if (list_names(t, e))
		return -1;
	for (size_t i = 0; i < t->count; i++) {
		struct publication p;
		struct content c = {.path = arena_printf(&t->arena, "%s/%s", t->directory, t->names[i])};
		if (!read_name(t, t->names[i], &p))
			log_warn("%s: left out, its name is not date, channel and commit", c.path);
		else if (t->wanted(t->context, p.channel) && ingest_local(t->in, &c, &p, e))
			return -1;
	}
	return 0;
}

static int read_list(struct tree *t, const char *name, struct slice *out, struct err *e)
{
	struct buf text = {0};
	const char *path = arena_printf(&t->arena, "%s/%s", t->directory, name);
	int rc = file_read(path, LIST_BYTES_MAX, &text, e);
	if (rc == 0)
		*out = (struct slice){arena_strndup(&t->arena, text.data, text.len), text.len};
	buf_fini(&text);
	return rc;
}

static int replay_entry(struct tree *t, const struct source_channel *channel, const char *entry, struct slice commits, struct err *e)
{
	struct content c = {.path = arena_printf(&t->arena, "%s/%s.csv", t->directory, entry)};
	if (!file_exists(c.path)) {
		t->in->missing++;
		return 0;
	}
	struct publication p = {
		.channel = channel->name,
		.entry = entry,
		.commit = index_commit(&t->arena, commits, entry),
		.path = arena_printf(&t->arena, "%s/%s/%s", channel->folder, entry, channel->file),
		.file = channel->file,
	};
	return ingest_local(t->in, &c, &p, e);
}

static void report_unlisted(struct tree *t, const struct entry_index *index)
{
	for (size_t i = 0; i < t->count; i++) {
		bool listed = false;
		for (size_t k = 0; k < index->count && !listed; k++)
			listed = strlen(index->entries[k]) + 4 == strlen(t->names[i]) &&
				 strncmp(index->entries[k], t->names[i], strlen(index->entries[k])) == 0;
		if (!listed)
			log_warn("%s/%s: left out, commits.txt does not list it", t->directory, t->names[i]);
	}
}

static int replay_drops(struct tree *t, const struct source_channel *channel, struct err *e)
{
	struct slice list, commits = {0};
	struct entry_index index;
	struct err none = {0};
	if (read_list(t, "commits.txt", &list, e) || list_names(t, e))
		return -1;
	if (read_list(t, "entries.tsv", &commits, &none) && none.code != ERR_NOTFOUND)
		return err_at(e, none.code, none.file, 0, 0, "%s", none.text);
	if (index_read(&t->arena, list, arena_printf(&t->arena, "%s/commits.txt", t->directory), &index, e))
		return -1;
	report_unlisted(t, &index);
	for (size_t i = 0; i < index.count; i++)
		if (replay_entry(t, channel, index.entries[i], commits, e))
			return -1;
	return 0;
}

static const struct source_channel *drops_channel(const struct sources *s)
{
	for (size_t i = 0; i < s->channel_count; i++)
		if (s->channels[i].index)
			return &s->channels[i];
	return NULL;
}

int local_replay(struct ingest *in, const char *directory, bool (*wanted)(const void *context, const char *channel),
		 const void *context, struct err *e)
{
	const struct source_channel *drops = drops_channel(in->sources);
	struct tree committed = {.in = in, .wanted = wanted, .context = context}, pages = committed;
	committed.directory = arena_printf(&committed.arena, "%s/committed", directory);
	pages.directory = arena_printf(&pages.arena, "%s/gh-pages", directory);
	bool have_committed = file_exists(committed.directory), have_pages = file_exists(pages.directory);
	int rc = 0;
	if (!have_committed && !have_pages)
		rc = err_at(e, ERR_NOTFOUND, directory, 0, 0, "holds neither committed/ nor gh-pages/");
	if (rc == 0 && have_committed)
		rc = replay_committed(&committed, e);
	if (rc == 0 && have_pages && drops && wanted(context, drops->name))
		rc = replay_drops(&pages, drops, e);
	tree_fini(&committed);
	tree_fini(&pages);
	return rc;
}
