#include "ingest/fetch.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "core/file.h"
#include "core/log.h"
#include "core/when.h"
#include "ingest/transfer.h"
#include "ingest/url.h"

enum { TOKEN_MAX = 512 };

struct fetch {
	const struct sources *sources;
	struct transfer *transfer;
	char *token;          /* NULL: none */
	int64_t *open_at_s;   /* of each host: its quota is used up until then, in seconds since 1970 */
	unsigned requests;
};

struct want {
	const char *url;
	const char *etag;
	long max_bytes;
};

static int check_token(const char *token, const char *origin, struct err *e)
{
	size_t len = strlen(token);
	if (len == 0 || len > TOKEN_MAX)
		return err_at(e, ERR_CONFIG, origin, 0, 0, "the token is empty or longer than %d bytes", TOKEN_MAX);
	for (size_t i = 0; i < len; i++)
		if (token[i] <= ' ' || token[i] > '~')
			return err_at(e, ERR_CONFIG, origin, 0, 0, "the token holds something else than printable characters");
	return 0;
}

static int read_token_file(struct fetch *f, const char *path, struct err *e)
{
	struct stat st;
	struct buf text = {0};
	struct err why = {0};
	if (stat(path, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)))
		return err_at(e, ERR_CONFIG, path, 0, 0, "others than its owner may read the token");
	if (file_read(path, TOKEN_MAX + 2, &text, &why)) {
		buf_fini(&text);
		return err_at(e, ERR_CONFIG, path, 0, 0, "%s", why.text);
	}
	text.data[strcspn(text.data, "\r\n")] = '\0';
	f->token = text.data;
	return check_token(f->token, path, e);
}

static int read_token(struct fetch *f, struct err *e)
{
	const char *given = getenv("KI_GITHUB_TOKEN");
	if (given && *given) {
		f->token = xstrdup(given);
		return check_token(given, "KI_GITHUB_TOKEN", e);
	}
	return f->sources->token_file ? read_token_file(f, f->sources->token_file, e) : 0;
}

struct fetch *fetch_new(const struct sources *sources, struct err *e)
{
	struct fetch *f = xcalloc(1, sizeof *f);
	f->sources = sources;
	f->open_at_s = xcalloc(sources->host_count, sizeof *f->open_at_s);
	f->transfer = transfer_new(e);
	if (f->transfer && read_token(f, e) == 0)
		return f;
	fetch_free(f);
	return NULL;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	transfer_free(f->transfer);
	free(f->open_at_s);
	free(f->token);
	free(f);
}

void fetch_reply_fini(struct fetch_reply *r)
{
	buf_fini(&r->body);
	free(r->final_url);
	free(r->etag);
	free(r->last_modified);
	free(r->media_type);
	*r = (struct fetch_reply){0};
}

unsigned fetch_requests(const struct fetch *f)
{
	return f->requests;
}

static void sleep_ms(int64_t ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&left, &left) != 0)
		;
}

void fetch_pause(const struct fetch *f)
{
	sleep_ms(f->sources->polite.delayMilliseconds);
}

static int64_t now_s(void)
{
	return when_now_ms() / 1000;
}

/* Waits as upstream asks, or gives up when that is too long. */
static int wait_s(struct fetch *f, const char *url, int64_t seconds, const char *why, struct err *e)
{
	char until[WHEN_TEXT + 1];
	if (seconds <= 0)
		return 0;
	if (seconds > f->sources->retry.waitMaxSeconds) {
		int64_t end = seconds < INT64_C(200000000000) ? now_s() + seconds : INT64_C(253402300799);
		when_text((end < INT64_C(253402300799) ? end : INT64_C(253402300799)) * 1000, until);
		return err_at(e, ERR_TEMP, url, 0, 0, "%s; upstream asks to come back after %.19sZ", why, until);
	}
	log_info("%s: %s; waiting %lld s", url, why, (long long)seconds);
	sleep_ms(seconds * 1000);
	return 0;
}

