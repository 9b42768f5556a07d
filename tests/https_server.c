/* A small HTTPS server for tests, on loopback: serves stored HTTP/1.1 replies or files, one request a connection.
 *
 * usage: https_server [--port N] [--tls CERT KEY] [--log FILE] [--endless] [--drip MS] FILE...
 *        https_server [--port N] [--tls CERT KEY] [--log FILE] --routes FILE
 *
 * With FILEs, each connection gets the next stored reply, the last one again and again; --endless goes on with chunks of zero bytes
 * after it, --drip sends one byte every MS milliseconds. With --routes, a text file is read anew for each request; its lines are
 * `HOST TARGET ACTION ARG...`, the first that fits answers, `*` fits any host and, at the end of a target, any rest:
 *
 *   file PATH           200 with the file's bytes, a strong ETag and Last-Modified; 304 when If-None-Match has that ETag
 *   weak PATH           the same with a weak ETag
 *   replay PATH...      stored replies in turn, the last one again and again
 *   endless PATH        a stored reply, then chunks without end
 *   drip MS PATH        a stored reply, a byte every MS milliseconds
 *   status CODE         an empty reply
 *
 * No route is 404. Without --tls it speaks plain HTTP (and so logs what a client sends to a proxy). Every request head is appended
 * to the log. Prints its port, then runs until killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 65536, WORDS_MAX = 32, COUNTERS_MAX = 256 };

struct server {
	int port;
	const char *cert, *key, *log, *routes;
	bool endless;
	long drip_ms;
	char **files;
	int file_count;
	SSL_CTX *tls;
	struct {
		char *key;
		int served;
	} counters[COUNTERS_MAX]; /* replies served so far, by route */
};

struct peer {
	int fd;
	SSL *ssl; /* NULL: plain */
};

