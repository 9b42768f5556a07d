#include "ingest/url.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

static int refuse(const char *text, const char *why, struct err *e)
{
	return err_at(e, ERR_NOPERM, text, 0, 0, "not fetched: %s", why);
}

/* A part of the URL, or NULL. Freed with curl_free(). */
static char *part(CURLU *u, CURLUPart which)
{
	char *text = NULL;
	return curl_url_get(u, which, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool has(CURLU *u, CURLUPart which)
{
	char *text = part(u, which);
	curl_free(text);
	return text != NULL;
}

static bool port_is_standard(CURLU *u)
{
	char *port = part(u, CURLUPART_PORT);
	bool standard = !port || strcmp(port, "443") == 0;
	curl_free(port);
	return standard;
}

static void build(CURLU *u, struct url *out)
{
	struct buf text = {0};
	char *path = part(u, CURLUPART_PATH), *query = part(u, CURLUPART_QUERY);
	buf_printf(&text, "https://%s%s%s%s", out->host->name, path ? path : "/", query ? "?" : "", query ? query : "");
	out->text = text.data;
	curl_free(path);
	curl_free(query);
}

static int check_parts(const struct sources *sources, CURLU *u, const char *text, struct url *out, struct err *e)
{
	char *scheme = part(u, CURLUPART_SCHEME), *host = part(u, CURLUPART_HOST);
	int rc = 0;
	if (!scheme || strcmp(scheme, "https") != 0)
		rc = refuse(text, "only https is", e);
	else if (has(u, CURLUPART_USER) || has(u, CURLUPART_PASSWORD) || has(u, CURLUPART_OPTIONS))
		rc = refuse(text, "it carries user information", e);
	else if (!host || !(out->host = sources_host(sources, host)))
		rc = refuse(text, "its host is not one of config/sources.json", e);
	else if (!port_is_standard(u))
		rc = refuse(text, "it names a port", e);
	curl_free(scheme);
	curl_free(host);
	return rc;
}

int url_check(const struct sources *sources, const char *text, struct url *out, struct err *e)
{
	*out = (struct url){0};
	CURLU *u = curl_url();
	if (!u)
		return err_set(e, ERR_BUG, "no memory for a URL");
	int rc;
	if (curl_url_set(u, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
		rc = refuse(text, "it is no URL", e);
	else
		rc = check_parts(sources, u, text, out, e);
	if (rc == 0)
		build(u, out);
	curl_url_cleanup(u);
	return rc;
}

void url_fini(struct url *u)
{
	free(u->text);
	*u = (struct url){0};
}