static bool redirects(long status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static size_t host_index(const struct fetch *f, const struct source_host *host)
{
	return (size_t)(host - f->sources->hosts);
}

/* Sends one request; `first` is the host that the caller asked for. */
static int request(struct fetch *f, const struct want *w, const struct url *u, const struct source_host *first, int64_t end_ns,
		   struct transfer_reply *reply, bool *again, struct err *e)
{
	const struct sources *s = f->sources;
	bool home = u->host == first;
	long left_ms = (long)((end_ns - when_monotonic_ns()) / 1000000);
	struct transfer_order order = {
		.url = u,
		.etag = home ? w->etag : NULL,
		.token = home && s->token_host && strcasecmp(s->token_host, first->name) == 0 ? f->token : NULL,
		.ca_file = s->ca_file,
		.max_bytes = w->max_bytes,
		.timeout_ms = left_ms,
		.limits = &s->limits,
	};
	if (left_ms <= 0)
		return err_at(e, ERR_TEMP, u->text, 0, 0, "the time limit of %ld s is used up", s->limits.totalSeconds);
	f->requests++;
	int rc = transfer_run(f->transfer, &order, reply, again, e);
	if (rc == 0 && reply->quota_left == 0 && reply->quota_reset_s > 0)
		f->open_at_s[host_index(f, u->host)] = reply->quota_reset_s;
	return rc;
}

/* Sends the request and follows redirects; `*reply` is the last reply, `*u` where it came from. */
static int follow(struct fetch *f, const struct want *w, struct url *u, struct transfer_reply *reply, bool *again, struct err *e)
{
	int64_t end_ns = when_monotonic_ns() + f->sources->limits.totalSeconds * INT64_C(1000000000);
	*again = false;
	if (url_check(f->sources, w->url, u, e))
		return -1;
	const struct source_host *first = u->host;
	for (long hops = 0;; hops++) {
		if (request(f, w, u, first, end_ns, reply, again, e))
			return -1;
		if (!redirects(reply->status))
			return 0;
		if (hops == f->sources->limits.redirects)
			return err_at(e, ERR_NOPERM, w->url, 0, 0, "more than %ld redirects", f->sources->limits.redirects);
		if (!reply->redirect)
			return err_at(e, ERR_DATA, u->text, 0, 0, "redirected to nowhere (HTTP %ld)", reply->status);
		struct url next;
		int rc = url_check(f->sources, reply->redirect, &next, e);
		transfer_reply_fini(reply);
		url_fini(u);
		*u = next;
		if (rc)
			return -1;
	}
}

static bool over_quota(const struct transfer_reply *r)
{
	return r->status == 429 || (r->status == 403 && (r->retry_after_s >= 0 || r->quota_left == 0));
}

static bool is_down(const struct transfer_reply *r)
{
	return r->status == 408 || (r->status >= 500 && r->status <= 504 && r->status != 501);
}

/* Seconds to wait before the next attempt (counted from 0). */
static int64_t wait_for(const struct fetch *f, const struct transfer_reply *r, long attempt)
{
	if (r->retry_after_s >= 0)
		return r->retry_after_s;
	if (r->quota_left == 0 && r->quota_reset_s > 0)
		return r->quota_reset_s - now_s();
	return f->sources->retry.backoffSeconds << attempt;
}

static int refuse_status(const char *url, long status, struct err *e)
{
	static const struct {
		long status;
		enum err_code code;
	} codes[] = {{401, ERR_NOPERM}, {403, ERR_NOPERM}, {404, ERR_NOTFOUND}, {410, ERR_NOTFOUND}, {422, ERR_NOTFOUND}};
	enum err_code code = status >= 500 ? ERR_TEMP : ERR_DATA;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].status == status)
			code = codes[i].code;
	return err_at(e, code, url, 0, 0, "HTTP %ld", status);
}

/* Hands the reply's parts over to the caller. */
static int deliver(const struct want *w, struct url *u, struct transfer_reply *reply, struct fetch_reply *out, struct err *e)
{
	if (reply->status != 200 && !(reply->status == 304 && w->etag))
		return refuse_status(u->text, reply->status, e);
	out->not_modified = reply->status == 304;
	out->body = reply->body;
	out->final_url = u->text;
	out->etag = reply->etag;
	out->last_modified = reply->last_modified;
	out->media_type = reply->media_type;
	reply->body = (struct buf){0};
	u->text = reply->etag = reply->last_modified = reply->media_type = NULL;
	return 0;
}

/* One attempt. Returns 1 when another one makes sense after waiting; `e` then says why. */
static int attempt(struct fetch *f, const struct want *w, long number, struct fetch_reply *out, struct err *e)
{
	struct transfer_reply reply = {0};
	struct url u = {0};
	struct err why = {0};
	bool again, last = number + 1 == f->sources->retry.attempts;
	int rc = follow(f, w, &u, &reply, &again, &why);
	int64_t seconds = f->sources->retry.backoffSeconds << number;
	if (rc == 0 && (over_quota(&reply) || is_down(&reply))) {
		err_at(&why, ERR_TEMP, u.text, 0, 0, "%s (HTTP %ld)", over_quota(&reply) ? "over quota" : "upstream is down",
		       reply.status);
		seconds = wait_for(f, &reply, number);
		again = true;
		rc = -1;
	} else if (rc == 0) {
		rc = deliver(w, &u, &reply, out, &why);
		again = false;
	}
	transfer_reply_fini(&reply);
	url_fini(&u);
	if (rc == 0)
		return 0;
	if (again && !last)
		return wait_s(f, w->url, seconds, why.text, e) ? -1 : 1;
	return err_at(e, why.code, why.file, 0, 0, "%s", why.text);
}

/* Keeps to a quota that an earlier reply said is used up. */
static int respect_quota(struct fetch *f, const char *url, struct err *e)
{
	struct url u;
	if (url_check(f->sources, url, &u, e))
		return -1;
	int64_t seconds = f->open_at_s[host_index(f, u.host)] - now_s();
	url_fini(&u);
	return wait_s(f, url, seconds, "the quota is used up", e);
}

int fetch_get(struct fetch *f, const char *url, const char *etag, long max_bytes, struct fetch_reply *out, struct err *e)
{
	struct want w = {url, etag, max_bytes};
	*out = (struct fetch_reply){0};
	if (respect_quota(f, url, e))
		return -1;
	for (long number = 0;; number++) {
		int rc = attempt(f, &w, number, out, e);
		if (rc <= 0)
			return rc;
	}
}
