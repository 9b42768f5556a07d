#include "core/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

struct digest_stream {
	EVP_MD_CTX *ctx;
};

static void check(int ok)
{
	if (ok == 1)
		return;
	fputs("OpenSSL cannot compute SHA-256\n", stderr);
	_Exit(70);
}

static EVP_MD_CTX *context_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	check(ctx && sha256 && EVP_DigestInit_ex2(ctx, sha256, NULL) == 1);
	EVP_MD_free(sha256); /* the context keeps its own reference */
	return ctx;
}

struct digest digest_of(const void *data, size_t len)
{
	static _Thread_local EVP_MD_CTX *ctx;
	struct digest d;
	if (!ctx)
		ctx = context_new();
	else
		check(EVP_DigestInit_ex2(ctx, NULL, NULL));
	check(EVP_DigestUpdate(ctx, data, len));
	check(EVP_DigestFinal_ex(ctx, d.bytes, NULL));
	return d;
}

struct digest_stream *digest_stream_new(void)
{
	struct digest_stream *s = xmalloc(sizeof *s);
	s->ctx = context_new();
	return s;
}

void digest_stream_add(struct digest_stream *s, const void *data, size_t len)
{
	check(EVP_DigestUpdate(s->ctx, data, len));
}

struct digest digest_stream_end(struct digest_stream *s)
{
	struct digest d;
	check(EVP_DigestFinal_ex(s->ctx, d.bytes, NULL));
	EVP_MD_CTX_free(s->ctx);
	free(s);
	return d;
}

void digest_put_hex(const struct digest *d, char *out)
{
	static const char hex[] = "0123456789abcdef";
	for (int i = 0; i < DIGEST_SIZE; i++) {
		out[2 * i] = hex[d->bytes[i] >> 4];
		out[2 * i + 1] = hex[d->bytes[i] & 15];
	}
}

void digest_hex(const struct digest *d, char out[DIGEST_HEX + 1])
{
	digest_put_hex(d, out);
	out[DIGEST_HEX] = '\0';
}

void digest_text(const struct digest *d, char out[DIGEST_TEXT + 1])
{
	memcpy(out, "sha256:", 7);
	digest_hex(d, out + 7);
}

/* Value of each hex digit plus one; 0 for any other byte. */
static const uint8_t hex_values[256] = {['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
					['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};

bool digest_parse_hex(const char *text, size_t len, struct digest *out)
{
	unsigned good = 1;
	if (len != DIGEST_HEX)
		return false;
	for (int i = 0; i < DIGEST_SIZE; i++) {
		unsigned high = hex_values[(uint8_t)text[2 * i]], low = hex_values[(uint8_t)text[2 * i + 1]];
		good &= (high != 0) & (low != 0);
		out->bytes[i] = (uint8_t)((high - 1) << 4 | ((low - 1) & 15));
	}
	return good;
}

bool digest_parse(const char *text, size_t len, struct digest *out)
{
	return len == DIGEST_TEXT && memcmp(text, "sha256:", 7) == 0 && digest_parse_hex(text + 7, len - 7, out);
}

int digest_cmp(const struct digest *a, const struct digest *b)
{
	return memcmp(a->bytes, b->bytes, DIGEST_SIZE);
}

size_t digest_search(const void *items, size_t count, size_t size, const struct digest *wanted, size_t *found)
{
	const char *at = items;
	size_t first = 0, left = count;
	while (left > 0) {
		size_t half = left / 2;
		bool below = digest_cmp((const struct digest *)(const void *)(at + (first + half) * size), wanted) < 0;
		first += below ? half + 1 : 0;
		left = below ? left - half - 1 : half;
	}
	for (*found = 0; first + *found < count; ++*found)
		if (digest_cmp((const struct digest *)(const void *)(at + (first + *found) * size), wanted) != 0)
			break;
	return first;
}
