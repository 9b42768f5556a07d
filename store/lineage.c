#include "store/lineage.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/correction.h"
#include "store/view.h"

/* When upstream published it: the commit's time where it is known, else our own. */
static const char *upstream_time(const json_t *p)
{
	const char *at = json_text_of(json_object_get(p, "provenance"), "committedAt");
	return *at ? at : json_text_of(p, "publishedAt");
}

static void note_first(uint32_t *first, const struct ranges *carried, uint32_t id, uint32_t runs)
{
	for (size_t i = 0; i < carried->count; i++)
		for (uint32_t n = 0; n < carried->items[i].count; n++) {
			uint32_t run = carried->items[i].first + n;
			if (run < runs && first[run] == LINEAGE_NEVER)
				first[run] = id;
		}
}

static uint32_t *never(uint32_t runs)
{
	uint32_t *out = xmalloc(((size_t)runs + 1) * sizeof *out);
	memset(out, 0xff, ((size_t)runs + 1) * sizeof *out);
	return out;
}

int lineage_load(struct catalog *c, struct lineage *out)
{
	char newest[CHANNEL_ROOM][32] = {{0}};
	*out = (struct lineage){.c = c, .first = never(c->counts.runs)};
	for (size_t slot = 0; slot < c->channels.count; slot++)
		if (!c->channels.items[slot].entries)
			out->first_in[slot] = never(c->counts.runs);
	for (uint32_t id = 0; id < c->counts.publications && !c->err->code; id++) {
		struct ranges carried = {0};
		json_t *p = catalog_publication(c, id);
		const char *channel = json_text_of(p, "channel"), *at = upstream_time(p);
		int slot = channels_find(&c->channels, (struct slice){channel, strlen(channel)});
		if (p && catalog_carried(c, id, &carried) == 0) {
			note_first(out->first, &carried, id, c->counts.runs);
			if (slot >= 0 && out->first_in[slot])
				note_first(out->first_in[slot], &carried, id, c->counts.runs);
			if (slot >= 0 && strcmp(at, newest[slot]) >= 0) {
				snprintf(newest[slot], sizeof newest[slot], "%s", at);
				ranges_fini(&out->newest[slot]);
				out->newest[slot] = carried;
				carried = (struct ranges){0};
			}
		}
		ranges_fini(&carried);
		json_decref(p);
	}
	return c->err->code ? -1 : 0;
}

void lineage_fini(struct lineage *l)
{
	free(l->first);
	for (size_t slot = 0; slot < CHANNEL_ROOM; slot++) {
		free(l->first_in[slot]);
		ranges_fini(&l->newest[slot]);
	}
}

bool lineage_withdrawn(const struct lineage *l, const struct member *m)
{
	if (m->superseded)
		return false;
	for (size_t slot = 0; slot < l->c->channels.count; slot++)
		if (l->first_in[slot] && l->first_in[slot][m->run] != LINEAGE_NEVER && !ranges_has(&l->newest[slot], m->run))
			return true;
	return false;
}

/* ---- one run's history ---- */

const char *lineage_state(const struct lineage *l, const struct member *m)
{
	return m->unranked == UNRANKED_RETRACTED ? "retracted" : m->superseded ? "superseded" : lineage_withdrawn(l, m) ? "withdrawn" : "current";
}

const struct member *lineage_predecessor(const struct cohort *k, const struct member *m)
{
	const struct member *best = NULL;
	for (size_t i = 0; i < k->count; i++) {
		const struct member *other = &k->members[i];
		if (other->superseded && other->successor == m->run && (!best || other->row.observed_ms > best->row.observed_ms))
			best = other;
	}
	return best;
}

json_t *lineage_run_json(struct catalog *c, const struct member *m)
{
	char digest[DIGEST_TEXT + 1];
	struct buf id = {0};
	if (!m || catalog_external_id(c, &m->row, &id)) {
		buf_fini(&id);
		return json_null();
	}
	digest_text(&m->row.digest, digest);
	json_t *out = json_pack("{s:s, s:s, s:I}", "run", digest, "externalId", id.data, "value", (json_int_t)m->primary);
	buf_fini(&id);
	return out;
}

static json_t *history_json(struct catalog *c, const struct cohort *k, const struct member *m, const struct lineage *l)
{
	json_t *publications = json_array();
	size_t count;
	uint32_t *carriers = catalog_carriers(c, m->run, &count);
	for (size_t i = 0; i < count; i++) {
		json_t *p = catalog_publication(c, carriers[i]);
		json_array_append_new(publications, json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "id", (int)carriers[i], "channel", json_text_of(p, "channel"),
							      "identity", catalog_identity(p), "publishedAt", json_text_of(p, "publishedAt"),
							      "upstreamAt", upstream_time(p), "sha256", json_text_of(p, "sha256")));
		json_decref(p);
	}
	free(carriers);
	const struct member *successor = m->superseded ? cohort_member(k, m->successor) : NULL;
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "run", lineage_run_json(c, m), "state", lineage_state(l, m), "publications", publications, "predecessor",
			 lineage_run_json(c, lineage_predecessor(k, m)), "successor", lineage_run_json(c, successor), "corrections", correction_of(c, &m->row.digest));
}

static void print_run_line(const char *name, const json_t *run, const char *unit, FILE *out)
{
	if (json_is_object(run))
		fprintf(out, "%-12s %.19s  %lld %s  %s\n", name, json_text_of(run, "run"), json_whole_of(run, "value"), unit,
			json_text_of(run, "externalId"));
	else
		fprintf(out, "%-12s none\n", name);
}

static void print_history(const json_t *h, const char *unit, FILE *out)
{
	size_t i;
	json_t *p;
	print_run_line("run", json_object_get(h, "run"), unit, out);
	fprintf(out, "%-12s %s\n", "state", json_text_of(h, "state"));
	print_run_line("predecessor", json_object_get(h, "predecessor"), unit, out);
	print_run_line("successor", json_object_get(h, "successor"), unit, out);
	fprintf(out, "%-12s %zu\n", "publications", json_array_size(json_object_get(h, "publications")));
	json_array_foreach(json_object_get(h, "publications"), i, p)
		fprintf(out, "  %-10s %-14.12s upstream %.10s, published %.10s, snapshot %.19s\n", json_text_of(p, "channel"), json_text_of(p, "identity"),
			json_text_of(p, "upstreamAt"), json_text_of(p, "publishedAt"), json_text_of(p, "sha256"));
	json_array_foreach(json_object_get(h, "corrections"), i, p)
		fprintf(out, "%-12s %.10s, entry %.15s%s\n", json_text_of(p, "type"), json_text_of(p, "at"), json_text_of(p, "id") + strlen("sha256:"),
			json_is_true(json_object_get(p, "undone")) ? ", since undone" : "");
}

int lineage_history(struct catalog *c, uint32_t run, bool json, FILE *out)
{
	struct lineage l;
	struct cohort k = {0};
	struct run_row row;
	const struct catalog_case *of = NULL;
	int rc = lineage_load(c, &l) || catalog_run(c, run, &row) || !(of = catalog_case(c, row.case_id)) || cohort_load(c, &of->cohort, &k) ? -1 : 0;
	const struct member *m = rc == 0 ? cohort_member(&k, run) : NULL;
	json_t *h = m ? history_json(c, &k, m, &l) : NULL;
	if (h && json)
		rc = json_put_line(h, out, c->err);
	else if (h)
		print_history(h, of->parts.metric == METRIC_LATENCY ? "ns" : "bytes", out);
	json_decref(h);
	cohort_fini(&k);
	lineage_fini(&l);
	return c->err->code ? -1 : rc;
}
