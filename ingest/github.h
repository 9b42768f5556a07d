/* What is asked of GitHub: URLs of its REST API and of its raw host, and the few fields taken from the API's replies. Everything
 * in a reply is checked before it is used: a commit is 40 lowercase hex digits or the reply is refused, so that nothing else
 * ever stands in a path. Source: GitHub REST API, "List commits" and "Get a commit". */
#ifndef KI_INGEST_GITHUB_H
#define KI_INGEST_GITHUB_H

#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"
#include "ingest/sources.h"

struct github_commit {
	const char *sha;          /* 40 digits */
	const char *committed_at; /* as in 2025-05-14T23:53:13Z, or NULL */
};

/* URLs, in the arena: a page (from 1) of the commits that touched `path`, newest first; one commit; a file at a commit or branch. */
const char *github_commits_url(struct arena *a, const struct sources *s, const char *path, long per_page, long page);
const char *github_commit_url(struct arena *a, const struct sources *s, const char *reference);
const char *github_raw_url(struct arena *a, const struct sources *s, const char *reference, const char *path);

/* Reads a page of commits into the arena; an empty page gives none. ERR_DATA, naming `url`, when it is anything else. */
int github_read_commits(struct arena *a, struct slice body, const char *url, struct github_commit **out, size_t *count, struct err *e);
/* Reads one commit, whose sha must start with `prefix`. */
int github_read_commit(struct arena *a, struct slice body, const char *url, const char *prefix, struct github_commit *out,
		       struct err *e);

#endif
