#include "ingest/position.h"

#include <stdbool.h>
#include <string.h>

struct walk {
	const char *at, *end;
};

static void skip_blank(struct walk *w)
{
	while (w->at < w->end && strchr(" \t\r\n:,", *w->at))
		w->at++;
}

static void skip_string(struct walk *w)
{
	for (w->at++; w->at < w->end && *w->at != '"'; w->at++)
		if (*w->at == '\\')
			w->at++;
	w->at++;
}

static void skip_value(struct walk *w)
{
	int depth = 0;
	do {
		skip_blank(w);
		if (w->at >= w->end)
			return;
		if (*w->at == '"') {
			skip_string(w);
		} else if (strchr("{[", *w->at)) {
			depth++;
			w->at++;
		} else if (strchr("}]", *w->at)) {
			depth--;
			w->at++;
		} else {
			while (w->at < w->end && !strchr(" \t\r\n:,{}[]\"", *w->at))
				w->at++;
		}
	} while (depth > 0);
}

/* Moves from the start of a container to the member or element asked for; false (and unmoved) when there is none. */
static bool enter(struct walk *w, const struct position_step *step, const char **shown)
{
	struct walk in = {w->at + 1, w->end};
	if (w->at >= w->end || *w->at != (step->name ? '{' : '['))
		return false;
	for (size_t i = 0;; i++) {
		skip_blank(&in);
		if (in.at >= in.end || *in.at == '}' || *in.at == ']')
			return false;
		const char *start = in.at;
		if (!step->name && i == step->index)
			break;
		skip_value(&in);
		if (!step->name)
			continue;
		size_t len = strlen(step->name);
		skip_blank(&in);
		*shown = start;
		if ((size_t)(in.at - start) >= len + 2 && memcmp(start + 1, step->name, len) == 0 && start[len + 1] == '"') {
			*w = in;
			return true;
		}
		skip_value(&in);
	}
	*shown = in.at;
	*w = in;
	return true;
}

void position_find(const char *text, size_t len, const struct position_step *steps, size_t count, unsigned *line, unsigned *column)
{
	struct walk w = {text, text + len};
	skip_blank(&w);
	const char *shown = w.at, *found = w.at;
	for (size_t i = 0; i < count && enter(&w, &steps[i], &found); i++)
		shown = found;
	*line = *column = 1;
	for (const char *p = text; p < shown; p++) {
		*column = *p == '\n' ? 1 : *column + 1;
		*line += *p == '\n';
	}
}
