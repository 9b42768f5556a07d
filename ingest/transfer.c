#include "ingest/transfer.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/home.h"
#include "ingest/address.h"
#include "ingest/header.h"

struct transfer {
	CURL *curl;
	char why[CURL_ERROR_SIZE];
	/* of the request under way */
	const struct transfer_order *order;
	struct buf *body;
	bool too_large, refused;
	char refused_address[INET6_ADDRSTRLEN];
};

/* The address that a mapped host stands for is allowed to that host alone. */
static bool is_mapped(const struct source_host *host, const char *address, unsigned port)
{
	return host->mapped_address && strcmp(host->mapped_address, address) == 0 && host->mapped_port == port;
}

static bool allowed(struct transfer *t, const char *address, unsigned port)
{
	const struct source_host *host = t->order->url->host;
	if (host->mapped_address ? is_mapped(host, address, port) : address_text_is_public(address) && port == 443)
		return true;
	t->refused = true;
	snprintf(t->refused_address, sizeof t->refused_address, "%s", address);
	return false;
}

static unsigned numeric(const struct sockaddr *address, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	text[0] = '\0';
	if (address->sa_family == AF_INET) {
		memcpy(&v4, address, sizeof v4);
		inet_ntop(AF_INET, &v4.sin_addr, text, INET6_ADDRSTRLEN);
		return ntohs(v4.sin_port);
	}
	if (address->sa_family == AF_INET6) {
		memcpy(&v6, address, sizeof v6);
		inet_ntop(AF_INET6, &v6.sin6_addr, text, INET6_ADDRSTRLEN);
		return ntohs(v6.sin6_port);
	}
	return 0;
}

/* Before a connection is made: the address as it will be used. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *t = context;
	char text[INET6_ADDRSTRLEN];
	unsigned port = numeric(&address->addr, text);
	if (purpose != CURLSOCKTYPE_IPCXN || !allowed(t, text, port))
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Before a request is sent, on new and on used connections. */
static int before_request(void *context, char *remote, char *local, int remote_port, int local_port)
{
	(void)local;
	(void)local_port;
	return allowed(context, remote, (unsigned)remote_port) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	size_t len = size * count, room = (size_t)t->order->max_bytes - t->body->len;
	if (len > room) {
		t->too_large = true;
		return 0;
	}
	buf_add(t->body, data, len);
	return len;
}

struct transfer *transfer_new(struct err *e)
{
	struct transfer *t = xcalloc(1, sizeof *t);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		t->curl = curl_easy_init();
	if (t->curl)
		return t;
	transfer_free(t);
	err_set(e, ERR_BUG, "libcurl cannot start");
	return NULL;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	curl_easy_cleanup(t->curl);
	curl_global_cleanup();
	free(t);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
	struct buf line = {0};
	buf_printf(&line, "%s: %s", name, value);
	struct curl_slist *longer = curl_slist_append(list, line.data);
	if (longer)
		list = longer;
	buf_fini(&line);
	return list;
}

/* Bodies are asked for uncompressed: whether a compressed one is whole cannot be told through libcurl. */
static struct curl_slist *headers_of(const struct transfer_order *o)
{
	struct curl_slist *list = add_header(NULL, "Accept-Encoding", "identity");
	list = add_header(list, "Accept", o->url->host->accept ? o->url->host->accept : "*/*");
	if (o->etag)
		list = add_header(list, "If-None-Match", o->etag);
	if (o->token) {
		struct buf value = {0};
		buf_printf(&value, "Bearer %s", o->token);
		list = add_header(list, "Authorization", value.data);
		buf_fini(&value);
	}
	return list;
}

static struct curl_slist *map_of(const struct source_host *host)
{
	struct buf line = {0};
	if (!host->mapped_address)
		return NULL;
	bool v6 = strchr(host->mapped_address, ':') != NULL;
	buf_printf(&line, "%s:443:%s%s%s:%u", host->name, v6 ? "[" : "", host->mapped_address, v6 ? "]" : "", host->mapped_port);
	struct curl_slist *list = curl_slist_append(NULL, line.data);
	buf_fini(&line);
	return list;
}

/* Nothing comes from the environment, from files of the user, or from the reply. */
static void set_policy(CURL *c)
{
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "kernelindex/" KI_VERSION);
	curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "gzip"); /* decode and count it, should it come all the same */
}

static void set_limits(CURL *c, const struct transfer_order *o)
{
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, o->timeout_ms);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, o->limits->connectSeconds);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, o->limits->lowSpeedBytesPerSecond);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, o->limits->lowSpeedSeconds);
	curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)o->max_bytes);
}

static void set_callbacks(struct transfer *t)
{
	curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, t->why);
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(t->curl, CURLOPT_PREREQDATA, t);
}

