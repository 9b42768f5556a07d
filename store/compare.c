#include "store/compare.h"

#include <string.h>

#include "core/json.h"
#include "store/plot.h"

const char *const compare_material[] = {"metric", "operation", "workload", "mode", "protocol", "gpu", "environment", "status"};
const size_t compare_material_count = sizeof compare_material / sizeof *compare_material;
static const char *const shown[] = {"external_id", "digest",	 "metric",	"operation_slug", "workload_label", "mode",	   "provider", "gpu",
				    "dtype",	   "liger_version", "observed_at", "evidence",	  "median_ns",	    "p20_ns",	   "p80_ns",   "median_bytes",
				    "rank",	   "cohort_size",   "unranked",	   "caveats"};

struct side {
	struct cohort k;
	struct view v;
};

static int load(struct catalog *c, uint32_t run, struct side *s)
{
	struct run_row row;
	const struct catalog_case *of;
	if (catalog_run(c, run, &row) || !(of = catalog_case(c, row.case_id)) || cohort_load(c, &of->cohort, &s->k))
		return -1;
	const struct member *m = cohort_member(&s->k, run);
	return m ? view_fill(&s->v, c, &s->k, m) : err_set(c->err, ERR_CORRUPT, "a run is not in its own cohort; run `ki check`");
}

static void field(const struct side *s, const char *name, struct buf *out)
{
	const struct column *column = view_column((struct slice){name, strlen(name)});
	buf_clear(out);
	column->put(&s->v, out);
	buf_add(out, "", 0);
}

static bool differs(const struct side *sides, size_t count, const char *name)
{
	struct buf first = {0}, other = {0};
	bool different = false;
	field(&sides[0], name, &first);
	for (size_t i = 1; i < count && !different; i++) {
		field(&sides[i], name, &other);
		different = strcmp(first.data, other.data) != 0;
	}
	buf_fini(&first);
	buf_fini(&other);
	return different;
}

static const char *first_mismatch(const struct side *sides, size_t count)
{
	for (size_t i = 0; i < compare_material_count; i++)
		if (differs(sides, count, compare_material[i]))
			return compare_material[i];
	return NULL;
}

/* What the spreads allow to say of `b` against `a`. */
static const char *claim(const struct member *a, const struct member *b)
{
	enum metric m = a->c->parts.metric;
	int64_t a20 = run_units(&a->row, m, a->row.value_20), a80 = run_units(&a->row, m, a->row.value_80);
	int64_t b20 = run_units(&b->row, m, b->row.value_20), b80 = run_units(&b->row, m, b->row.value_80);
	if (a->primary < 0 || b->primary < 0)
		return "no-median";
	if (a20 < 0 || a80 < 0 || b20 < 0 || b80 < 0)
		return "no-spread";
	if (a20 <= b80 && b20 <= a80)
		return "overlap";
	return b->primary > a->primary ? "slower" : "faster";
}

const struct compare_claim compare_claims[] = {
	{"no-median", "one of them has no median"},
	{"no-spread", "no spread was published, so nothing is claimed"},
	{"incomparable", "different work, so the ratio says nothing about speed"},
	{"overlap", "p20 to p80 overlap: no change claimed"},
	{"slower", "slower, beyond both spreads"},
	{"faster", "faster, beyond both spreads"},
};
const size_t compare_claim_count = sizeof compare_claims / sizeof *compare_claims;

static const char *claim_words(const char *name)
{
	for (size_t i = 0; i < compare_claim_count; i++)
		if (strcmp(compare_claims[i].claim, name) == 0)
			return compare_claims[i].words;
	return name;
}

const char *compare_claim_words(const struct member *a, const struct member *b)
{
	return claim_words(claim(a, b));
}

static void put_ratio(const struct screen *on, const struct side *first, const struct side *s, size_t number, bool comparable)
{
	const char *name = comparable || claim(first->v.m, s->v.m)[0] == 'n' ? claim(first->v.m, s->v.m) : "incomparable";
	double ratio = (double)s->v.m->primary / (double)first->v.m->primary;
	if (strcmp(name, "no-median") == 0 || first->v.m->primary == 0)
		screen_printf(on, 6, "  [%zu] against [1]: %s", number, claim_words(name));
	else
		screen_printf(on, 6, "  [%zu] against [1]: %.4gx (%+.1f %%); %s", number, ratio, (ratio - 1) * 100, claim_words(name));
}

