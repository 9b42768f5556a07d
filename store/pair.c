#include "store/pair.h"

#include <string.h>

#include "core/json.h"
#include "store/plot.h"

static const struct {
	const char *name, *words;
} claims[CLAIMS] = {
	{"slower", "slower, beyond both spreads"},
	{"faster", "faster, beyond both spreads"},
	{"overlap", "p20 to p80 overlap: no change claimed"},
	{"no-spread", "no spread was published: no change claimed"},
	{"only-from", "not in the second release"},
	{"only-to", "not in the first release"},
};

enum claim pair_claim(const struct series_point *from, const struct series_point *to)
{
	if (!to)
		return CLAIM_ONLY_FROM;
	if (!from)
		return CLAIM_ONLY_TO;
	if (from->p20_ns < 0 || from->p80_ns < 0 || to->p20_ns < 0 || to->p80_ns < 0)
		return CLAIM_NO_SPREAD;
	if (from->p20_ns <= to->p80_ns && to->p20_ns <= from->p80_ns)
		return CLAIM_OVERLAP;
	return to->median_ns > from->median_ns ? CLAIM_SLOWER : CLAIM_FASTER;
}

static bool is_release(const struct series_point *p, const char *release)
{
	size_t len = strlen(release);
	return slice_eq(p->version, release) || strcmp(p->release->identity, release) == 0 ||
	       (len >= 7 && strncmp(p->release->commit, release, len) == 0);
}

const struct series_point *pair_find(const struct series *s, const char *release)
{
	for (size_t i = s->count; i-- > 0;)
		if (is_release(&s->points[i], release))
			return &s->points[i];
	return NULL;
}

static double ratio_of(const struct series_point *from, const struct series_point *to)
{
	return (double)to->median_ns / (double)from->median_ns;
}

static void put_median(const struct series_point *p, struct buf *line)
{
	struct buf text = {0};
	if (p)
		view_quantity(METRIC_LATENCY, p->median_ns, &text);
	plot_pad(line, p ? text.data : "-", -11);
	buf_fini(&text);
}

/* Equal quantiles are one sample, not perfect precision. */
static bool is_single(const struct series_point *p)
{
	return p && p->p20_ns >= 0 && p->p20_ns == p->p80_ns;
}

static void put_caveats(const struct series_point *from, const struct series_point *to, struct buf *line)
{
	struct buf text = {0};
	series_explain(from, to, &text);
	if (text.len)
		buf_printf(line, "; caveats differ: %s", text.data);
	buf_fini(&text);
}

static void put_text(struct catalog *c, const struct series *s, const struct series_point *from, const struct series_point *to, const struct screen *on)
{
	const struct case_parts *p = &s->of->parts;
	enum claim claim = pair_claim(from, to);
	struct buf line = {0}, name = {0};
	buf_printf(&name, "%.*s %.*s %.*s %.*s %s %.*s", (int)p->kernel.len, p->kernel.data, (int)p->mode.len, p->mode.data, (int)p->provider.len,
		   p->provider.data, (int)p->gpu.len, p->gpu.data, c->channels.items[s->slot].name, (int)p->case_key.len, p->case_key.data);
	put_median(from, &line);
	put_median(to, &line);
	if (from && to)
		buf_printf(&line, "  %+7.1f %%", (ratio_of(from, to) - 1) * 100);
	else
		buf_printf(&line, "  %9s", "");
	buf_printf(&line, "  %s  %s", name.data, claims[claim].words);
	if (is_single(from) || is_single(to))
		buf_str(&line, "; a single sample");
	if (from && to)
		put_caveats(from, to, &line);
	screen_line(on, 4, line.data);
	buf_fini(&line);
	buf_fini(&name);
}

static int put_json(struct catalog *c, const struct series *s, const struct series_point *from, const struct series_point *to, FILE *out)
{
	json_t *o = series_json(c, s);
	json_object_set_new(o, "type", json_string("pair"));
	json_object_set_new(o, "from", series_point_json(c, from));
	json_object_set_new(o, "to", series_point_json(c, to));
	json_object_set_new(o, "claim", json_string(claims[pair_claim(from, to)].name));
	json_object_set_new(o, "singleSample", json_boolean(is_single(from) || is_single(to)));
	if (from && to) {
		struct buf explained = {0};
		series_explain(from, to, &explained);
		json_object_set_new(o, "ratio", json_real(ratio_of(from, to)));
		json_object_set_new(o, "explained", json_stringn(explained.data ? explained.data : "", explained.len));
		buf_fini(&explained);
	}
	int rc = json_put_line(o, out, c->err);
	json_decref(o);
	return rc;
}

static void put_counts(const size_t *counts, const char *from, const char *to, const struct screen *on)
{
	struct buf line = {0};
	buf_printf(&line, "%s to %s: %zu slower, %zu faster, %zu overlap", from, to, counts[CLAIM_SLOWER], counts[CLAIM_FASTER], counts[CLAIM_OVERLAP]);
	if (counts[CLAIM_NO_SPREAD])
		buf_printf(&line, ", %zu without a spread", counts[CLAIM_NO_SPREAD]);
	if (counts[CLAIM_ONLY_FROM])
		buf_printf(&line, "; %zu only in %s", counts[CLAIM_ONLY_FROM], from);
	if (counts[CLAIM_ONLY_TO])
		buf_printf(&line, "; %zu only in %s", counts[CLAIM_ONLY_TO], to);
	screen_heading(on, line.data);
	buf_fini(&line);
}

int pair_print(struct catalog *c, const struct series *const *series, size_t count, const char *from, const char *to, bool json,
	       const struct screen *on)
{
	size_t counts[CLAIMS] = {0};
	for (size_t i = 0; i < count; i++) {
		const struct series_point *a = pair_find(series[i], from), *b = pair_find(series[i], to);
		if (!a && !b)
			continue;
		if (!json)
			put_text(c, series[i], a, b, on);
		else if (put_json(c, series[i], a, b, on->out))
			return -1;
		counts[pair_claim(a, b)]++;
	}
	size_t both = counts[CLAIM_SLOWER] + counts[CLAIM_FASTER] + counts[CLAIM_OVERLAP] + counts[CLAIM_NO_SPREAD];
	if (both + counts[CLAIM_ONLY_FROM] == 0 || both + counts[CLAIM_ONLY_TO] == 0)
		return err_set(c->err, ERR_NOTFOUND, "%s: no run of these series is of this release (a liger_version, a gh-pages entry, or a commit)",
			       both + counts[CLAIM_ONLY_FROM] == 0 ? from : to);
	if (!json)
		put_counts(counts, from, to, on);
	return 0;
}
