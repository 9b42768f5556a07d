/* Lists from upstream and from disk. The first byte says which: a page of commits or one commit (GitHub's API), the index of drops, the
 * commits of entries, the catalog's list of what is published, the state of a channel. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "fuzz.h"
#include "ingest/github.h"
#include "ingest/index.h"
#include "ingest/published.h"
#include "ingest/state.h"

static void read_commits(struct arena *a, struct slice text)
{
	struct github_commit *commits, one;
	size_t count;
	struct err e = {0}, other = {0};
	int rc = github_read_commits(a, text, "https://api.github.com/", &commits, &count, &e);
	must_agree(rc != 0, &e);
	for (size_t i = 0; rc == 0 && i < count; i++)
		must(source_commit_valid(commits[i].sha), "a commit has 40 digits");
	rc = github_read_commit(a, text, "https://api.github.com/", "0123", &one, &other);
	must_agree(rc != 0, &other);
	must(rc || (source_commit_valid(one.sha) && strncmp(one.sha, "0123", 4) == 0), "a commit is the one asked for");
}

static void read_index(struct arena *a, struct slice text)
{
	struct entry_index index;
	struct err e = {0};
	int rc = index_read(a, text, "commits.txt", &index, &e);
	must_agree(rc != 0, &e);
	for (size_t i = 0; i < index.count; i++) {
		must(source_entry_valid(index.entries[i]) && !strchr(index.entries[i], '/'), "an entry stays in its folder");
		const char *commit = index_commit(a, text, index.entries[i]);
		must(!commit || source_commit_valid(commit), "an entry's commit has 40 digits");
	}
}

static void read_published(struct slice text)
{
	char path[32];
	struct err e = {0};
	int fd = fuzz_file(text.data, text.len, path);
	struct published *list = published_load(path, &e);
	must_agree(!list, &e);
	if (list) {
		struct publication p = {.channel = "committed", .commit = "0123456789ab"};
		published_has(list, &p);
	}
	published_free(list);
	close(fd);
}

/* A state that is written reads back, whatever it was read from. */
static void read_state(struct slice text)
{
	static struct snapshots *s;
	struct buf path = {0}, folder = {0}, kept = {0}, again = {0};
	struct err e = {0};
	if (!s)
		s = snapshots_open_readonly(fuzz_directory());
	buf_printf(&folder, "%s/snapshots/state", fuzz_directory());
	snapshots_state_path(s, "committed", &path);
	must(file_make_dirs(folder.data, &e) == 0, "there is a place for state");
	FILE *out = fopen(path.data, "w");
	must(out && fwrite(text.data, 1, text.len, out) == text.len && fclose(out) == 0, "there is room for state");
	struct state *st = state_load(s, "committed");
	st->dirty = true;
	must(state_save(st, s, &e) == 0 && file_read(path.data, SIZE_MAX / 2, &kept, &e) == 0, "a state can be written");
	state_free(st);
	st = state_load(s, "committed");
	st->dirty = true;
	must(state_save(st, s, &e) == 0 && file_read(path.data, SIZE_MAX / 2, &again, &e) == 0, "a state can be written again");
	must(slice_same((struct slice){kept.data, kept.len}, (struct slice){again.data, again.len}), "a state that is written reads back");
	state_free(st);
	buf_fini(&path);
	buf_fini(&folder);
	buf_fini(&kept);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	struct arena a = {0};
	uint8_t which = feed_byte(&feed);
	struct slice text = feed_rest(&feed);
	if (which == 'c')
		read_commits(&a, text);
	else if (which == 'i')
		read_index(&a, text);
	else if (which == 'p')
		read_published(text);
	else if (which == 's')
		read_state(text);
	arena_fini(&a);
	return 0;
}