enum { VALUES_AT = 22, BAR_MAX = 40 }; /* columns */

static void put_fields(const struct screen *on, const struct side *sides, size_t count)
{
	struct buf text = {0};
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		bool different = differs(sides, count, shown[i]);
		for (size_t k = 0; k < (different ? count : 1); k++) {
			field(&sides[k], shown[i], &text);
			if (!different && text.len == 0)
				break;
			if (different)
				screen_printf(on, VALUES_AT, "%c %-15s [%zu] %s", k ? ' ' : '*', k ? "" : shown[i], k + 1, text.len ? text.data : "\xe2\x80\x94");
			else
				screen_printf(on, VALUES_AT, "  %-15s     %s", shown[i], text.data);
		}
	}
	fputc('\n', on->out);
	buf_fini(&text);
}

/* Medians as bars, the longest the slowest. */
static void put_bars(const struct screen *on, const struct side *sides, size_t count)
{
	unsigned width = on->width - VALUES_AT < BAR_MAX ? on->width - VALUES_AT : BAR_MAX;
	int64_t most = 0;
	for (size_t i = 0; i < count; i++)
		most = sides[i].v.m->primary > most ? sides[i].v.m->primary : most;
	for (size_t i = 0; i < count && most > 0; i++) {
		const struct member *m = sides[i].v.m;
		struct buf line = {0}, text = {0};
		if (m->primary >= 0)
			view_quantity(m->c->parts.metric, m->primary, &text);
		buf_printf(&line, "  [%zu] ", i + 1);
		plot_pad(&line, text.data ? text.data : "-", -11);
		buf_str(&line, "  ");
		if (m->primary >= 0)
			plot_bar((double)m->primary / (double)most, width, on->ascii, &line);
		screen_line(on, 6, line.data);
		buf_fini(&line);
		buf_fini(&text);
	}
	fputs(most > 0 ? "\n" : "", on->out);
}

static int write_text(const struct side *sides, size_t count, const struct screen *on)
{
	const char *mismatch = first_mismatch(sides, count);
	put_fields(on, sides, count);
	if (!mismatch)
		put_bars(on, sides, count);
	if (mismatch)
		screen_printf(on, 2, "not comparable: %s differs", mismatch);
	else
		screen_line(on, 2, "comparable: one comparison key");
	if (!differs(sides, count, "metric"))
		for (size_t i = 1; i < count; i++)
			put_ratio(on, &sides[0], &sides[i], i + 1, !mismatch);
	return 0;
}

static int write_json(struct catalog *c, const struct side *sides, size_t count, FILE *out)
{
	struct buf text = {0};
	const char *mismatch = first_mismatch(sides, count);
	buf_printf(&text, "{\"comparable\":%s,", mismatch ? "false" : "true");
	if (mismatch)
		buf_printf(&text, "\"firstMismatch\":\"%s\",", mismatch);
	buf_str(&text, "\"ratios\":[");
	for (size_t i = 1; i < count; i++) {
		const char *name = mismatch ? "incomparable" : claim(sides[0].v.m, sides[i].v.m);
		buf_printf(&text, "%s{\"claim\":\"%s\"", i > 1 ? "," : "", name);
		if (sides[i].v.m->primary >= 0 && sides[0].v.m->primary > 0) {
			buf_str(&text, ",\"ratio\":");
			json_put_number(&text, (double)sides[i].v.m->primary / (double)sides[0].v.m->primary);
		}
		buf_char(&text, '}');
	}
	buf_str(&text, "],\"runs\":[");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_char(&text, ',');
		if (view_json(&sides[i].v, &text, c->err))
			break;
	}
	buf_str(&text, "]}\n");
	fputs(text.data, out);
	buf_fini(&text);
	return c->err->code ? -1 : 0;
}

int compare_runs(struct catalog *c, const uint32_t *runs, size_t count, bool json, const struct screen *on)
{
	struct side sides[COMPARE_MAX] = {0};
	int rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = load(c, runs[i], &sides[i]);
	if (rc == 0)
		rc = json ? write_json(c, sides, count, on->out) : write_text(sides, count, on);
	for (size_t i = 0; i < count; i++) {
		cohort_fini(&sides[i].k);
		view_fini(&sides[i].v);
	}
	return rc;
}
