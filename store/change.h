/* Change points of the night: series whose level stepped and stayed, found by step.h over all series of the catalog at once, so
 * that the false-alarm rate holds for the night and not for a glance. Thresholds: config/trend.json, each with its reason. */
#ifndef KI_STORE_CHANGE_H
#define KI_STORE_CHANGE_H

#include "store/series.h"
#include "store/step.h"

struct change_options {
	const char *config;           /* directory that holds trend.json */
	const struct filter *filter;  /* which changes are wanted; all series are searched whatever it says. NULL: all */
	uint32_t publications;        /* as the catalog stood after so many; 0 for all */
};

struct change {
	const struct series *series;
	size_t begin, split, end;     /* points [begin, split) before, [split, end) after: neighbouring changes bound them */
	double ratio;                 /* median after / median before; above 1 is slower */
	double p, q;                  /* of chance; q over the whole night */
	const struct series_point *last_before, *first_after;
	/* Caveat codes that hold on one side of the step only, `-code` for one that ended and `+code` for one that began, joined
	 * by commas; "" when both sides are alike. They may be all there is to the change. */
	const char *explained;
};

struct change_list {
	struct change *items;         /* by series, then in time */
	size_t count;
	size_t tested, points_min;    /* series searched: those of so many points or more */
	struct series_set series;     /* all latency series of the catalog, filtered or not */
	const char *policy;           /* `trend-v1` */
	struct arena arena;
};

/* ERR_CONFIG when trend.json is wrong. Free with change_list_fini, also when it failed. */
int change_points(struct catalog *c, const struct change_options *options, struct change_list *out);
void change_list_fini(struct change_list *l);

/* The changes of a series, in time: the first of *count in a row; NULL when there are none. */
const struct change *change_of(const struct change_list *l, const struct series *s, size_t *count);
/* Appends `+21.2 % since 33924d2 (0.6.2) [-init-timed]`. */
void change_words(const struct change *h, struct buf *out);

int change_rules_load(const char *config_directory, struct step_rules *out, struct err *e);

/* What the method does to series without a change, and to a planted one: all series of the catalog are shuffled `times` times,
 * and searched as they are, and again with the second part of every tenth one (from a random point on) slower by `planted`
 * (a ratio). Pure counting; nothing is written. */
struct change_measure {
	size_t series, shuffles;      /* searched in a night; nights */
	size_t false_alarms;          /* series with a change, in all nights */
	size_t steady_alarms;         /* of these, in series that have no change as they are */
	size_t nights_with_alarm;
	size_t planted, found;        /* in the real series, not the shuffled; found: a slower step at the place or one beside it */
	size_t quiet_planted, quiet_found; /* those whose points stray by under 2 % once the largest step is taken out */
};
int change_measure(struct catalog *c, const char *config_directory, size_t times, double planted, struct change_measure *out);

#endif
