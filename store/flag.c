#include "store/flag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/entry.h"
#include "store/flag_rule.h"

static const char *const names[FLAG_CODES] = {"IMPOSSIBLE", "CONTRADICTED", "REGRESSION",    "IMPROVEMENT",      "LAUNCH_SUSPECT", "NON_MONOTONE",
					      "OUTLIER",    "WIDE_SPREAD",  "SINGLE_SAMPLE", "RECORD_CANDIDATE", "ALIAS",          "MANUAL"};

const char *flag_name(enum flag_code code)
{
	return names[code];
}

bool flag_parse(const char *text, enum flag_code *out)
{
	for (size_t i = 0; i < FLAG_CODES; i++)
		if (strcmp(names[i], text) == 0) {
			*out = (enum flag_code)i;
			return true;
		}
	return false;
}

int flag_codes_parse(const char *const texts[], int count, unsigned *out, struct err *e)
{
	*out = 0;
	for (int i = 0; i < count; i++) {
		enum flag_code code;
		if (!flag_parse(texts[i], &code)) {
			struct buf known = {0};
			for (int n = 0; n < FLAG_CODES; n++)
				buf_printf(&known, "%s%s", n ? ", " : "", names[n]);
			err_set(e, ERR_USAGE, "--code %s: want one of %s", texts[i], known.data);
			buf_fini(&known);
			return -1;
		}
		*out |= 1u << code;
	}
	return 0;
}

/* ---- gathering ---- */

static int add_sample(struct deriver *d, const struct member *m)
{
	char number[32], *end;
	struct view v = {.labels = catalog_labels(d->c, m->row.labels)};
	struct sample s = {.run = m->run, .rank = m->rank, .c = m->c, .labels = v.labels, .observed_ms = m->row.observed_ms};
	s.version = view_label(&v, "liger_version");
	s.median = (double)m->primary;
	s.p20 = isnan(m->row.value_20) ? NAN : (double)run_units(&m->row, METRIC_LATENCY, m->row.value_20);
	s.p80 = isnan(m->row.value_80) ? NAN : (double)run_units(&m->row, METRIC_LATENCY, m->row.value_80);
	snprintf(number, sizeof number, "%.*s", (int)m->c->parts.x_value.len, m->c->parts.x_value.data);
	s.x = strtod(number, &end);
	if (*end || !isfinite(s.x))
		s.x = 0;
	bool same_case = d->count && d->samples[d->count - 1].c == m->c;
	if (same_case)
		s.floor = d->samples[d->count - 1].floor;
	else if (policy_floor(&d->policy, d->c, m->c, &s.floor))
		return -1;
	if (d->count == d->room) {
		d->room = d->room ? d->room * 2 : 1024;
		d->samples = xrealloc(d->samples, d->room * sizeof *d->samples);
	}
	d->samples[d->count++] = s;
	return 0;
}

static int gather(const struct cohort *k, void *context)
{
	struct deriver *d = context;
	if (k->members[0].c->parts.metric != METRIC_LATENCY)
		return 0;
	for (size_t i = 0; i < k->ranked; i++)
		if (!(k->members[i].row.flags & RUN_WHOLE) && add_sample(d, &k->members[i]))
			return -1;
	flag_rules_of_cohort(d, k);
	return 0;
}

/* ---- change points and manual flags ---- */

static int raise_changes(struct deriver *d, const struct change_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct change *x = &list->items[i];
		struct sample s = {.run = x->first_after->run};
		struct run_row row;
		if (catalog_run(d->c, s.run, &row))
			return -1;
		s.labels = catalog_labels(d->c, row.labels);
		const struct fact facts[] = {{"ratio", x->ratio}, {"p", x->p}, {"q", x->q}};
		flag_raise(d, x->ratio > 1 ? FLAG_REGRESSION : FLAG_IMPROVEMENT, &s, x->last_before->run, fabs(log(x->ratio)), facts, 3,
			   "%s by %.1f %% from %.12s on%s%s", x->ratio > 1 ? "slower" : "faster", fabs(x->ratio - 1) * 100, x->first_after->release->identity,
			   *x->explained ? "; caveats differ: " : "", x->explained);
	}
	return d->c->err->code ? -1 : 0;
}

static int rules_of_change(struct deriver *d)
{
	struct change_options options = {.config = d->options->config};
	struct change_list list;
	if (!flag_wanted(d, FLAG_REGRESSION) && !flag_wanted(d, FLAG_IMPROVEMENT))
		return 0;
	if (d->options->changes)
		return raise_changes(d, d->options->changes);
	int rc = change_points(d->c, &options, &list) ? -1 : raise_changes(d, &list);
	change_list_fini(&list);
	return rc;
}

