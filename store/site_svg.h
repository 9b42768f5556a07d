/* Plots as SVG inside a page, on logarithmic axes, drawn from data without a script. Colours are classes of the style sheet, which has
 * them for light and dark; dashes and the shape of marks tell curves apart without colour. Each plot has its table beside it. */
#ifndef KI_STORE_SITE_SVG_H
#define KI_STORE_SITE_SVG_H

#include "store/site_html.h"

/* Values in stored units, above zero; `low` and `high` are p20 and p80, NAN where not published. */
struct svg_point {
	double x, value, low, high;
};
struct svg_curve {
	struct slice name;
	const struct svg_point *points; /* by rising x */
	size_t count;
};
struct svg_plot {
	const char *title;            /* for readers who do not see it; plain text */
	struct slice x_name;
	enum metric metric;
	const struct svg_curve *curves;
	size_t curve_count;
	const struct svg_point *floor; /* x and value: the least time that the data sheet allows */
	size_t floor_count;
};
/* A value against a swept axis, for each curve, with bands from p20 to p80. Nothing when there is no point. */
void svg_curves(struct page *p, const struct svg_plot *plot);

struct svg_stop {
	struct slice name, version;   /* publication; "" when not known */
	struct svg_point at;          /* x is not looked at */
	int64_t observed_ms;
};
struct svg_step {                 /* stops [begin, split) lie before it, [split, end) after it */
	size_t begin, split, end;
	double before, after;         /* medians of both stretches */
};
struct svg_trend {
	const char *title;
	enum metric metric;
	const struct svg_stop *stops; /* in time */
	size_t stop_count;
	const struct svg_step *steps;
	size_t step_count;
};
/* Values from publication to publication, evenly spaced, with a line where the version changes and one at each step. Nothing when there
 * is no stop. */
void svg_trend(struct page *p, const struct svg_trend *t);

struct svg_bar {
	struct slice name;
	struct svg_point at; /* x is not looked at */
};
/* One line a run: its median and the range from p20 to p80; `floor` 0 when it is not known. */
void svg_ranking(struct page *p, const char *title, enum metric metric, const struct svg_bar *bars, size_t count, double floor);

#endif
