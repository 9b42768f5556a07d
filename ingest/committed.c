/* A channel that follows one file through its commits (committed, cutile, cutedsl). */
#include "ingest/ingest.h"

#include <string.h>

#include "core/log.h"
#include "ingest/github.h"

enum { PAGES_MAX = 1000 };

/* One run over one channel. */
struct walk {
	struct ingest *in;
	const struct source_channel *channel;
	struct state *state;
	struct arena arena;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static struct publication publication_of(const struct walk *w, const char *commit, const char *committed_at)
{
	return (struct publication){
		.channel = w->channel->name,
		.commit = commit,
		.path = w->channel->commits,
		.file = base_name(w->channel->commits),
		.committed_at = committed_at,
	};
}

static int save(struct walk *w, struct err *e)
{
	return w->in->dry_run ? 0 : state_save(w->state, w->in->snapshots, e);
}

/* Fetches the file at a commit, keeps it, hands it over, remembers it. */
static int take(struct walk *w, const struct github_commit *c, const char *etag, struct state_item *item, struct err *e)
{
	struct publication p = publication_of(w, c->sha, c->committed_at);
	struct fetch_reply reply;
	const char *url = github_raw_url(&w->arena, w->in->sources, c->sha, w->channel->commits);
	int rc = fetch_get(w->in->fetch, url, etag, w->in->sources->limits.fileBytes, &reply, e);
	if (rc == 0 && reply.not_modified) {
		w->in->unchanged++;
	} else if (rc == 0 && (rc = ingest_fetched(w->in, &reply, url, &p, item && !item->absent ? &item->sha256 : NULL, e)) == 0) {
		if (!item)
			item = state_add(w->state, c->sha);
		if (digest_cmp(&item->sha256, &p.sha256) != 0)
			w->state->dirty = true;
		item->sha256 = p.sha256;
		item->absent = false;
		state_set(w->state, &item->committed_at, c->committed_at);
		state_set(w->state, &item->etag, reply.etag);
	}
	fetch_reply_fini(&reply);
	return rc;
}

/* A commit of the list: known ones cost nothing. */
static int visit(struct walk *w, const struct github_commit *c, struct err *e)
{
	struct state_item *item = state_find(w->state, c->sha);
	bool lost = false;
	if (!item)
		return take(w, c, NULL, NULL, e);
	if (item->absent && !w->in->recheck)
		return 0;
	if (w->in->recheck)
		return take(w, c, item->etag, item, e);
	struct publication p = publication_of(w, item->id, item->committed_at);
	p.sha256 = item->sha256;
	if (ingest_held(w->in, &p, &lost, e))
		return -1;
	return lost ? take(w, c, NULL, item, e) : 0;
}

/* Asks for the newest commit that touched the file: one request, and no more when it is known. */
static int visit_newest(struct walk *w, struct err *e)
{
	struct github_commit *commits, known = {.sha = w->state->newest};
	struct fetch_reply reply;
	size_t count = 0;
	const char *url = github_commits_url(&w->arena, w->in->sources, w->channel->commits, 1, 1);
	int rc = fetch_get(w->in->fetch, url, w->state->newest ? w->state->etag : NULL, w->in->sources->limits.listBytes, &reply, e);
	if (rc == 0 && reply.not_modified) {
		rc = visit(w, &known, e);
	} else if (rc == 0 && (rc = github_read_commits(&w->arena, (struct slice){reply.body.data, reply.body.len}, url, &commits,
							&count, e)) == 0) {
		if (count == 0)
			rc = err_at(e, ERR_DATA, url, 0, 0, "no commit touched %s", w->channel->commits);
		else
			rc = visit(w, &commits[0], e);
		if (rc == 0) {
			state_set(w->state, &w->state->newest, commits[0].sha);
			state_set(w->state, &w->state->etag, reply.etag);
		}
	}
	fetch_reply_fini(&reply);
	return rc;
}

/* The commits that touched the file, newest first, from all pages. */
static int list_all(struct walk *w, struct github_commit **all, size_t *count, struct err *e)
{
	const struct sources *s = w->in->sources;
	struct buf list = {0};
	size_t got = (size_t)s->polite.pageSize;
	int rc = 0;
	for (long page = 1; rc == 0 && got == (size_t)s->polite.pageSize && page <= PAGES_MAX; page++) {
		const char *url = github_commits_url(&w->arena, s, w->channel->commits, s->polite.pageSize, page);
		struct github_commit *commits;
		struct fetch_reply reply;
		if (page > 1)
			fetch_pause(w->in->fetch);
		rc = fetch_get(w->in->fetch, url, NULL, s->limits.listBytes, &reply, e);
		if (rc == 0)
			rc = github_read_commits(&w->arena, (struct slice){reply.body.data, reply.body.len}, url, &commits, &got, e);
		if (rc == 0)
			buf_add(&list, commits, got * sizeof *commits);
		fetch_reply_fini(&reply);
	}
	*count = list.len / sizeof **all;
	*all = arena_alloc(&w->arena, list.len + 1);
	if (list.len)
		memcpy(*all, list.data, list.len);
	buf_fini(&list);
	return rc;
}

/* Every commit that touched the file, oldest first. Saved after each, so that the next run goes on where this one ended. */
static int visit_history(struct walk *w, struct err *e)
{
	struct github_commit *all;
	size_t count;
	if (list_all(w, &all, &count, e))
		return -1;
	for (size_t i = count; i-- > 0;) {
		struct err why = {0};
		unsigned before = fetch_requests(w->in->fetch);
		if (visit(w, &all[i], &why)) {
			if (why.code != ERR_NOTFOUND)
				return err_at(e, why.code, why.file, 0, 0, "%s", why.text);
			log_info("%s %s: upstream has no file at that commit", w->channel->name, all[i].sha);
			if (!state_find(w->state, all[i].sha))
				state_add(w->state, all[i].sha)->absent = true;
			w->in->missing++;
		}
		if (save(w, e))
			return -1;
		if (i > 0 && fetch_requests(w->in->fetch) > before)
			fetch_pause(w->in->fetch);
	}
	return 0;
}

int committed_run(struct ingest *in, const struct source_channel *channel, struct err *e)
{
	struct walk w = {.in = in, .channel = channel, .state = state_load(in->snapshots, channel->name)};
	int rc = in->backfill ? visit_history(&w, e) : visit_newest(&w, e);
	if (rc == 0)
		rc = save(&w, e);
	else
		save(&w, e); /* what was kept before the error is remembered; the error itself stands */
	state_free(w.state);
	arena_fini(&w.arena);
	return rc;
}