struct bytes {
	char *data;
	size_t len;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static bool send_all(struct peer *p, const char *data, size_t len)
{
	while (len > 0) {
		int part = len > 16384 ? 16384 : (int)len;
		int put = p->ssl ? SSL_write(p->ssl, data, part) : (int)send(p->fd, data, (size_t)part, MSG_NOSIGNAL);
		if (put <= 0)
			return false;
		data += put;
		len -= (size_t)put;
	}
	return true;
}

static bool send_text(struct peer *p, const char *text)
{
	return send_all(p, text, strlen(text));
}

static bool read_file(const char *path, struct bytes *out)
{
	FILE *f = fopen(path, "rb");
	*out = (struct bytes){0};
	if (!f) {
		perror(path);
		return false;
	}
	for (size_t room = 0, got = 1; got > 0; out->len += got) {
		if (room - out->len < 65536)
			out->data = realloc(out->data, room = room * 2 + 131072);
		got = fread(out->data + out->len, 1, room - out->len, f);
	}
	fclose(f);
	return true;
}

/* Reads a request head into `head`; false when the client left. */
static bool read_head(struct peer *p, char *head)
{
	size_t len = 0;
	head[0] = '\0';
	while (!strstr(head, "\r\n\r\n") && len < HEAD_MAX - 1) {
		int room = (int)(HEAD_MAX - 1 - len);
		int got = p->ssl ? SSL_read(p->ssl, head + len, room) : (int)recv(p->fd, head + len, (size_t)room, 0);
		if (got <= 0)
			return false;
		len += (size_t)got;
		head[len] = '\0';
	}
	return true;
}

static void write_log(const struct server *s, const char *head)
{
	int fd = s->log ? open(s->log, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
	if (fd >= 0 && write(fd, head, strlen(head)) < 0)
		perror(s->log);
	if (fd >= 0)
		close(fd);
}

/* Copies a header's value; empty when it is absent. */
static void header_of(const char *head, const char *name, char *out, size_t size)
{
	out[0] = '\0';
	for (const char *line = strstr(head, "\r\n"); line && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
		const char *text = line + 2;
		size_t len = strlen(name);
		if (strncasecmp(text, name, len) != 0 || text[len] != ':')
			continue;
		text += len + 1 + strspn(text + len + 1, " ");
		snprintf(out, size, "%.*s", (int)strcspn(text, "\r"), text);
		return;
	}
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static void send_stored(struct peer *p, const char *path, long drip_ms, bool endless)
{
	static const char zeros[0x4000];
	struct bytes reply;
	if (!read_file(path, &reply))
		return;
	bool alive = true;
	if (drip_ms > 0)
		for (size_t i = 0; i < reply.len && (alive = send_all(p, reply.data + i, 1)); i++)
			pause_ms(drip_ms);
	else
		alive = send_all(p, reply.data, reply.len);
	while (alive && endless)
		alive = send_text(p, "4000\r\n") && send_all(p, zeros, sizeof zeros) && send_text(p, "\r\n");
	free(reply.data);
}

static void etag_of(const struct bytes *body, bool weak, char out[64])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	EVP_Digest(body->data, body->len, md, NULL, EVP_sha256(), NULL);
	int used = sprintf(out, weak ? "W/\"" : "\"");
	for (int i = 0; i < 12; i++)
		used += sprintf(out + used, "%02x", md[i]);
	sprintf(out + used, "\"");
}

static void send_file(struct peer *p, const char *head, const char *path, bool weak)
{
	struct bytes body;
	char etag[64], asked[256], text[512];
	if (!read_file(path, &body)) {
		send_text(p, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		return;
	}
	etag_of(&body, weak, etag);
	header_of(head, "If-None-Match", asked, sizeof asked);
	bool same = strcmp(asked, etag) == 0;
	snprintf(text, sizeof text,
		 "HTTP/1.1 %s\r\nETag: %s\r\nLast-Modified: Wed, 14 May 2025 23:53:13 GMT\r\n"
		 "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n",
		 same ? "304 Not Modified" : "200 OK", etag);
	send_text(p, text);
	if (!same) {
		snprintf(text, sizeof text, "Content-Length: %zu\r\n", body.len);
		send_text(p, text);
	}
	if (send_text(p, "\r\n") && !same)
		send_all(p, body.data, body.len);
	free(body.data);
}

/* How often this route was served before. */
static int count(struct server *s, const char *key)
{
	int i = 0;
	while (i < COUNTERS_MAX - 1 && s->counters[i].key && strcmp(s->counters[i].key, key) != 0)
		i++;
	if (!s->counters[i].key)
		s->counters[i].key = strdup(key);
	return s->counters[i].served++;
}

static bool fits(const char *pattern, const char *text)
{
	size_t len = strlen(pattern);
	if (len > 0 && pattern[len - 1] == '*')
		return strncmp(pattern, text, len - 1) == 0;
	return strcmp(pattern, text) == 0;
}

static void act(struct server *s, struct peer *p, const char *head, const char *key, char **word, int words)
{
	char text[128];
	const char *action = word[0];
	if (strcmp(action, "file") == 0 || strcmp(action, "weak") == 0) {
		send_file(p, head, word[1], action[0] == 'w');
	} else if (strcmp(action, "replay") == 0) {
		int n = count(s, key);
		send_stored(p, word[1 + (n < words - 1 ? n : words - 2)], 0, false);
	} else if (strcmp(action, "endless") == 0) {
		send_stored(p, word[1], 0, true);
	} else if (strcmp(action, "drip") == 0 && words == 3) {
		send_stored(p, word[2], atol(word[1]), false);
	} else {
		int code = strcmp(action, "status") == 0 ? atoi(word[1]) : 404;
		snprintf(text, sizeof text, "HTTP/1.1 %d Stored\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", code);
		send_text(p, text);
	}
}

static void route(struct server *s, struct peer *p, const char *head)
{
	char host[256], target[2048] = "", *word[WORDS_MAX], *save;
	struct bytes text;
	header_of(head, "Host", host, sizeof host);
	sscanf(head, "%*s %2047s", target);
	if (!read_file(s->routes, &text))
		exit(1);
	text.data[text.len] = '\0';
	for (char *line = text.data, *next; line && *line; line = next) {
		int words = 0;
		if ((next = strchr(line, '\n')))
			*next++ = '\0';
		char *key = strdup(line);
		for (char *w = strtok_r(line, " \t", &save); w && words < WORDS_MAX; w = strtok_r(NULL, " \t", &save))
			word[words++] = w;
		bool hit = words >= 4 && fits(word[0], host) && fits(word[1], target);
		if (hit)
			act(s, p, head, key, word + 2, words - 2);
		free(key);
		if (hit) {
			free(text.data);
			return;
		}
	}
	free(text.data);
	send_text(p, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static void answer(struct server *s, struct peer *p)
{
	static char head[HEAD_MAX];
	bool whole = read_head(p, head);
	if (head[0])
		write_log(s, head);
	if (!whole)
		return;
	if (s->routes) {
		route(s, p, head);
		return;
	}
	int n = count(s, "files");
	bool last = n >= s->file_count - 1;
	send_stored(p, s->files[last ? s->file_count - 1 : n], s->drip_ms, s->endless && last);
}

static void serve(struct server *s, int fd)
{
	struct peer p = {.fd = fd};
	struct timeval limit = {.tv_sec = 20};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (s->tls) {
		p.ssl = SSL_new(s->tls);
		SSL_set_fd(p.ssl, fd);
	}
	if (!p.ssl || SSL_accept(p.ssl) == 1) {
		answer(s, &p);
		if (p.ssl)
			SSL_shutdown(p.ssl);
	}
	SSL_free(p.ssl);
	shutdown(fd, SHUT_WR);
	char rest[256];
	while (recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
		;
	close(fd);
}

static SSL_CTX *load_tls(const struct server *s)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	if (!tls || SSL_CTX_use_certificate_chain_file(tls, s->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(tls, s->key, SSL_FILETYPE_PEM) != 1) {
		fputs("https_server: cannot load certificate or key\n", stderr);
		exit(1);
	}
	return tls;
}

static int listen_on(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	socklen_t len = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&address, &len))
		die("listen");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void read_arguments(int argc, char **argv, struct server *s)
{
	int i = 1;
	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		const char *name = argv[i];
		if (strcmp(name, "--endless") == 0)
			s->endless = true;
		else if (strcmp(name, "--tls") == 0 && i + 2 < argc)
			s->cert = argv[++i], s->key = argv[++i];
		else if (strcmp(name, "--port") == 0 && i + 1 < argc)
			s->port = atoi(argv[++i]);
		else if (strcmp(name, "--log") == 0 && i + 1 < argc)
			s->log = argv[++i];
		else if (strcmp(name, "--routes") == 0 && i + 1 < argc)
			s->routes = argv[++i];
		else if (strcmp(name, "--drip") == 0 && i + 1 < argc)
			s->drip_ms = atol(argv[++i]);
		else
			break;
	}
	s->files = argv + i;
	s->file_count = argc - i;
	if ((s->file_count == 0) == (s->routes == NULL)) {
		fputs("usage: https_server [--port N] [--tls CERT KEY] [--log FILE] [--endless] [--drip MS] FILE... | --routes FILE\n",
		      stderr);
		exit(64);
	}
}

int main(int argc, char **argv)
{
	struct server s = {0};
	read_arguments(argc, argv, &s);
	signal(SIGPIPE, SIG_IGN);
	s.tls = s.cert ? load_tls(&s) : NULL;
	int listener = listen_on(s.port);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd >= 0)
			serve(&s, fd);
		else if (errno != EINTR)
			die("accept");
	}
}
