/* config/sources.json: which hosts may be spoken to, which channels exist, and the limits of a fetch.
 *
 * Checked whole on loading: unknown, missing or ill-typed fields, a host that is no DNS name (an IP literal, say), a path that
 * could leave its place, and limits out of range are ERR_CONFIG with line and column. Read-only afterwards; everything lives in
 * the struct's arena until sources_free. Channels: manifests.md section 7. */
#ifndef KI_INGEST_SOURCES_H
#define KI_INGEST_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct source_host {
	const char *name;           /* lowercase DNS name */
	const char *accept;         /* Accept header, or NULL */
	const char *mapped_address; /* tests only: loopback address that stands in for the host, or NULL */
	unsigned mapped_port;
};

/* A channel either follows one file through its commits (`commits` set) or a list of drops (`branch`, `index`, `folder`, `file`
 * set: `<folder>/<entry>/<file>` for each entry of `index`). */
struct source_channel {
	const char *name;
	const char *commits;
	const char *branch, *index, *folder, *file;
};

struct source_limits {
	long redirects;
	long connectSeconds, totalSeconds; /* of one fetch with its redirects, waits apart */
	long lowSpeedBytesPerSecond, lowSpeedSeconds;
	long fileBytes, listBytes; /* of a body, after decoding: a table; a list from the API */
};

struct source_retry {
	long attempts;       /* requests for one thing, the first included */
	long backoffSeconds; /* doubled for each further attempt */
	long waitMaxSeconds; /* a wait asked for that is longer ends the run instead */
};

struct source_polite {
	long pageSize;          /* commits a page, when history is walked */
	long delayMilliseconds; /* between requests, when history is walked */
};

struct sources {
	const char *repository; /* owner/name */
	const char *api, *raw;  /* `https://host`, both hosts in the list */
	const char *token_host; /* the only host that is ever sent the token */
	const char *token_file; /* path, or NULL */
	const char *ca_file;    /* tests only: trusted for mapped hosts, or NULL */
	struct source_host *hosts;
	size_t host_count;
	struct source_channel *channels;
	size_t channel_count;
	struct source_limits limits;
	struct source_retry retry;
	struct source_polite polite;
};

/* Loads `<directory>/sources.json`. A `testing` section is accepted only when `testing_allowed`: it maps hosts to loopback
 * addresses and names a CA file, and is for a config directory that was named on the command line. */
struct sources *sources_load(const char *directory, bool testing_allowed, struct err *e);
void sources_free(struct sources *s);

/* NULL when there is none of that name. Host names compare without case. */
const struct source_host *sources_host(const struct sources *s, const char *name);
const struct source_channel *sources_channel(const struct sources *s, const char *name);

/* Names that may stand in paths and file names: letters, digits, `.`, `_`, `-`; not starting with `.` or `-`; 1 to 100 bytes. */
bool source_name_valid(const char *text);
/* Exactly 40 lowercase hex digits. */
bool source_commit_valid(const char *text);
/* 12 to 40 lowercase hex digits, as replayed files carry. */
bool source_commit_prefix_valid(const char *text);
/* A gh-pages entry: 7 to 40 lowercase hex digits, then perhaps `-<tag>`, a name as above. */
bool source_entry_valid(const char *text);

#endif
