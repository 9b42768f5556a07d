#include "store/flag_rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"

/* ---- making flags ---- */

bool flag_wanted(const struct deriver *d, enum flag_code code)
{
	return d->options->codes == 0 || (d->options->codes & (1u << code));
}

static char *facts_json(const struct fact *facts, size_t count, struct slice caveats)
{
	struct buf text = {0};
	json_t *object = json_object();
	struct err ignored = {0};
	for (size_t i = 0; i < count; i++)
		if (isfinite(facts[i].value))
			json_object_set_new(object, facts[i].name, json_real(facts[i].value));
	if (caveats.len)
		json_set_slice(object, "caveats", caveats);
	json_canonical(object, &text, &ignored);
	json_decref(object);
	return text.data;
}

static void add(struct deriver *d, struct flag flag)
{
	if (d->out->count == d->flag_room) {
		d->flag_room = d->flag_room ? d->flag_room * 2 : 64;
		d->out->items = xrealloc(d->out->items, d->flag_room * sizeof *d->out->items);
	}
	d->out->items[d->out->count++] = flag;
}

static struct slice caveats_of(const struct sample *s)
{
	struct view v = {.labels = s->labels};
	return view_label(&v, "caveats");
}

void flag_raise(struct deriver *d, enum flag_code code, const struct sample *s, uint32_t other, double severity, const struct fact *facts,
		size_t count, const char *format, ...)
{
	struct buf words = {0};
	va_list args;
	if (!flag_wanted(d, code))
		return;
	va_start(args, format);
	buf_vprintf(&words, format, args);
	va_end(args);
	add(d, (struct flag){code, s->run, other, severity, facts_json(facts, count, caveats_of(s)), words.data});
}

/* How many times `b` is in `a`. Both are whole nanoseconds, so that 0 stands for anything shorter than one. */
static double times(double a, double b)
{
	return a / fmax(b, 1);
}

static const char *shown(double ns, char text[32])
{
	struct buf b = {0};
	view_quantity(METRIC_LATENCY, (int64_t)ns, &b);
	snprintf(text, 32, "%s", b.data);
	buf_fini(&b);
	return text;
}

/* ---- rules on one row ---- */

static void rule_impossible(struct deriver *d, const struct sample *s)
{
	char a[32], b[32];
	if (!s->floor.hard || s->median * d->policy.floor_allowance >= s->floor.ns)
		return;
	const struct fact facts[] = {{"medianNs", s->median}, {"floorNs", s->floor.ns}, {"bytes", s->floor.bytes}, {"flops", s->floor.flops}};
	flag_raise(d, FLAG_IMPOSSIBLE, s, s->run, times(s->floor.ns, s->median), facts, 4, "%s is under the %s that the GPU's data sheet allows",
		   shown(s->median, a), shown(s->floor.ns, b));
}

static const char *channel_of(const struct sample *s)
{
	/* cutile and cutedsl rows are known by their providers; the timer's budget is the same in all other channels */
	if (memmem(s->c->parts.provider.data, s->c->parts.provider.len, "cutile", 6))
		return "cutile";
	return memmem(s->c->parts.provider.data, s->c->parts.provider.len, "cutedsl", 7) ? "cutedsl" : "";
}

static void rule_spread(struct deriver *d, const struct sample *s)
{
	double samples = policy_samples(&d->policy, s->c->parts.kernel, channel_of(s), s->median);
	if (isnan(s->p20) || isnan(s->p80))
		return;
	if (s->p20 == s->median && s->p80 == s->median) {
		const struct fact facts[] = {{"medianNs", s->median}, {"estimatedSamples", samples}};
		flag_raise(d, FLAG_SINGLE_SAMPLE, s, s->run, s->median, facts, 2, "p20, median and p80 are equal: about %.0f sample%s, not perfect precision",
			   samples, samples > 1 ? "s" : "");
	} else if (times(s->p80, s->p20) > d->policy.spread_ratio) {
		const struct fact facts[] = {{"p20Ns", s->p20}, {"p80Ns", s->p80}, {"ratio", times(s->p80, s->p20)}};
		flag_raise(d, FLAG_WIDE_SPREAD, s, s->run, times(s->p80, s->p20), facts, 3, "p80 is %.2f times p20", times(s->p80, s->p20));
	}
}

