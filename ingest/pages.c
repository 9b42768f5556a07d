/* A channel of drops (gh-pages): a list of entries, one file for each. */
#include "ingest/ingest.h"

#include <string.h>

#include "core/log.h"
#include "ingest/github.h"
#include "ingest/index.h"

struct walk {
	struct ingest *in;
	const struct source_channel *channel;
	struct state *state;
	struct arena arena;
	bool complete; /* every entry of the list is kept */
};

static const char *path_of(struct walk *w, const char *entry)
{
	return arena_printf(&w->arena, "%s/%s/%s", w->channel->folder, entry, w->channel->file);
}

static struct publication publication_of(struct walk *w, const char *entry, const struct state_item *item)
{
	return (struct publication){
		.channel = w->channel->name,
		.entry = entry,
		.commit = item ? item->commit : NULL,
		.committed_at = item ? item->committed_at : NULL,
		.path = path_of(w, entry),
		.file = w->channel->file,
	};
}

/* Asks once for the full commit that a new entry is about. Upstream may have dropped the commit: then it stays unknown. */
static int ask_commit(struct walk *w, const char *entry, struct publication *p, struct err *e)
{
	const char *prefix = arena_strndup(&w->arena, entry, strcspn(entry, "-"));
	const char *url = github_commit_url(&w->arena, w->in->sources, prefix);
	struct github_commit commit = {0};
	struct fetch_reply reply;
	struct err why = {0};
	int rc = fetch_get(w->in->fetch, url, NULL, w->in->sources->limits.listBytes, &reply, &why);
	if (rc == 0)
		rc = github_read_commit(&w->arena, (struct slice){reply.body.data, reply.body.len}, url, prefix, &commit, &why);
	fetch_reply_fini(&reply);
	if (rc && why.code != ERR_NOTFOUND)
		return err_at(e, why.code, why.file, why.line, why.column, "%s", why.text);
	if (rc)
		log_warn("%s %s: upstream does not know its commit", w->channel->name, entry);
	p->commit = commit.sha;
	p->committed_at = commit.committed_at;
	return 0;
}

static void remember(struct walk *w, const struct publication *p, const char *etag)
{
	struct state_item *item = state_find(w->state, p->entry);
	if (!item)
		item = state_add(w->state, p->entry);
	if (digest_cmp(&item->sha256, &p->sha256) != 0)
		w->state->dirty = true;
	item->sha256 = p->sha256;
	state_set(w->state, &item->commit, p->commit);
	state_set(w->state, &item->committed_at, p->committed_at);
	state_set(w->state, &item->etag, etag);
}

/* Fetches an entry's file, the first time or once more (`item` set). */
static int take(struct walk *w, const char *entry, const char *etag, const struct state_item *item, struct err *e)
{
	struct publication p = publication_of(w, entry, item);
	struct fetch_reply reply;
	const char *url = github_raw_url(&w->arena, w->in->sources, w->channel->branch, p.path);
	int rc = fetch_get(w->in->fetch, url, etag, w->in->sources->limits.fileBytes, &reply, e);
	if (rc == 0 && reply.not_modified) {
		w->in->unchanged++;
	} else if (rc == 0) {
		if (!item)
			rc = ask_commit(w, entry, &p, e);
		if (rc == 0)
			rc = ingest_fetched(w->in, &reply, url, &p, item ? &item->sha256 : NULL, e);
		if (rc == 0)
			remember(w, &p, reply.etag);
	}
	fetch_reply_fini(&reply);
	return rc;
}

static int visit(struct walk *w, const char *entry, struct err *e)
{
	const struct state_item *item = state_find(w->state, entry);
	bool lost = false;
	if (!item)
		return take(w, entry, NULL, NULL, e);
	if (w->in->recheck)
		return take(w, entry, item->etag, item, e);
	struct publication p = publication_of(w, entry, item);
	p.sha256 = item->sha256;
	if (ingest_held(w->in, &p, &lost, e))
		return -1;
	return lost ? take(w, entry, NULL, item, e) : 0;
}

static int visit_all(struct walk *w, char **entries, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		struct err why = {0};
		unsigned before = fetch_requests(w->in->fetch);
		if (visit(w, entries[i], &why)) {
			if (why.code != ERR_NOTFOUND)
				return err_at(e, why.code, why.file, why.line, why.column, "%s", why.text);
			log_warn("%s %s: listed, but upstream has no file for it", w->channel->name, entries[i]);
			w->in->missing++;
			w->complete = false;
		}
		if (!w->in->dry_run && state_save(w->state, w->in->snapshots, e))
			return -1;
		if (i + 1 < count && fetch_requests(w->in->fetch) > before)
			fetch_pause(w->in->fetch);
	}
	return 0;
}

/* The entries kept so far, for when the list has not changed. */
static int visit_held(struct walk *w, struct err *e)
{
	size_t count = w->state->count;
	char **entries = arena_alloc(&w->arena, (count + 1) * sizeof *entries);
	for (size_t i = 0; i < count; i++)
		entries[i] = arena_strdup(&w->arena, w->state->items[i].id);
	return visit_all(w, entries, count, e);
}

static bool listed(const struct entry_index *index, const char *entry)
{
	for (size_t i = 0; i < index->count; i++)
		if (strcmp(index->entries[i], entry) == 0)
			return true;
	return false;
}

static void report_vanished(struct walk *w, const struct entry_index *index)
{
	for (size_t i = 0; i < w->state->count; i++)
		if (!listed(index, w->state->items[i].id))
			log_warn("%s %s: no longer listed by upstream; what was kept stays", w->channel->name, w->state->items[i].id);
}

static int visit_list(struct walk *w, struct err *e)
{
	struct fetch_reply reply;
	struct entry_index index = {0};
	struct err bad = {0};
	const char *url = github_raw_url(&w->arena, w->in->sources, w->channel->branch, w->channel->index);
	int rc = fetch_get(w->in->fetch, url, w->state->etag, w->in->sources->limits.listBytes, &reply, e);
	if (rc == 0 && reply.not_modified) {
		rc = visit_held(w, e);
	} else if (rc == 0) {
		bool clean = index_read(&w->arena, (struct slice){reply.body.data, reply.body.len}, url, &index, &bad) == 0;
		report_vanished(w, &index);
		rc = visit_all(w, index.entries, index.count, e);
		state_set(w->state, &w->state->etag, rc == 0 && clean && w->complete ? reply.etag : NULL);
		if (rc == 0 && !clean)
			rc = err_at(e, bad.code, bad.file, bad.line, bad.column, "%s", bad.text);
	}
	fetch_reply_fini(&reply);
	return rc;
}

int pages_run(struct ingest *in, const struct source_channel *channel, struct err *e)
{
	struct walk w = {.in = in, .channel = channel, .complete = true, .state = state_load(in->snapshots, channel->name)};
	int rc = visit_list(&w, e);
	if (!in->dry_run && state_save(w.state, in->snapshots, e))
		rc = -1;
	state_free(w.state);
	arena_fini(&w.arena);
	return rc;
}
