/* SHA-256 digests as values. A digest is written `sha256:` and 64 lowercase hex digits (manifests.md section 1). */
#ifndef KI_CORE_DIGEST_H
#define KI_CORE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SIZE = 32, DIGEST_HEX = 64, DIGEST_TEXT = 7 + 64 };

struct digest {
	uint8_t bytes[DIGEST_SIZE];
};

/* Digest of `len` bytes. Keeps one OpenSSL context a thread; an OpenSSL failure ends the process (exit 70). */
struct digest digest_of(const void *data, size_t len);

/* The same in pieces, for files read in blocks. */
struct digest_stream;
struct digest_stream *digest_stream_new(void);
void digest_stream_add(struct digest_stream *s, const void *data, size_t len);
struct digest digest_stream_end(struct digest_stream *s); /* also frees `s` */

/* Writes 64 hex digits and a NUL. */
void digest_hex(const struct digest *d, char out[DIGEST_HEX + 1]);
/* Writes `sha256:` and 64 hex digits and a NUL. */
void digest_text(const struct digest *d, char out[DIGEST_TEXT + 1]);
/* Writes 64 hex digits at `out`, no NUL. */
void digest_put_hex(const struct digest *d, char *out);
/* Reads exactly 64 lowercase hex digits, resp. `sha256:` before them. False when the text is anything else. */
bool digest_parse_hex(const char *text, size_t len, struct digest *out);
bool digest_parse(const char *text, size_t len, struct digest *out);
/* Like memcmp: order by bytes. */
int digest_cmp(const struct digest *a, const struct digest *b);
/* In an array of structs that begin with a digest, `size` bytes each and sorted by it: the place of the first that has `wanted`, or
 * where it would stand, and how many have it. */
size_t digest_search(const void *items, size_t count, size_t size, const struct digest *wanted, size_t *found);

#endif