static void rule_alias(struct deriver *d, const struct sample *s)
{
	struct slice caveats = caveats_of(s);
	if (memmem(caveats.data, caveats.len, "label-alias", 11))
		flag_raise(d, FLAG_ALIAS, s, s->run, 1, NULL, 0, "two providers of this kernel run the same code (caveat label-alias)");
}

void flag_rules_of_one(struct deriver *d)
{
	for (size_t i = 0; i < d->count; i++) {
		rule_impossible(d, &d->samples[i]);
		rule_spread(d, &d->samples[i]);
		rule_alias(d, &d->samples[i]);
	}
}

/* ---- rules along a sweep: one kernel, pass, provider, GPU, config and publication, by size ---- */

static int compare_sweeps(const struct sample *a, const struct sample *b)
{
	const struct case_parts *x = &a->c->parts, *y = &b->c->parts;
	const struct slice pairs[][2] = {{x->kernel, y->kernel}, {x->mode, y->mode},	 {x->provider, y->provider}, {x->gpu, y->gpu},
					 {x->x_name, y->x_name}, {x->config, y->config}, {a->labels, b->labels}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		int order = slice_cmp(pairs[i][0], pairs[i][1]);
		if (order)
			return order;
	}
	return 0;
}

static int by_sweep(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = compare_sweeps(x, y);
	if (order)
		return order;
	if (x->x != y->x)
		return x->x < y->x ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static void rule_launch(struct deriver *d, const struct sample *s, const struct sample *next)
{
	char a[32], b[32];
	if (!s->floor.known || s->median >= d->policy.launch_median_ns || s->median < s->floor.ns * 2)
		return;
	bool flat = next && next->floor.known && next->floor.ns >= s->floor.ns * d->policy.flat_floor_ratio &&
		    next->median <= s->median * d->policy.flat_time_ratio;
	double ratio = s->median / s->floor.ns;
	if (!flat && ratio < d->policy.launch_ratio)
		return;
	const struct fact facts[] = {{"medianNs", s->median}, {"floorNs", s->floor.ns}, {"ratio", ratio}, {"nextMedianNs", flat ? next->median : NAN},
				     {"nextFloorNs", flat ? next->floor.ns : NAN}};
	if (flat)
		flag_raise(d, FLAG_LAUNCH_SUSPECT, s, next->run, ratio, facts, 5, "%s stays flat while the work grows %.1f times: launch cost, not work",
			   shown(s->median, a), next->floor.ns / s->floor.ns);
	else
		flag_raise(d, FLAG_LAUNCH_SUSPECT, s, s->run, ratio, facts, 5, "%s is %.0f times the floor of %s: launch cost, not work", shown(s->median, a),
			   ratio, shown(s->floor.ns, b));
}

static void rule_monotone(struct deriver *d, const struct sample *s, const struct sample *next)
{
	char a[32], b[32];
	if (!next || next->x <= s->x || next->median >= s->median * d->policy.drop_ratio)
		return;
	const struct fact facts[] = {{"x", s->x}, {"nextX", next->x}, {"medianNs", s->median}, {"nextMedianNs", next->median}};
	flag_raise(d, FLAG_NON_MONOTONE, s, next->run, times(s->median, next->median), facts, 4, "%s at %g, but %s at %g", shown(s->median, a), s->x,
		   shown(next->median, b), next->x);
}

void flag_rules_of_sweeps(struct deriver *d)
{
	if (d->count)
		qsort(d->samples, d->count, sizeof *d->samples, by_sweep);
	for (size_t i = 0; i < d->count; i++) {
		const struct sample *s = &d->samples[i], *next = i + 1 < d->count ? s + 1 : NULL;
		if (s->x <= 0)
			continue;
		if (next && compare_sweeps(s, next) != 0)
			next = NULL;
		rule_launch(d, s, next);
		rule_monotone(d, s, next);
	}
}

/* ---- rules across publications of one case ---- */

static int by_case(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = (x->c->id > y->c->id) - (x->c->id < y->c->id);
	if (order == 0)
		order = slice_cmp(x->version, y->version);
	if (order == 0)
		order = (x->observed_ms > y->observed_ms) - (x->observed_ms < y->observed_ms);
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

static void rule_contradiction(struct deriver *d, const struct sample *s, const struct sample *before)
{
	char a[32], b[32];
	double ratio = s->median > before->median ? times(s->median, before->median) : times(before->median, s->median);
	bool disjoint = s->p20 > before->p80 || s->p80 < before->p20;
	if (isnan(s->p20 + s->p80 + before->p20 + before->p80) || !disjoint || ratio < d->policy.contradiction_ratio)
		return;
	const struct fact facts[] = {{"medianNs", s->median}, {"otherMedianNs", before->median}, {"ratio", times(s->median, before->median)}};
	flag_raise(d, FLAG_CONTRADICTED, s, before->run, ratio, facts, 3, "%s here, %s in another publication of %s%.*s, beyond both spreads",
		   shown(s->median, a), shown(before->median, b), s->version.len ? "version " : "the same case", (int)s->version.len, s->version.data);
}

void flag_rules_of_cases(struct deriver *d)
{
	if (d->count)
		qsort(d->samples, d->count, sizeof *d->samples, by_case);
	for (size_t i = 1; i < d->count; i++) {
		const struct sample *s = &d->samples[i], *before = s - 1;
		if (s->c->id == before->c->id && slice_cmp(s->version, before->version) == 0)
			rule_contradiction(d, s, before);
	}
}

/* ---- rules on a cohort, best first ---- */

/* The first of its cohort is news when it beats everything observed before it by more than reruns differ. */
static void rule_record(struct deriver *d, const struct cohort *k)
{
	char a[32], b[32];
	const struct member *first = &k->members[0], *before = NULL;
	for (size_t i = 1; i < k->ranked && !before; i++)
		if (k->members[i].row.observed_ms < first->row.observed_ms)
			before = &k->members[i];
	if (k->ranked < 2 || !before || (double)before->primary < (double)first->primary * d->policy.record_gain)
		return;
	double gain = times((double)before->primary, (double)first->primary);
	struct sample s = {.run = first->run, .labels = catalog_labels(d->c, first->row.labels)};
	const struct fact facts[] = {{"medianNs", (double)first->primary}, {"formerMedianNs", (double)before->primary}, {"ratio", gain}};
	flag_raise(d, FLAG_RECORD_CANDIDATE, &s, before->run, gain, facts, 3, "%s leads its group, %.2f times as fast as the former first's %s",
		   shown((double)first->primary, a), gain, shown((double)before->primary, b));
}

/* Set-up cost inside the timing, a wrong unit: no work of one group differs that much. Which of the two is wrong no rule can say. */
static void rule_outlier(struct deriver *d, const struct cohort *k)
{
	char a[32], b[32];
	const struct member *first = &k->members[0];
	for (size_t i = k->ranked; i-- > 1;) {
		const struct member *m = &k->members[i];
		double ratio = times((double)m->primary, (double)first->primary);
		if (ratio < d->policy.outlier_ratio)
			return;
		struct sample s = {.run = m->run, .labels = catalog_labels(d->c, m->row.labels)};
		const struct fact facts[] = {{"medianNs", (double)m->primary}, {"firstMedianNs", (double)first->primary}, {"ratio", ratio}};
		flag_raise(d, FLAG_OUTLIER, &s, first->run, ratio, facts, 3, "%s is %.0f times the %s of the first of its group: one of the two timed something else",
			   shown((double)m->primary, a), ratio, shown((double)first->primary, b));
	}
}

void flag_rules_of_cohort(struct deriver *d, const struct cohort *k)
{
	rule_record(d, k);
	rule_outlier(d, k);
}
