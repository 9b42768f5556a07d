#include "store/ranges.h"

#include <stdlib.h>

static void append(struct ranges *r, struct range item)
{
	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : 16;
		r->items = xrealloc(r->items, r->room * sizeof *r->items);
	}
	r->items[r->count++] = item;
}

void ranges_add(struct ranges *r, uint32_t number)
{
	struct range *last = r->count ? &r->items[r->count - 1] : NULL;
	if (last && last->first + last->count == number)
		last->count++;
	else
		append(r, (struct range){number, 1});
}

static int compare(const void *a, const void *b)
{
	uint32_t x = ((const struct range *)a)->first, y = ((const struct range *)b)->first;
	return (x > y) - (x < y);
}

void ranges_sort(struct ranges *r)
{
	size_t kept = 0;
	if (r->count == 0)
		return;
	qsort(r->items, r->count, sizeof *r->items, compare);
	for (size_t i = 1; i < r->count; i++) {
		struct range *last = &r->items[kept], next = r->items[i];
		uint32_t end = last->first + last->count, next_end = next.first + next.count;
		if (next.first > end)
			r->items[++kept] = next;
		else if (next_end > end)
			last->count = next_end - last->first;
	}
	r->count = kept + 1;
}

uint64_t ranges_total(const struct ranges *r)
{
	uint64_t total = 0;
	for (size_t i = 0; i < r->count; i++)
		total += r->items[i].count;
	return total;
}

bool ranges_has(const struct ranges *r, uint32_t number)
{
	size_t first = 0, count = r->count;
	while (count > 0) {
		const struct range *middle = &r->items[first + count / 2];
		if (number < middle->first) {
			count /= 2;
		} else if (number - middle->first < middle->count) {
			return true;
		} else {
			first += count / 2 + 1;
			count -= count / 2 + 1;
		}
	}
	return false;
}

void ranges_fini(struct ranges *r)
{
	free(r->items);
	*r = (struct ranges){0};
}

static void put_varint(struct buf *out, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_char(out, (char)(value | 0x80));
	buf_char(out, (char)value);
}

static bool get_varint(struct slice *text, uint32_t *out)
{
	uint64_t value = 0;
	for (unsigned shift = 0; text->len > 0 && shift < 35; shift += 7) {
		uint8_t byte = (uint8_t)*text->data++;
		text->len--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

void ranges_write(const struct ranges *r, struct buf *out)
{
	uint32_t end = 0;
	for (size_t i = 0; i < r->count; i++) {
		put_varint(out, r->items[i].first - end);
		put_varint(out, r->items[i].count);
		end = r->items[i].first + r->items[i].count;
	}
}

bool ranges_read(struct slice text, struct ranges *out)
{
	uint32_t end = 0, gap, count;
	while (text.len > 0) {
		if (!get_varint(&text, &gap) || !get_varint(&text, &count) || count == 0 || gap > UINT32_MAX - end ||
		    count > UINT32_MAX - end - gap)
			return false;
		append(out, (struct range){end + gap, count});
		end += gap + count;
	}
	return true;
}
