#include "ingest/github.h"

#include <string.h>

#include "core/json.h"
#include "core/when.h"

const char *github_commits_url(struct arena *a, const struct sources *s, const char *path, long per_page, long page)
{
	const char *first = arena_printf(a, "%s/repos/%s/commits?path=%s&per_page=%ld", s->api, s->repository, path, per_page);
	return page == 1 ? first : arena_printf(a, "%s&page=%ld", first, page);
}

const char *github_commit_url(struct arena *a, const struct sources *s, const char *reference)
{
	return arena_printf(a, "%s/repos/%s/commits/%s", s->api, s->repository, reference);
}

const char *github_raw_url(struct arena *a, const struct sources *s, const char *reference, const char *path)
{
	return arena_printf(a, "%s/%s/%s/%s", s->raw, s->repository, reference, path);
}

static int read_commit(struct arena *a, const json_t *value, const char *url, struct github_commit *out, struct err *e)
{
	const char *sha = json_string_value(json_object_get(value, "sha"));
	const json_t *committer = json_object_get(json_object_get(value, "commit"), "committer");
	const char *date = json_string_value(json_object_get(committer, "date"));
	int64_t ignored;
	if (!sha || !source_commit_valid(sha))
		return err_at(e, ERR_DATA, url, 0, 0, "the API's reply has no commit of 40 hex digits where one belongs");
	out->sha = arena_strdup(a, sha);
	out->committed_at = date && when_parse(date, strlen(date), &ignored) ? arena_strdup(a, date) : NULL;
	return 0;
}

int github_read_commits(struct arena *a, struct slice body, const char *url, struct github_commit **out, size_t *count, struct err *e)
{
	json_t *root = json_load_text(body.data ? body.data : "", body.len, url, e);
	int rc = root ? 0 : -1;
	*count = 0;
	if (root && !json_is_array(root))
		rc = err_at(e, ERR_DATA, url, 0, 0, "the API's reply is not a list of commits");
	size_t size = rc == 0 ? json_array_size(root) : 0;
	*out = arena_alloc(a, (size + 1) * sizeof **out);
	for (; rc == 0 && *count < size; ++*count)
		rc = read_commit(a, json_array_get(root, *count), url, &(*out)[*count], e);
	json_decref(root);
	return rc;
}

int github_read_commit(struct arena *a, struct slice body, const char *url, const char *prefix, struct github_commit *out,
		       struct err *e)
{
	json_t *root = json_load_text(body.data ? body.data : "", body.len, url, e);
	int rc = root ? read_commit(a, root, url, out, e) : -1;
	if (rc == 0 && strncmp(out->sha, prefix, strlen(prefix)) != 0)
		rc = err_at(e, ERR_DATA, url, 0, 0, "the API's reply is about another commit, %s", out->sha);
	json_decref(root);
	return rc;
}
