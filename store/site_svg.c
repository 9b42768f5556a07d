#include "store/site_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/when.h"

enum { WIDTH = 720, LEFT = 80, RIGHT = 20, TOP = 14, HEIGHT = 280, LINE = 18, COLOURS = 8, NAME_MAX_SHOWN = 24 };
static const char *const dashes[] = {"none", "7 3", "2 3", "9 3 2 3"};

/* ---- axes ---- */

struct axis {
	double low, high;  /* logarithms, or values of a linear one */
	double from, to;   /* where they lie in the picture */
	bool linear;
};

static void widen(struct axis *a, double value)
{
	if (!(value > 0) || !isfinite(value))
		return;
	a->low = fmin(a->low, log(value));
	a->high = fmax(a->high, log(value));
}

/* A little room at both ends, and a range of 10 % at least, so that noise does not fill the picture. */
static void settle(struct axis *a)
{
	double room = fmax((a->high - a->low) * 0.05, 0.05);
	a->low -= room;
	a->high += room;
}

static double place(const struct axis *a, double value)
{
	return a->from + ((a->linear ? value : log(value)) - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Next of 1, 2, 5, 10, … above `value`. */
static double next_tick(double value)
{
	double decade = pow(10, floor(log10(value) + 1e-9));
	double lead = value / decade;
	return decade * (lead < 1.5 ? 2 : lead < 3.5 ? 5 : 10);
}

static double first_tick(const struct axis *a)
{
	double tick = pow(10, floor(a->low / log(10)));
	while (log(tick) < a->low)
		tick = next_tick(tick);
	return tick;
}

enum { FEW = 4 };

/* Round ticks of a value axis; where a narrow range has fewer than two, evenly spaced ones. Returns their count. */
static size_t value_ticks(const struct axis *a, double *out, size_t room)
{
	size_t count = 0;
	for (double tick = first_tick(a); log(tick) <= a->high && count < room; tick = next_tick(tick))
		out[count++] = tick;
	if (count >= 2)
		return count;
	for (count = 0; count < FEW; count++)
		out[count] = exp(a->low + (a->high - a->low) * ((double)count + 0.5) / FEW);
	return count;
}

static void put_value_ticks(struct page *p, const struct axis *a, enum metric m, bool vertical, double other_from, double other_to)
{
	double ticks[64], last = -1e9;
	size_t count = value_ticks(a, ticks, sizeof ticks / sizeof *ticks);
	for (size_t i = 0; i < count; i++) {
		double at = place(a, ticks[i]);
		if (fabs(at - last) < (vertical ? 16 : 66))
			continue;
		last = at;
		if (vertical)
			page_printf(p, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", other_from, at, other_to,
				    other_from - 6, at + 4);
		else
			page_printf(p, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at, other_from, other_to,
				    at, other_to + 16);
		view_quantity(m, llround(ticks[i]), &p->out);
		page_str(p, "</text>");
	}
}

/* ---- marks ---- */

static void put_mark(struct page *p, size_t shape, double x, double y)
{
	switch (shape % 4) {
	case 0: page_printf(p, "M%.1f %.1fa3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5, y); break;
	case 1: page_printf(p, "M%.1f %.1fh6v6h-6z", x - 3, y - 3); break;
	case 2: page_printf(p, "M%.1f %.1fl4 7h-8z", x, y - 4); break;
	default: page_printf(p, "M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z", x, y - 4.5); break;
	}
}

static bool has_spread(const struct svg_point *at)
{
	return at->low > 0 && at->high > 0 && isfinite(at->low) && isfinite(at->high);
}

static void put_band(struct page *p, const struct svg_curve *c, size_t number, const struct axis *x, const struct axis *y)
{
	size_t drawn = 0;
	page_printf(p, "<path class=\"band s%zu\" d=\"", number % COLOURS);
	for (size_t i = 0; i < c->count; i++)
		if (has_spread(&c->points[i]))
			page_printf(p, "%c%.1f %.1f", drawn++ ? 'L' : 'M', place(x, c->points[i].x), place(y, c->points[i].high));
	for (size_t i = c->count; i-- > 0;)
		if (has_spread(&c->points[i]))
			page_printf(p, "L%.1f %.1f", place(x, c->points[i].x), place(y, c->points[i].low));
	page_str(p, drawn ? "z\"/>\n" : "\"/>\n");
}

static void put_curve(struct page *p, const struct svg_curve *c, size_t number, const struct axis *x, const struct axis *y)
{
	put_band(p, c, number, x, y);
	page_printf(p, "<path class=\"curve s%zu\" stroke-dasharray=\"%s\" d=\"", number % COLOURS, dashes[number / 2 % 4]);
	for (size_t i = 0; i < c->count; i++)
		page_printf(p, "%c%.1f %.1f", i ? 'L' : 'M', place(x, c->points[i].x), place(y, c->points[i].value));
	page_printf(p, "\"/>\n<path class=\"s%zu\" d=\"", number % COLOURS);
	for (size_t i = 0; i < c->count; i++)
		put_mark(p, number, place(x, c->points[i].x), place(y, c->points[i].value));
	page_str(p, "\"/>\n");
}

static void put_legend(struct page *p, const struct svg_plot *plot, double y)
{
	for (size_t i = 0; i < plot->curve_count; i++, y += LINE) {
		page_printf(p, "<path class=\"curve s%zu\" stroke-dasharray=\"%s\" d=\"M%d %.1fh36\"/><path class=\"s%zu\" d=\"", i % COLOURS, dashes[i / 2 % 4],
			    LEFT, y - 4, i % COLOURS);
		put_mark(p, i, LEFT + 18, y - 4);
		page_printf(p, "\"/><text x=\"%d\" y=\"%.1f\">", LEFT + 44, y);
		page_text(p, plot->curves[i].name);
		page_str(p, "</text>\n");
	}
	if (plot->floor_count)
		page_printf(p, "<path class=\"floor\" d=\"M%d %.1fh36\"/><text x=\"%d\" y=\"%.1f\">speed of light by the GPU's data sheet</text>\n", LEFT, y - 4,
			    LEFT + 44, y);
}

/* A name cut to what has room; the table has it whole. */
static void put_short(struct page *p, struct slice name)
{
	size_t len = name.len;
	if (len > NAME_MAX_SHOWN)
		for (len = NAME_MAX_SHOWN; len > 0 && ((unsigned char)name.data[len] & 0xc0) == 0x80;)
			len--;
	page_text(p, (struct slice){name.data, len});
	page_str(p, len < name.len ? "\xe2\x80\xa6" : "");
}

static void begin(struct page *p, const char *title, double height)
{
	page_str(p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Plot: ");
	html_str(&p->out, title);
	page_str(p, "\">\n");
	page_printf(p, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDTH, height);
	html_str(&p->out, title);
	page_str(p, "\">\n");
}

/* ---- a value against a swept axis ---- */

static void find_ranges(const struct svg_plot *plot, struct axis *x, struct axis *y)
{
	for (size_t i = 0; i < plot->curve_count; i++)
		for (size_t k = 0; k < plot->curves[i].count; k++) {
			const struct svg_point *at = &plot->curves[i].points[k];
			widen(x, at->x);
			widen(y, at->value);
			widen(y, at->low);
			widen(y, at->high);
		}
	for (size_t i = 0; i < plot->floor_count; i++)
		widen(y, plot->floor[i].value);
	settle(x);
	settle(y);
}

/* The values that were measured, as far as their labels have room. */
static void put_x_ticks(struct page *p, const struct svg_plot *plot, const struct axis *x)
{
	double shown[64];
	size_t count = 0;
	for (size_t i = 0; i < plot->curve_count; i++)
		for (size_t k = 0; k < plot->curves[i].count && count < 64; k++) {
			double value = plot->curves[i].points[k].x, at = place(x, value);
			bool room = true;
			for (size_t n = 0; n < count; n++)
				room = room && fabs(shown[n] - at) >= 48;
			if (!room)
				continue;
			shown[count++] = at;
			page_printf(p, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>", at, TOP, HEIGHT, at,
				    HEIGHT + 16, value);
		}
	page_printf(p, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT + 34);
	page_text(p, plot->x_name);
	page_str(p, "</text>\n");
}

void svg_curves(struct page *p, const struct svg_plot *plot)
{
	struct axis x = {HUGE_VAL, -HUGE_VAL, LEFT, WIDTH - RIGHT, false}, y = {HUGE_VAL, -HUGE_VAL, HEIGHT, TOP, false};
	size_t points = 0;
	for (size_t i = 0; i < plot->curve_count; i++)
		points += plot->curves[i].count;
	if (points == 0)
		return;
	find_ranges(plot, &x, &y);
	begin(p, plot->title, HEIGHT + 46 + (double)(plot->curve_count + (plot->floor_count > 0)) * LINE);
	put_value_ticks(p, &y, plot->metric, true, LEFT, WIDTH - RIGHT);
	put_x_ticks(p, plot, &x);
	for (size_t i = 0; i < plot->floor_count; i++)
		page_printf(p, "%s%.1f %.1f", i ? "L" : "<path class=\"floor\" d=\"M", place(&x, plot->floor[i].x), place(&y, plot->floor[i].value));
	page_str(p, plot->floor_count ? "\"/>\n" : "");
	for (size_t i = 0; i < plot->curve_count; i++)
		put_curve(p, &plot->curves[i], i, &x, &y);
	put_legend(p, plot, HEIGHT + 56);
	page_str(p, "</svg>\n</div>\n");
}

/* ---- a value from publication to publication ---- */

enum { VERSIONS_AT = 16, STEPS_AT = 46, TREND_TOP = 58, TREND_BOTTOM = 310, NAMES_AT = TREND_BOTTOM + 18, DATES_AT = NAMES_AT + 30, KEY_AT = DATES_AT + 26,
       LETTER = 7, ROWS = 2 };

/* Two rows of labels, filled from left to right; where both are full the next label is left out, for the table has it. */
struct rows {
	double end[ROWS];
};

static void put_label(struct page *p, struct rows *rows, double x, double first_row, struct slice text)
{
	double half = (double)(text.len < NAME_MAX_SHOWN ? text.len : NAME_MAX_SHOWN) * LETTER / 2;
	double middle = fmin(fmax(x, half), WIDTH - half);
	for (size_t i = 0; i < ROWS && text.len; i++) {
		if (middle - half < rows->end[i])
			continue;
		rows->end[i] = middle + half + LETTER;
		page_printf(p, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", middle, first_row + (double)i * 14);
		put_short(p, text);
		page_str(p, "</text>");
		return;
	}
}

static double between(const struct axis *x, size_t stop)
{
	return place(x, (double)stop - 0.5);
}

static void put_names(struct page *p, const struct svg_trend *t, const struct axis *x)
{
	struct rows names = {{0}}, versions = {{0}};
	char first[WHEN_TEXT + 1], last[WHEN_TEXT + 1];
	for (size_t i = 0; i < t->stop_count; i++) {
		put_label(p, &names, place(x, (double)i), NAMES_AT, t->stops[i].name);
		if (i && slice_same(t->stops[i].version, t->stops[i - 1].version))
			continue;
		if (i)
			page_printf(p, "<path class=\"version\" d=\"M%.1f %dV%d\"/>", between(x, i), TREND_TOP, TREND_BOTTOM);
		put_label(p, &versions, place(x, (double)i), VERSIONS_AT, t->stops[i].version);
	}
	when_text(t->stops[0].observed_ms, first);
	when_text(t->stops[t->stop_count - 1].observed_ms, last);
	page_printf(p, "<text x=\"%d\" y=\"%d\">%.10s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.10s</text>\n", LEFT, DATES_AT, first, WIDTH - RIGHT,
		    DATES_AT, last);
}

/* The medians of both sides as level lines, and between them a line with a triangle that points up where it became slower. */
static void put_step(struct page *p, const struct svg_step *s, const struct axis *x, const struct axis *y)
{
	double at = between(x, s->split);
	bool up = s->after > s->before;
	page_printf(p, "<path class=\"curve s1\" d=\"M%.1f %.1fH%.1fM%.1f %.1fH%.1fM%.1f %dV%d\"/>", between(x, s->begin), place(y, s->before), at, at,
		    place(y, s->after), between(x, s->end), at, TREND_TOP, TREND_BOTTOM);
	page_printf(p, "<path class=\"s1\" d=\"M%.1f %dl5 %dh-10z\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%+.1f %%</text>\n", at,
		    up ? TREND_TOP - 8 : TREND_TOP, up ? 8 : -8, fmin(fmax(at, 30), WIDTH - 30), STEPS_AT, (s->after / s->before - 1) * 100);
}

static void put_trend_key(struct page *p, bool steps)
{
	page_printf(p, "<path class=\"curve s0\" d=\"M%d %dh36\"/><path class=\"s0\" d=\"", LEFT, KEY_AT - 4);
	put_mark(p, 0, LEFT + 18, KEY_AT - 4);
	page_printf(p, "\"/><text x=\"%d\" y=\"%d\">median, with the band from p20 to p80</text>", LEFT + 44, KEY_AT);
	page_printf(p, "<path class=\"version\" d=\"M%d %dh36\"/><text x=\"%d\" y=\"%d\">another version, named above</text>", LEFT + 320, KEY_AT - 4, LEFT + 364, KEY_AT);
	if (steps)
		page_printf(p, "<path class=\"curve s1\" d=\"M%d %dh36\"/><text x=\"%d\" y=\"%d\">change point, and the medians before and after it</text>", LEFT,
			    KEY_AT + LINE - 4, LEFT + 44, KEY_AT + LINE);
	page_str(p, "\n");
}

void svg_trend(struct page *p, const struct svg_trend *t)
{
	struct axis x = {-0.5, (double)t->stop_count - 0.5, LEFT, WIDTH - RIGHT, true}, y = {HUGE_VAL, -HUGE_VAL, TREND_BOTTOM, TREND_TOP, false};
	if (t->stop_count == 0)
		return;
	struct svg_point *points = xmalloc(t->stop_count * sizeof *points);
	for (size_t i = 0; i < t->stop_count; i++) {
		points[i] = t->stops[i].at;
		points[i].x = (double)i;
		widen(&y, points[i].value);
		widen(&y, points[i].low);
		widen(&y, points[i].high);
	}
	settle(&y);
	begin(p, t->title, KEY_AT + 8 + (t->step_count ? LINE : 0));
	put_value_ticks(p, &y, t->metric, true, LEFT, WIDTH - RIGHT);
	put_names(p, t, &x);
	put_curve(p, &(struct svg_curve){.points = points, .count = t->stop_count}, 0, &x, &y);
	for (size_t i = 0; i < t->step_count; i++)
		put_step(p, &t->steps[i], &x, &y);
	put_trend_key(p, t->step_count > 0);
	page_str(p, "</svg>\n</div>\n");
	free(points);
}

/* ---- a ranking ---- */

void svg_ranking(struct page *p, const char *title, enum metric metric, const struct svg_bar *bars, size_t count, double least)
{
	enum { NAMES = 190 };
	struct axis x = {HUGE_VAL, -HUGE_VAL, NAMES, WIDTH - 40, false};
	double bottom = TOP + (double)count * LINE;
	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		widen(&x, bars[i].at.value);
		widen(&x, bars[i].at.low);
		widen(&x, bars[i].at.high);
	}
	widen(&x, least);
	settle(&x);
	begin(p, title, bottom + (least > 0 ? 46 : 26));
	put_value_ticks(p, &x, metric, false, TOP, bottom);
	if (least > 0)
		page_printf(p, "<path class=\"floor\" d=\"M%.1f %dV%.1f\"/><path class=\"floor\" d=\"M%d %.1fh36\"/><text x=\"%d\" y=\"%.1f\">speed of light by the "
			       "GPU's data sheet</text>\n", place(&x, least), TOP, bottom, NAMES, bottom + 34, NAMES + 44, bottom + 38);
	for (size_t i = 0; i < count; i++) {
		double y = TOP + ((double)i + 0.5) * LINE;
		page_printf(p, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", NAMES - 8, y + 4);
		put_short(p, bars[i].name);
		page_str(p, "</text>");
		if (has_spread(&bars[i].at))
			page_printf(p, "<path class=\"curve s0\" d=\"M%.1f %.1fH%.1f\"/>", place(&x, bars[i].at.low), y, place(&x, bars[i].at.high));
		page_str(p, "<path class=\"s0\" d=\"");
		put_mark(p, 0, place(&x, bars[i].at.value), y);
		page_str(p, "\"/>\n");
	}
	page_str(p, "</svg>\n</div>\n");
}