/* A header of the last reply, or NULL. Valid until the next transfer. */
static const char *header(struct transfer *t, const char *name)
{
	struct curl_header *h;
	return curl_easy_header(t->curl, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value : NULL;
}

static void take_headers(struct transfer *t, struct transfer_reply *out)
{
	char *redirect = NULL;
	curl_off_t wait = 0;
	curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &redirect);
	curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &wait); /* seconds, or a date made into seconds */
	out->redirect = redirect ? xstrdup(redirect) : NULL;
	out->retry_after_s = header(t, "Retry-After") ? (int64_t)wait : -1;
	out->etag = header_text(header(t, "ETag"));
	out->last_modified = header_text(header(t, "Last-Modified"));
	out->media_type = header_text(header(t, "Content-Type"));
	out->quota_left = header_number(header(t, "X-RateLimit-Remaining"));
	out->quota_reset_s = header_number(header(t, "X-RateLimit-Reset"));
}

/* A body counts only when its end was announced; a cut would look the same otherwise. */
static int check_whole(struct transfer *t, const struct transfer_reply *r, struct err *e)
{
	const char *url = t->order->url->text, *coding = header(t, "Content-Encoding");
	if (r->status != 200)
		return 0;
	if (!header(t, "Content-Length") && !header(t, "Transfer-Encoding"))
		return err_at(e, ERR_TEMP, url, 0, 0, "the reply does not say where its body ends");
	if (coding && strcasecmp(coding, "identity") != 0)
		return err_at(e, ERR_DATA, url, 0, 0, "the body came compressed, though that was not asked for");
	return 0;
}

struct failure {
	CURLcode result;
	enum err_code code;
	bool again;
};
static const struct failure failures[] = {
	{CURLE_COULDNT_RESOLVE_HOST, ERR_TEMP, true},
	{CURLE_COULDNT_CONNECT, ERR_TEMP, true},
	{CURLE_SSL_CONNECT_ERROR, ERR_TEMP, true},
	{CURLE_GOT_NOTHING, ERR_TEMP, true},
	{CURLE_SEND_ERROR, ERR_TEMP, true},
	{CURLE_PEER_FAILED_VERIFICATION, ERR_NOPERM, false},
	{CURLE_SSL_CACERT_BADFILE, ERR_CONFIG, false},
	{CURLE_UNSUPPORTED_PROTOCOL, ERR_NOPERM, false},
	{CURLE_BAD_CONTENT_ENCODING, ERR_DATA, false},
	{CURLE_WEIRD_SERVER_REPLY, ERR_DATA, false},
	{CURLE_OUT_OF_MEMORY, ERR_BUG, false},
};

static int fail(struct transfer *t, CURLcode result, bool *again, struct err *e)
{
	const char *url = t->order->url->text;
	if (t->refused)
		return err_at(e, ERR_NOPERM, url, 0, 0, "not fetched: the host's address %s is not public", t->refused_address);
	if (t->too_large || result == CURLE_FILESIZE_EXCEEDED)
		return err_at(e, ERR_DATA, url, 0, 0, "larger than the limit of %ld bytes", t->order->max_bytes);
	enum err_code code = ERR_TEMP;
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
		if (failures[i].result == result) {
			code = failures[i].code;
			*again = failures[i].again;
			break;
		}
	return err_at(e, code, url, 0, 0, "%s", t->why[0] ? t->why : curl_easy_strerror(result));
}

int transfer_run(struct transfer *t, const struct transfer_order *order, struct transfer_reply *out, bool *again, struct err *e)
{
	struct curl_slist *headers = headers_of(order), *map = map_of(order->url->host);
	*again = t->refused = t->too_large = false;
	t->why[0] = '\0';
	t->order = order;
	t->body = &out->body;
	curl_easy_reset(t->curl);
	set_policy(t->curl);
	set_limits(t->curl, order);
	set_callbacks(t);
	curl_easy_setopt(t->curl, CURLOPT_URL, order->url->text);
	curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(t->curl, CURLOPT_CONNECT_TO, map);
	if (map && order->ca_file)
		curl_easy_setopt(t->curl, CURLOPT_CAINFO, order->ca_file);
	CURLcode result = curl_easy_perform(t->curl);
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &out->status);
	int rc = 0;
	if (result != CURLE_OK) {
		rc = fail(t, result, again, e);
	} else {
		take_headers(t, out);
		rc = check_whole(t, out, e);
	}
	curl_slist_free_all(headers);
	curl_slist_free_all(map);
	return rc;
}

void transfer_reply_fini(struct transfer_reply *r)
{
	buf_fini(&r->body);
	free(r->redirect);
	free(r->etag);
	free(r->last_modified);
	free(r->media_type);
	*r = (struct transfer_reply){0};
}
