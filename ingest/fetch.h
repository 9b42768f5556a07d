/* One URL to its bytes, within the fetch policy.
 *
 * Only https, only hosts of config/sources.json, never an IP literal, user information or a port of the URL's own; only public
 * addresses, checked when the socket is made and again before the request is sent; at most the configured redirects, followed
 * here, each checked like the first; no proxy, netrc, curlrc or environment; limits on bytes (counted after decoding), time and
 * low speed. The token goes to its one host, and only when the first URL was that host's. A body whose end cannot be told from a
 * cut is refused. Waits that upstream asks for (Retry-After, X-RateLimit-*) are honoured when short and end the run when long.
 *
 * Errors: ERR_NOPERM policy, 401, 403 and TLS trouble; ERR_TEMP upstream down, slow, cut off, over quota; ERR_NOTFOUND 404, 410
 * and 422; ERR_DATA too large or not what was asked for; ERR_CONFIG token or CA file.
 * Sources: RFC 9110 (conditional requests, redirects, Retry-After), GitHub REST API rate limits. */
#ifndef KI_INGEST_FETCH_H
#define KI_INGEST_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"
#include "ingest/sources.h"

struct fetch;

/* The body is `body.data`, NULL when empty. Texts are NULL when upstream did not say. Starts zeroed. */
struct fetch_reply {
	bool not_modified; /* 304: no body */
	struct buf body;
	char *final_url, *etag, *last_modified, *media_type;
};
void fetch_reply_fini(struct fetch_reply *r);

/* `sources` must outlive the result. Reads the token from KI_GITHUB_TOKEN or the configured file. */
struct fetch *fetch_new(const struct sources *sources, struct err *e);
void fetch_free(struct fetch *f); /* NULL is fine */

/* Gets `url`, at most `max_bytes` long; `etag` (NULL: none) is sent back as it came. */
int fetch_get(struct fetch *f, const char *url, const char *etag, long max_bytes, struct fetch_reply *out, struct err *e);
/* Requests sent so far, redirects and retries included. */
unsigned fetch_requests(const struct fetch *f);
/* Sleeps for the configured delay between requests of a long walk. */
void fetch_pause(const struct fetch *f);

#endif
