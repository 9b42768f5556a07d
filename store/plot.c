#include "store/plot.h"

#include <math.h>
#include <stdlib.h>

#include "store/screen.h"

void plot_pad(struct buf *out, const char *text, int width)
{
	int columns = (int)screen_columns(text), wanted = abs(width);
	if (width < 0)
		for (; columns < wanted; columns++)
			buf_char(out, ' ');
	buf_str(out, text);
	for (; columns < wanted; columns++)
		buf_char(out, ' ');
}

void plot_spark(const double *values, size_t count, bool ascii, struct buf *out)
{
	static const char *const blocks[] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
					     "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	static const char *const signs[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	double low = INFINITY, high = -INFINITY;
	for (size_t i = 0; i < count; i++) {
		low = values[i] < low ? values[i] : low;
		high = values[i] > high ? values[i] : high;
	}
	double range = fmax(high - low, log(1.1));
	for (size_t i = 0; i < count; i++) {
		int level = (int)((values[i] - low) / range * 7.999);
		buf_str(out, ascii ? signs[level] : blocks[level]);
	}
}

void plot_bar(double share, unsigned width, bool ascii, struct buf *out)
{
	static const char *const ends[] = {"", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d", "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
	unsigned eighths = (unsigned)lround(fmin(fmax(share, 0), 1) * width * 8);
	if (ascii)
		eighths = eighths < 8 ? 8 : (eighths + 4) / 8 * 8;
	eighths = eighths ? eighths : 1;
	for (; eighths >= 8; eighths -= 8)
		buf_str(out, ascii ? "#" : "\xe2\x96\x88");
	buf_str(out, ends[eighths]);
}

void plot_interval(double low, double middle, double high, unsigned width, bool ascii, struct buf *out)
{
	static const char *const drawn[] = {"\xe2\x94\x9c", "\xe2\x94\x80", "\xe2\x97\x8f", "\xe2\x94\xa4"}, *const plain[] = {"|", "-", "*", "|"};
	const char *const *signs = ascii ? plain : drawn;
	double share = high > low ? fmin(fmax((middle - low) / (high - low), 0), 1) : 0.5;
	unsigned at = (unsigned)lround(share * (width - 1));
	for (unsigned i = 0; i < width; i++)
		buf_str(out, signs[i == at ? 2 : i == 0 ? 0 : i == width - 1 ? 3 : 1]);
}

/* ---- the chart ---- */

enum { HEIGHT = 10, LABEL = 10, STEP_MAX = 4, COLUMNS_MAX = 400 };
enum cell { EMPTY, MARK, SPREAD, POINT };

struct canvas {
	enum cell cells[HEIGHT][COLUMNS_MAX];
	size_t columns;
	double low, high;
};

static void fit_heights(const struct plot_chart *p, size_t first, struct canvas *c)
{
	c->low = INFINITY;
	c->high = -INFINITY;
	for (size_t i = first; i < p->count; i++) {
		c->low = fmin(c->low, fmin(p->values[i], p->low[i])); /* fmin passes over NAN */
		c->high = fmax(c->high, fmax(p->values[i], p->high[i]));
	}
	double missing = log(1.1) - (c->high - c->low);
	if (missing > 0) {
		c->low -= missing / 2;
		c->high += missing / 2;
	}
}

static size_t row_of(const struct canvas *c, double value)
{
	return (size_t)lround((c->high - value) / (c->high - c->low) * (HEIGHT - 1));
}

static void draw_value(const struct plot_chart *p, size_t i, size_t column, struct canvas *c)
{
	if (p->marks[i] && column > 0)
		for (size_t row = 0; row < HEIGHT; row++)
			c->cells[row][column - 1] = MARK;
	if (!isnan(p->low[i]) && !isnan(p->high[i]))
		for (size_t row = row_of(c, p->high[i]); row <= row_of(c, p->low[i]); row++)
			c->cells[row][column] = SPREAD;
	c->cells[row_of(c, p->values[i])][column] = POINT;
}

static void put_canvas(const struct plot_chart *p, const struct canvas *c, struct buf *out)
{
	static const char *const drawn[] = {" ", "\xe2\x94\x8a", "\xe2\x94\x82", "\xe2\x97\x8f"}, *const plain[] = {" ", ":", "|", "*"};
	for (size_t row = 0; row < HEIGHT; row++) {
		struct buf text = {0};
		size_t last = c->columns;
		if (row % 3 == 0)
			p->label(c->high - (c->high - c->low) * (double)row / (HEIGHT - 1), &text);
		plot_pad(out, text.data ? text.data : "", -LABEL);
		buf_str(out, p->style.ascii ? " | " : " \xe2\x94\xa4 ");
		while (last > 0 && c->cells[row][last - 1] == EMPTY)
			last--;
		for (size_t k = 0; k < last; k++)
			buf_str(out, (p->style.ascii ? plain : drawn)[c->cells[row][k]]);
		buf_char(out, '\n');
		buf_fini(&text);
	}
}

void plot_chart(const struct plot_chart *p, struct buf *out)
{
	struct canvas *c = xcalloc(1, sizeof *c);
	size_t room = p->style.width > LABEL + 8 ? p->style.width - LABEL - 4 : 4, shown, step;
	room = room < COLUMNS_MAX ? room : COLUMNS_MAX;
	step = p->count && room / p->count > 1 ? room / p->count : 1;
	step = step < STEP_MAX ? step : STEP_MAX;
	shown = p->count < room / step ? p->count : room / step;
	c->columns = shown * step;
	fit_heights(p, p->count - shown, c);
	for (size_t i = 0; i < shown; i++)
		draw_value(p, p->count - shown + i, i * step + step / 2, c);
	if (shown)
		put_canvas(p, c, out);
	free(c);
}
