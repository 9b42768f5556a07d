#include "store/show_evidence.h"

#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/when.h"
#include "store/correction.h"
#include "store/entry.h"
#include "store/lineage.h"
#include "store/link.h"
#include "store/site.h"

void show_artifacts(const struct whole *w, const json_t *manifest, const struct screen *on)
{
	const char *digest = json_text_of(json_object_get(json_object_get(json_object_get(manifest, "spec"), "timing"), "rawSamples"), "digest");
	struct buf path = {0};
	struct digest d;
	struct stat st;
	screen_heading(on, "Artifacts");
	if (!digest_parse(digest, strlen(digest), &d)) {
		screen_line(on, 2, "  No artifacts published with this run.");
		return;
	}
	buf_printf(&path, "%s/samples/%s.json.zst", w->c->st.directory, digest + strlen("sha256:"));
	screen_field(on, "raw samples", "%s", digest);
	if (stat(path.data, &st) == 0)
		screen_field(on, "", "%lld bytes, compressed with zstd", (long long)st.st_size);
	else
		screen_field(on, "", "not kept here");
	buf_fini(&path);
}

/* ---- reruns ---- */

static double number_at(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

static void put_times(const json_t *link, const struct screen *on)
{
	const json_t *device = json_object_get(link, "t_dev_ns"), *source = json_object_get(link, "t_src_ns"), *floor = json_object_get(link, "floor");
	if (!device)
		return;
	screen_field(on, "", "device time %.0f ns (p20 %.0f, p80 %.0f, %lld samples), source protocol %.0f ns, host %.0f ns, rho %.2f", number_at(device, "median"),
		     number_at(device, "p20"), number_at(device, "p80"), json_whole_of(device, "samples"), number_at(source, "median"), number_at(link, "h_ns"),
		     number_at(link, "rho"));
	if (number_at(floor, "bytes") > 0)
		screen_field(on, "", "%.0f bytes, %.0f flops at least; %.0f GB/s achieved, %.0f %% of measured copy bandwidth", number_at(floor, "bytes"),
			     number_at(floor, "flops"), number_at(floor, "gbps"), 100 * number_at(floor, "copy_share"));
}

static void put_link(const json_t *link, bool subject, const struct screen *on)
{
	static const char *const names[][2] = {{"at", "imported"}, {"batch", "batch"}, {"key", "signing key"}, {"evidence", "evidence"}, {"gpu", "GPU"}, {"machine", "machine"}};
	screen_field(on, subject ? "rerun" : "rerun of", "%s", json_text_of(link, subject ? "rerun" : "subject"));
	screen_field(on, "", "%s runner, %s, %s class, %s by %s", json_text_of(link, "runner"), json_text_of(link, "status"), json_text_of(link, "class"),
		     json_text_of(link, "verdict"), json_text_of(link, "policy"));
	put_times(link, on);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (*json_text_of(link, names[i][0]))
			screen_field(on, "", "%s %s", names[i][1], json_text_of(link, names[i][0]));
}

static void put_correction(const json_t *entry, const struct screen *on)
{
	const char *type = json_text_of(entry, "type"), *code = json_text_of(entry, "code"), *of = json_text_of(entry, "entry");
	screen_field(on, strcmp(type, "retract") == 0 ? "retracted" : type, "%s%s%s%s", code, *code ? ": " : "",
		     json_text_of(entry, *json_text_of(entry, "text") ? "text" : "reason"), json_is_true(json_object_get(entry, "undone")) ? " (undone)" : "");
	if (*of)
		screen_field(on, "", "of entry %s", of);
	screen_field(on, "", "entry %s", json_text_of(entry, "id"));
	screen_field(on, "", "signed at %s by key %s", json_text_of(entry, "at"), json_text_of(entry, "key"));
}

/* A flag that somebody set: a note too. */
static bool put_flag(const struct whole *w, const char *run, const struct screen *on)
{
	const json_t *flag = entry_last(w->c, "flag", run);
	if (strcmp(json_text_of(flag, "type"), "flag") != 0)
		return false;
	screen_field(on, "flagged", "%s (%.10s)", json_text_of(flag, "reason"), json_text_of(flag, "at"));
	return true;
}

void show_reruns(const struct whole *w, const struct screen *on)
{
	char run[DIGEST_TEXT + 1];
	size_t i;
	json_t *entry, *links = link_of(w->c, &w->v.m->row.digest), *corrections = correction_of(w->c, &w->v.m->row.digest);
	digest_text(&w->v.m->row.digest, run);
	const char *verdict = link_verdict(links, run);
	screen_heading(on, "Replications and notes");
	if (json_array_size(links) == 0)
		screen_line(on, 2, "  Not rerun.");
	if (verdict)
		screen_field(on, "verdict", "%s", verdict);
	json_array_foreach(links, i, entry)
		put_link(entry, strcmp(json_text_of(entry, "subject"), run) == 0, on);
	json_array_foreach(corrections, i, entry)
		put_correction(entry, on);
	bool noted = put_flag(w, run, on) || json_array_size(corrections) > 0;
	screen_printf(on, 2, "  %sNotes by people never change the evidence level.", noted ? "" : "No notes. ");
	json_decref(links);
	json_decref(corrections);
}

/* ---- history ---- */

static void put_other(const char *name, const struct member *m, const struct screen *on)
{
	char digest[DIGEST_TEXT + 1];
	struct buf value = {0};
	if (!m)
		return;
	digest_text(&m->row.digest, digest);
	if (m->primary >= 0)
		view_quantity(m->c->parts.metric, m->primary, &value);
	screen_field(on, name, "%s%s%s", digest, value.data ? ", " : "", value.data ? value.data : "");
	buf_fini(&value);
}

static void put_publication(const json_t *p, const struct screen *on)
{
	const char *entry = json_text_of(p, "entry"), *commit = json_text_of(p, "commit"), *url = json_text_of(json_object_get(p, "provenance"), "finalUrl");
	screen_field(on, "published in", "%s %s%s%s, here at %s", json_text_of(p, "channel"), entry, *entry && *commit ? " " : "", *entry || *commit ? commit : "(no commit)",
		     json_text_of(p, "publishedAt"));
	screen_field(on, "", "snapshot %s", json_text_of(p, "sha256"));
	screen_field(on, "", "%s", *url ? url : json_text_of(p, "file"));
}

static void put_labels(const struct whole *w, const struct screen *on)
{
	struct err ignored = {0};
	const char *name;
	json_t *value, *labels = json_load_text(w->v.labels.data, w->v.labels.len, "labels", &ignored);
	json_object_foreach(labels, name, value)
		screen_field(on, name, "%s", json_is_string(value) ? json_string_value(value) : "");
	json_decref(labels);
}

int show_history(struct whole *w, const struct screen *on)
{
	struct lineage lineage;
	const struct member *m = w->v.m;
	int rc = lineage_load(w->c, &lineage);
	if (rc == 0) {
		screen_heading(on, "History");
		screen_field(on, "state", "%s", lineage_state(&lineage, m));
		put_other("superseded by", m->superseded ? cohort_member(w->v.k, m->successor) : NULL, on);
		put_other("supersedes", lineage_predecessor(w->v.k, m), on);
		put_labels(w, on);
	}
	for (size_t i = 0; i < w->carrier_count && rc == 0; i++) {
		const json_t *p = whole_publication(w->cache, w->carriers[i]);
		rc = p ? 0 : -1;
		if (p)
			put_publication(p, on);
	}
	lineage_fini(&lineage);
	return rc;
}

/* ---- citation ---- */

static void put_source(const json_t *site, const struct whole *w, const struct screen *on)
{
	const json_t *first = w->carrier_count ? whole_publication(w->cache, w->carriers[0]) : NULL;
	screen_field(on, "published", "%s", json_text_of(first, "publishedAt"));
	if (!(w->v.m->row.flags & RUN_WHOLE))
		screen_field(on, "source", "%s, %s, licence %s, %s", json_text_of(site, "source"), json_text_of(site, "sourceUrl"), json_text_of(site, "licence"),
			     json_text_of(site, "holder"));
}

/* Where a fault is reported: the template up to what a page fills in; one that names no addressee says nothing. */
static void put_report_address(const json_t *site, const struct screen *on)
{
	const char *address = json_text_of(site, "report");
	size_t len = strcspn(address, "?");
	if (len && strncmp(address, "mailto:?", 8) != 0)
		screen_field(on, "report a fault", "%.*s", (int)len, address);
}

int show_citation(struct whole *w, const char *config, const struct screen *on)
{
	const struct case_parts *c = w->parts;
	char digest[DIGEST_TEXT + 1], now[WHEN_TEXT + 1], name[SITE_NAME_MAX];
	struct err e = {0};
	struct buf where = {0};
	json_t *site = config ? site_config(config, &e) : NULL;
	digest_text(&w->v.m->row.digest, digest);
	site_run_name(&w->v.m->row.digest, name);
	when_text(when_now_ms(), now);
	if (site)
		buf_printf(&where, " %s, %s%s%s.", json_text_of(site, "title"), json_text_of(site, "base"), *json_text_of(site, "base") ? "/" : "", name);
	screen_heading(on, "Canonical manifest");
	screen_printf(on, 4, "  ki show --json %.12s", digest + strlen("sha256:"));
	screen_heading(on, "Cite this record");
	screen_printf(on, 2, "  %.*s \xc2\xb7 %.*s, %.*s, %.*s. Run %s.%s Accessed %.10s.", (int)c->operation_title.len, c->operation_title.data,
		      (int)c->provider_title.len, c->provider_title.data, (int)c->gpu.len, c->gpu.data, (int)c->workload_label.len, c->workload_label.data, digest,
		      where.data ? where.data : "", now);
	if (site)
		put_source(site, w, on);
	else
		screen_printf(on, 2, "  Source and licence are unknown here: %s", e.code ? e.text : "no config");
	put_report_address(site, on);
	json_decref(site);
	buf_fini(&where);
	return w->c->err->code ? -1 : 0;
}
