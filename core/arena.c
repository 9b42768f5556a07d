#include "core/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

enum { BLOCK_SIZE = 64 * 1024 };

struct arena_block {
	struct arena_block *next;
	size_t size;
	max_align_t data[];
};

void out_of_memory(void)
{
	static const char text[] = "out of memory; try again when the machine has more\n";
	fwrite(text, 1, sizeof text - 1, stderr);
	_Exit(ERR_TEMP);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

void *xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

void *xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

char *xstrdup(const char *s)
{
	size_t size = strlen(s) + 1;
	return memcpy(xmalloc(size), s, size);
}

void *arena_alloc(struct arena *a, size_t size)
{
	size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!a->head || a->head->size - a->used < size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		struct arena_block *block = xmalloc(sizeof *block + room);
		block->next = a->head;
		block->size = room;
		a->head = block;
		a->used = 0;
	}
	void *p = (char *)a->head->data + a->used;
	a->used += size;
	return memset(p, 0, size);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = arena_alloc(a, (size_t)len + 1);
	vsnprintf(text, (size_t)len + 1, format, again);
	va_end(again);
	return text;
}

static void free_blocks(struct arena_block *block)
{
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
}

void arena_reset(struct arena *a)
{
	if (!a->head)
		return;
	free_blocks(a->head->next);
	a->head->next = NULL;
	a->used = 0;
}

void arena_fini(struct arena *a)
{
	free_blocks(a->head);
	*a = (struct arena){0};
}

void buf_reserve(struct buf *b, size_t more)
{
	if (b->cap - b->len > more)
		return;
	size_t cap = b->cap ? b->cap * 2 : 256;
	while (cap - b->len <= more)
		cap *= 2;
	b->data = xrealloc(b->data, cap);
	b->cap = cap;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	buf_reserve(b, len);
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	buf_reserve(b, (size_t)len);
	vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
	b->len += (size_t)len;
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	buf_vprintf(b, format, args);
	va_end(args);
}

void buf_i64(struct buf *b, int64_t value)
{
	char digits[24], *p = digits + sizeof digits;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	do
		*--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (value < 0)
		*--p = '-';
	buf_add(b, p, (size_t)(digits + sizeof digits - p));
}

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

struct slice slice_of(const char *text)
{
	return (struct slice){text, strlen(text)};
}

int slice_eq(struct slice s, const char *text)
{
	return strlen(text) == s.len && memcmp(s.data, text, s.len) == 0;
}

int slice_same(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

int slice_cmp(struct slice a, struct slice b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
}
