#include "core/locate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const char *at, *end;
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at)
		s->at++;
}

/* Steps over a string, the opening quote next; returns its raw content. */
static const char *skip_string(struct scan *s, size_t *len)
{
	const char *start = ++s->at;
	while (s->at < s->end && *s->at != '"')
		s->at += *s->at == '\\' ? 2 : 1;
	if (s->at > s->end)
		s->at = s->end;
	*len = (size_t)(s->at - start);
	if (s->at < s->end)
		s->at++;
	return start;
}

static void skip_value(struct scan *s)
{
	size_t len;
	int depth = 0;
	skip_space(s);
	do {
		if (s->at >= s->end)
			return;
		char c = *s->at;
		if (c == '"') {
			skip_string(s, &len);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		else if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t'))
			return;
		s->at++;
	} while (depth > 0 || (s->at < s->end && !strchr(",]} \t\r\n", *s->at)));
}

/* One part of the pointer, `~1` and `~0` undone; false when it does not fit. */
static bool next_part(const char **pointer, char *part, size_t size)
{
	size_t len = 0;
	const char *p = *pointer + 1;
	for (; *p && *p != '/'; p++) {
		if (len + 1 >= size)
			return false;
		if (*p == '~' && (p[1] == '0' || p[1] == '1'))
			part[len++] = *++p == '1' ? '/' : '~';
		else
			part[len++] = *p;
	}
	part[len] = '\0';
	*pointer = p;
	return true;
}

/* Moves over a value and the comma behind it. */
static void skip_member(struct scan *s)
{
	skip_value(s);
	skip_space(s);
	if (s->at < s->end && *s->at == ',')
		s->at++;
}

/* Moves from `{` to the value of member `name`; `found` becomes the place of the name. */
static bool enter_member(struct scan *s, const char *name, const char **found)
{
	s->at++;
	for (skip_space(s); s->at < s->end && *s->at == '"'; skip_space(s)) {
		const char *key_at = s->at;
		size_t len;
		const char *key = skip_string(s, &len);
		skip_space(s);
		if (s->at < s->end)
			s->at++; /* the colon */
		skip_space(s);
		if (len == strlen(name) && memcmp(key, name, len) == 0) {
			*found = key_at;
			return true;
		}
		skip_member(s);
	}
	return false;
}

/* Moves from `[` to element `index`. */
static bool enter_element(struct scan *s, const char *part, const char **found)
{
	char *end;
	unsigned long index = strtoul(part, &end, 10);
	s->at++;
	for (skip_space(s); s->at < s->end && *s->at != ']'; skip_space(s)) {
		if (*end == '\0' && index-- == 0) {
			*found = s->at;
			return true;
		}
		skip_member(s);
	}
	return false;
}

void locate(const char *text, size_t len, const char *pointer, unsigned *line, unsigned *column)
{
	struct scan s = {text, text + len};
	char part[256];
	skip_space(&s);
	const char *found = s.at;
	while (*pointer == '/' && s.at < s.end && next_part(&pointer, part, sizeof part)) {
		if (!(*s.at == '{' && enter_member(&s, part, &found)) && !(*s.at == '[' && enter_element(&s, part, &found)))
			break;
	}
	*line = *column = 1;
	for (const char *p = text; p < found; p++) {
		++*column;
		if (*p == '\n') {
			++*line;
			*column = 1;
		}
	}
}
