/* One request and its reply over libcurl: the part of the fetch policy that holds at connect time. Follows nothing, retries
 * nothing, waits for nothing; fetch.c does. */
#ifndef KI_INGEST_TRANSFER_H
#define KI_INGEST_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "ingest/sources.h"
#include "ingest/url.h"

struct transfer; /* a libcurl handle; connections are used again within it */

struct transfer_order {
	const struct url *url; /* checked */
	const char *etag;      /* sent as If-None-Match, or NULL */
	const char *token;     /* sent as a bearer token, or NULL */
	const char *ca_file;   /* trusted instead of the system's, for mapped hosts; or NULL */
	long max_bytes;        /* of the body, after decoding */
	long timeout_ms;
	const struct source_limits *limits;
};

struct transfer_reply {
	long status;
	struct buf body;
	char *redirect; /* absolute URL, for a status that redirects */
	char *etag, *last_modified, *media_type;
	int64_t retry_after_s; /* seconds; -1 when not given */
	int64_t quota_left;    /* requests; -1 when not given */
	int64_t quota_reset_s; /* seconds since 1970; -1 when not given */
};

struct transfer *transfer_new(struct err *e);
void transfer_free(struct transfer *t); /* NULL is fine */

/* `out` starts zeroed; free it with transfer_reply_fini also after an error. `*again` tells that no reply began and that a second
 * attempt makes sense. Errors as in fetch.h. */
int transfer_run(struct transfer *t, const struct transfer_order *order, struct transfer_reply *out, bool *again, struct err *e);
void transfer_reply_fini(struct transfer_reply *r);

#endif
