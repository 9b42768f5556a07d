/* Which URLs may be fetched: https, a host of config/sources.json, no user information, no port but 443. What is checked is what
 * is fetched: the text is put together again from the checked parts. */
#ifndef KI_INGEST_URL_H
#define KI_INGEST_URL_H

#include "core/err.h"
#include "ingest/sources.h"

struct url {
	const struct source_host *host;
	char *text; /* owned */
};

/* ERR_NOPERM, with the URL, when policy forbids it. */
int url_check(const struct sources *sources, const char *text, struct url *out, struct err *e);
void url_fini(struct url *u);

#endif
