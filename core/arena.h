/* Memory with an obvious owner: a bump arena for things that live and die together, a growable byte buffer for text that is
 * built up, and the one place where running out of memory ends the process (exit 75 with a line on stderr). */
#ifndef KI_CORE_ARENA_H
#define KI_CORE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the process: exit 75, a line on stderr. */
void out_of_memory(void) __attribute__((noreturn)); /* CUDA C++ reads this header too */
/* Never return NULL. Freed with free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *s);

/* An arena starts zeroed (`struct arena a = {0}`); everything it hands out is valid until reset or fini. */
struct arena {
	struct arena_block *head;
	size_t used; /* bytes used in the head block */
};
void *arena_alloc(struct arena *a, size_t size);      /* zeroed, aligned for any type */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_reset(struct arena *a); /* keeps one block for reuse */
void arena_fini(struct arena *a);

/* A buffer starts zeroed; `data` has room for a NUL after `len` whenever `data` is not NULL. */
struct buf {
	char *data;
	size_t len, cap;
};
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void buf_i64(struct buf *b, int64_t value); /* decimal digits */
static inline void buf_clear(struct buf *b) { b->len = 0; }
void buf_fini(struct buf *b);

/* Bytes somebody else owns. */
struct slice {
	const char *data;
	size_t len;
};
struct slice slice_of(const char *text); /* of a NUL-terminated text */
int slice_eq(struct slice s, const char *text); /* 1 when equal to the NUL-terminated text */
int slice_same(struct slice a, struct slice b);
int slice_cmp(struct slice a, struct slice b);  /* like memcmp, a prefix before what continues it */
#endif