/* Flags that people set: the last of them about a run decides. */
static int rules_by_hand(struct deriver *d)
{
	const json_t *entries = entry_all(d->c);
	json_t *last = json_object(), *entry;
	const char *run;
	size_t i;
	json_array_foreach((json_t *)entries, i, entry)
		if (strncmp(json_text_of(entry, "type"), "flag", 4) == 0)
			json_object_set(last, json_text_of(entry, "run"), entry);
	json_object_foreach(last, run, entry) {
		struct sample s = {0};
		struct run_row row;
		if (strcmp(json_text_of(entry, "type"), "flag") != 0 || catalog_find_one(d->c, run, &s.run) || catalog_run(d->c, s.run, &row))
			continue;
		s.labels = catalog_labels(d->c, row.labels);
		flag_raise(d, FLAG_MANUAL, &s, s.run, 1, NULL, 0, "%s (%.10s)", json_text_of(entry, "reason"), json_text_of(entry, "at"));
	}
	json_decref(last);
	return entries && !d->c->err->code ? 0 : -1;
}

static int by_severity(const void *a, const void *b)
{
	const struct flag *x = a, *y = b;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

/* What the rules make of the samples gathered, in order. */
static void derive(struct deriver *d)
{
	d->out->policy = xstrdup(d->policy.name);
	flag_rules_of_one(d);
	flag_rules_of_sweeps(d);
	flag_rules_of_cases(d);
}

static void finish(struct deriver *d)
{
	if (d->out->count)
		qsort(d->out->items, d->out->count, sizeof *d->out->items, by_severity);
	policy_fini(&d->policy);
	free(d->samples);
}

int flags_derive(struct catalog *c, const struct flag_options *options, struct flags *out)
{
	struct deriver d = {.c = c, .options = options, .out = out};
	*out = (struct flags){0};
	int rc = policy_load(options->config, &d.policy, c->err) || cohort_each(c, gather, &d) ? -1 : 0;
	if (rc == 0) {
		derive(&d);
		rc = rules_of_change(&d) || rules_by_hand(&d) ? -1 : 0;
	}
	finish(&d);
	return rc;
}

static void free_flag(struct flag *x)
{
	free(x->evidence);
	free(x->words);
}

/* ---- one run ---- */

static bool same_sweep(const struct case_parts *a, const struct case_parts *b)
{
	return slice_cmp(a->kernel, b->kernel) == 0 && slice_cmp(a->mode, b->mode) == 0 && slice_cmp(a->provider, b->provider) == 0 &&
	       slice_cmp(a->gpu, b->gpu) == 0 && slice_cmp(a->x_name, b->x_name) == 0 && slice_cmp(a->config, b->config) == 0;
}

static bool is_among(const struct digest *keys, size_t count, const struct digest *key)
{
	for (size_t i = 0; i < count; i++)
		if (digest_cmp(&keys[i], key) == 0)
			return true;
	return false;
}

/* The cohorts that the rules look at for a run: its own, and those of the other sizes of its sweep. */
static int gather_around(struct deriver *d, const struct cohort *k, const struct member *m)
{
	struct catalog *c = d->c;
	struct digest *seen = xmalloc(((size_t)c->counts.cases + 1) * sizeof *seen);
	size_t count = 0;
	int rc = gather(k, d);
	seen[count++] = k->key;
	for (uint32_t id = 0; id < c->counts.cases && rc == 0; id++) {
		const struct catalog_case *of = catalog_case(c, id);
		struct cohort other;
		if (!of || !same_sweep(&of->parts, &m->c->parts) || is_among(seen, count, &of->cohort)) {
			rc = of ? 0 : -1;
			continue;
		}
		seen[count++] = of->cohort;
		rc = cohort_load(c, &of->cohort, &other) || gather(&other, d) ? -1 : 0;
		cohort_fini(&other);
	}
	free(seen);
	return rc;
}

/* True when the run's series is long enough to be searched for change points, which asks for all series. */
static bool may_have_changed(struct deriver *d, const struct cohort *k, const struct member *m)
{
	struct step_rules rules;
	size_t points = 0;
	for (size_t i = 0; i < k->count; i++)
		points += k->members[i].c == m->c;
	return change_rules_load(d->options->config, &rules, d->c->err) == 0 && points >= rules.points_min;
}

static void keep_run(struct flags *f, uint32_t run)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->count; i++)
		if (f->items[i].run == run)
			f->items[kept++] = f->items[i];
		else
			free_flag(&f->items[i]);
	f->count = kept;
}

int flags_of_run(struct catalog *c, const char *config, const struct cohort *k, const struct member *m, struct flags *out)
{
	const struct flag_options options = {.config = config};
	struct deriver d = {.c = c, .options = &options, .out = out};
	*out = (struct flags){0};
	int rc = policy_load(config, &d.policy, c->err) || (m->rank && gather_around(&d, k, m)) ? -1 : 0;
	if (rc == 0) {
		derive(&d);
		rc = (may_have_changed(&d, k, m) && rules_of_change(&d)) || rules_by_hand(&d) ? -1 : 0;
	}
	keep_run(out, m->run);
	finish(&d);
	return rc;
}

void flags_fini(struct flags *f)
{
	for (size_t i = 0; i < f->count; i++)
		free_flag(&f->items[i]);
	free(f->items);
	free(f->policy);
	*f = (struct flags){0};
}
