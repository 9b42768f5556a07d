/* Small drawings for a terminal: a line of blocks, and a chart with spreads. Values are logarithms, so equal heights are equal
 * ratios. Text goes into a buffer; nothing here knows a run. */
#ifndef KI_STORE_PLOT_H
#define KI_STORE_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"

/* How a stream wants to be drawn on (screen.h knows). */
struct plot_style {
	bool ascii;     /* no character beyond 7 bits */
	unsigned width; /* columns */
};

/* Appends one character a value, low to high over the range of the values, but over 10 % at least, so that noise stays flat. */
void plot_spark(const double *values, size_t count, bool ascii, struct buf *out);

/* Appends a bar of so much of `width` columns, one at least, without spaces behind it. `share` is 0 to 1. */
void plot_bar(double share, unsigned width, bool ascii, struct buf *out);
/* Appends a line of `width` columns from `low` to `high` with `middle` where it lies between them. */
void plot_interval(double low, double middle, double high, unsigned width, bool ascii, struct buf *out);

struct plot_chart {
	const double *values, *low, *high; /* `count` each; low and high NAN where there is no spread */
	size_t count;
	const bool *marks;                 /* true where a step lies before the value */
	void (*label)(double value, struct buf *out); /* text of a height */
	struct plot_style style;
};
/* Appends a chart of 10 lines: medians, their spreads, a dotted line before each marked value. When there are more values than
 * columns the last ones are drawn. */
void plot_chart(const struct plot_chart *p, struct buf *out);

/* Appends `text`, padded to `width` columns on the right, or on the left when width is negative. A character is a column. */
void plot_pad(struct buf *out, const char *text, int width);

#endif
