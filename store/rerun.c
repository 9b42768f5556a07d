#include "store/rerun.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/sign.h"
#include "core/text.h"
#include "core/when.h"
#include "store/entry.h"
#include "store/flag.h"
#include "store/policy.h"
#include "store/put.h"

enum { EVIDENCE_MAX = 256 << 20 };

/* ---- planning ---- */

static void random_hex(char out[33])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[16];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		abort(); /* the kernel always has 16 bytes */
	for (size_t i = 0; i < sizeof bytes; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[32] = '\0';
}

static json_t *reported_json(const struct policy *p, const struct member *m)
{
	const struct case_parts *c = &m->c->parts;
	const char *channel = memmem(c->provider.data, c->provider.len, "cutile", 6) ? "cutile" : "";
	json_t *r = json_pack("{s:I, s:f, s:f}", "median_ns", (json_int_t)m->primary, "samples_estimate",
			      policy_samples(p, c->kernel, channel, (double)m->primary), "budget_ms", policy_budget_ms(p, c->kernel, channel));
	if (!isnan(m->row.value_20) && !isnan(m->row.value_80)) {
		json_object_set_new(r, "p20_ns", json_integer(run_units(&m->row, c->metric, m->row.value_20)));
		json_object_set_new(r, "p80_ns", json_integer(run_units(&m->row, c->metric, m->row.value_80)));
	}
	return r;
}

static json_t *gpu_json(const struct policy *p, struct catalog *c, const struct case_parts *parts)
{
	static const char *const peaks[] = {"GBps", "bf16TFLOPs", "tf32TFLOPs", "fp32TFLOPs"};
	json_t *environment = catalog_load(c, &parts->environment), *out = json_object(), *peak = json_object();
	const json_t *hardware = json_object_get(json_object_get(environment, "spec"), "hardware");
	json_object_set_new(out, "product", json_string(json_text_of(hardware, "product")));
	if (json_object_get(hardware, "formFactor"))
		json_object_set(out, "formFactor", json_object_get(hardware, "formFactor"));
	for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++)
		if (policy_peak(p, parts->gpu, peaks[i]) > 0)
			json_object_set_new(peak, peaks[i], json_real(policy_peak(p, parts->gpu, peaks[i])));
	if (json_object_get(hardware, "memoryBytes"))
		json_object_set(out, "memoryBytes", json_object_get(hardware, "memoryBytes"));
	json_object_set_new(out, "peak", peak);
	json_decref(environment);
	return out;
}

/* Whose code the record ran: the commit of a drop, else the release that the row names. */
static json_t *source_json(const struct view *v)
{
	static const struct {
		const char *label, *name;
	} known[] = {{"upstream_commit", "commit"}, {"liger_version", "version"}};
	json_t *source = json_pack("{s:s}", "package", "liger-kernel");
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct slice text = view_label(v, known[i].label);
		if (text.len)
			json_set_slice(source, known[i].name, text);
	}
	return source;
}

static json_t *job_json(const struct policy *p, struct catalog *c, const struct view *v, bool upstream)
{
	const struct case_parts *parts = &v->m->c->parts;
	char run[DIGEST_TEXT + 1], nonce[33];
	json_t *job = json_object();
	digest_text(&v->m->row.digest, run);
	random_hex(nonce);
	json_object_set_new(job, "type", json_string("job"));
	json_object_set_new(job, "id", json_sprintf("%.12s-%.8s", run + 7, nonce));
	json_object_set_new(job, "nonce", json_string(nonce));
	json_object_set_new(job, "policy", json_string("verify-v1"));
	json_object_set_new(job, "runner", json_string(upstream ? "upstream" : "native"));
	if (upstream) {
		json_object_set_new(job, "source", source_json(v));
		json_object_set_new(job, "implementation", catalog_load(c, &parts->implementation));
	}
	json_object_set_new(job, "quantity", json_string("latency"));
	const char *slash = memchr(parts->benchmark.data, '/', parts->benchmark.len);
	json_object_set_new(job, "kernel", json_stringn(parts->benchmark.data, slash ? (size_t)(slash - parts->benchmark.data) : parts->benchmark.len));
	json_set_slice(job, "provider", parts->provider);
	json_set_slice(job, "pass", parts->mode);
	json_object_set_new(job, "subject", json_pack("{s:s, s:s}", "run", run, "externalId", v->external_id.data));
	json_object_set_new(job, "operation", catalog_load(c, &parts->operation));
	json_object_set_new(job, "workload", catalog_load(c, &parts->workload));
	json_object_set_new(job, "protocol", catalog_load(c, &parts->protocol));
	json_object_set_new(job, "reported", reported_json(p, v->m));
	json_object_set_new(job, "gpu", gpu_json(p, c, parts));
	json_object_set_new(job, "limits", json_pack("{s:i}", "wall_seconds", 120));
	return job;
}

/* What of a run decides whether and when it is planned, by number. */
enum want { WANTED = 1, DOUBTED = 2 };

static int mark_wanted(struct catalog *c, const struct plan_options *o, uint8_t *want)
{
	struct flags flags = {0};
	struct flag_options options = {.config = o->config, .codes = o->flag_codes ? o->flag_codes : ~(1u << FLAG_ALIAS | 1u << FLAG_RECORD_CANDIDATE)};
	for (size_t i = 0; i < o->run_count; i++)
		want[o->runs[i]] |= WANTED;
	if (!o->flagged && !o->by_doubt)
		return 0;
	int rc = flags_derive(c, &options, &flags);
	for (size_t i = 0; i < flags.count && rc == 0; i++)
		want[flags.items[i].run] |= DOUBTED | (o->flagged ? WANTED : 0);
	flags_fini(&flags);
	return rc;
}

/* Doubt comes first, then what leads its group, then the rest. */
static int turn_of(const struct view *v, uint8_t want)
{
	return want & DOUBTED ? 0 : v->m->rank == 1 ? 1 : 2;
}

/* Writes the jobs of one turn; all of them when `turn` is -1. */
static int plan_turn(struct listing *l, const struct plan_options *o, const struct policy *p, const uint8_t *want, int turn, uint64_t *count, FILE *out)
{
	struct view v = {0};
	struct err *e = l->c->err;
	int rc = 0;
	for (size_t i = 0; i < l->count && rc == 0 && (o->limit == 0 || *count < o->limit); i++) {
		rc = listing_view(l, i, &v);
		if (rc || (v.m->row.flags & RUN_WHOLE) || v.m->primary <= 0 || ((o->runs || o->flagged) && !(want[v.m->run] & WANTED)) ||
		    (turn >= 0 && turn_of(&v, want[v.m->run]) != turn))
			continue;
		json_t *job = job_json(p, l->c, &v, o->upstream);
		rc = e->code ? -1 : json_put_line(job, out, e);
		json_decref(job);
		++*count;
	}
	view_fini(&v);
	return rc;
}

int rerun_plan(struct catalog *c, const struct plan_options *o, uint64_t *count, FILE *out)
{
	struct policy policy;
	struct listing l = {0};
	struct filter all = {.latency = true};
	uint8_t *want = xcalloc(c->counts.runs + 1, sizeof *want);
	*count = 0;
	int rc = policy_load(o->config, &policy, c->err) || mark_wanted(c, o, want) || listing_load(c, o->runs ? &all : o->filter, SORT_ID, &l) ? -1 : 0;
	for (int turn = o->by_doubt ? 0 : -1; turn < (o->by_doubt ? 3 : 0) && rc == 0; turn++)
		rc = plan_turn(&l, o, &policy, want, turn, count, out);
	listing_fini(&l);
	policy_fini(&policy);
	free(want);
	return rc;
}

/* ---- bringing evidence in ---- */

/* What one evidence file publishes. */
struct batch_file {
	char *name;
	struct digest sha256;
	int64_t size_bytes;
	unsigned accepted;
	struct buf wire;
};

struct import {
	struct store *st;
	struct catalog c;        /* as the store stood when the import began; closed before anything is written */
	struct signers *signers;
	struct import_totals *totals;
	FILE *report;
	struct err *e;
	json_t *links;           /* to append once everything is published */
	const char *file;        /* the evidence file at hand */
	unsigned line;
	struct buf wire;         /* its wire stream */
	struct batch_file *batches;
	size_t batch_count;
};

static int refuse(struct import *im, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports a line that is worth nothing; importing goes on. */
static int refuse(struct import *im, const char *format, ...)
{
	va_list args;
	fprintf(im->report, "%s:%u: refused: ", im->file, im->line);
	va_start(args, format);
	vfprintf(im->report, format, args);
	va_end(args);
	fputc('\n', im->report);
	im->totals->refused++;
	return 1;
}

static bool digest_at(const json_t *o, const char *name, struct digest *out)
{
	const char *text = json_text_of(o, name);
	return digest_parse(text, strlen(text), out);
}

/* The case of a rerun: the subject's work, by our kernel or its own code, under our protocol, here. `project` is ours, NULL for its own. */
static void rerun_case(const struct case_parts *subject, const json_t *evidence, const json_t *run, const struct digest *project, struct arena *a,
		       struct buf *body, struct digest *digest)
{
	struct case_parts parts = *subject;
	struct buf gpu = {0}, prefix = {0};
	const json_t *spec = json_object_get(run, "spec");
	const char *device = json_text_of(json_object_get(evidence, "host"), "device");
	parts.gpu = slice_of(arena_strdup(a, device));
	if (project) {
		parts.provider = parts.provider_title = slice_of("kernelindex");
		parts.project = *project;
	}
	digest_at(spec, "implementationDigest", &parts.implementation);
	digest_at(spec, "protocolDigest", &parts.protocol);
	digest_at(spec, "environmentDigest", &parts.environment);
	text_kebab(parts.gpu, &gpu);
	buf_add(&prefix, parts.benchmark.data, parts.benchmark.len);
	buf_char(&prefix, '/');
	buf_add(&prefix, parts.provider.data, parts.provider.len);
	buf_printf(&prefix, "/%s/", gpu.data);
	buf_add(&prefix, parts.case_key.data, parts.case_key.len);
	parts.external_prefix = (struct slice){arena_strndup(a, prefix.data, prefix.len), prefix.len};
	record_case_body(&parts, body);
	*digest = digest_of(body->data, body->len);
	buf_fini(&gpu);
	buf_fini(&prefix);
}

static const char *kind_of(const json_t *record)
{
	return json_text_of(json_object_get(record, "body"), "kind");
}

/* Puts the records of one statement on the wire: objects as they are, then the case, then the run. */
static int put_records(struct import *im, const json_t *evidence, const struct case_parts *subject, struct digest *rerun)
{
	const json_t *run = NULL;
	struct digest project, d;
	bool own_project = false;
	struct buf body = {0}, text = {0};
	struct arena a = {0};
	size_t i;
	json_t *record;
	int rc = 0;
	json_array_foreach(json_object_get(evidence, "records"), i, record) {
		buf_clear(&text);
		if (json_canonical(json_object_get(record, "body"), &text, im->e) || !digest_at(record, "digest", &d))
			rc = -1;
		if (strcmp(kind_of(record), "SoftwareProject") == 0) {
			project = d;
			own_project = true;
		}
		if (strcmp(kind_of(record), "BenchmarkRun") == 0) {
			run = json_object_get(record, "body");
			*rerun = d;
		} else if (rc == 0) {
			json_canonical(record, &im->wire, im->e);
			buf_char(&im->wire, '\n');
		}
	}
	if (rc == 0 && run) {
		rerun_case(subject, evidence, run, own_project ? &project : NULL, &a, &body, &d);
		record_put_case(&im->wire, (struct slice){body.data, body.len}, &d);
		buf_clear(&text);
		json_canonical(run, &text, im->e);
		record_put_run(&im->wire, (struct slice){text.data, text.len}, rerun, &d, slice_of("{}"), im->line);
	}
	buf_fini(&body);
	buf_fini(&text);
	arena_fini(&a);
	return rc || !run ? -1 : 0;
}

static bool linked_before(struct import *im, const char *evidence)
{
	json_t *entry;
	size_t i;
	bool found = false;
	json_array_foreach((json_t *)entry_all(&im->c), i, entry)
		found = found || strcmp(json_text_of(entry, "evidence"), evidence) == 0;
	json_array_foreach(im->links, i, entry)
		found = found || strcmp(json_text_of(entry, "evidence"), evidence) == 0;
	return found;
}

static json_t *link_json(const json_t *evidence, const char *evidence_digest, const struct digest *rerun, const char *key)
{
	const json_t *host = json_object_get(evidence, "host"), *verdict = json_object_get(evidence, "verdict");
	char text[DIGEST_TEXT + 1], now[WHEN_TEXT + 1];
	digest_text(rerun, text);
	when_text(when_now_ms(), now);
	json_t *link = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "type", "link", "subject",
				 json_text_of(json_object_get(evidence, "subject"), "run"), "rerun", text, "evidence", evidence_digest, "quantity",
				 json_text_of(evidence, "quantity"), "runner", json_text_of(evidence, "runner"), "status", json_text_of(evidence, "status"), "policy",
				 json_text_of(evidence, "policy"), "batch", json_text_of(evidence, "batch"), "key", key, "gpu", json_text_of(host, "uuid"), "machine",
				 json_text_of(host, "machine"), "at", now);
	static const char *const copied[] = {"class", "rho", "t_dev_ns", "t_src_ns", "h_ns", "flush_ns", "floor", "samples"};
	json_object_set_new(link, "verdict", json_string(json_text_of(verdict, "code")));
	json_object_set(link, "judgement", (json_t *)verdict);
	for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
		if (json_object_get(evidence, copied[i]))
			json_object_set(link, copied[i], json_object_get(evidence, copied[i]));
	return link;
}

/* The record that evidence is about, as it stands in the catalog. */
static int find_subject(struct import *im, const json_t *evidence, struct run_row *row)
{
	const char *run = json_text_of(json_object_get(evidence, "subject"), "run");
	size_t count;
	uint32_t *runs = catalog_find(&im->c, run, &count);
	int rc = count == 1 && strlen(run) == DIGEST_TEXT ? catalog_run(&im->c, runs[0], row) : refuse(im, "its subject %s is not in the store", run);
	free(runs);
	return rc;
}

static int take_evidence(struct import *im, const json_t *evidence, const char *key)
{
	struct buf text = {0};
	struct run_row row;
	struct digest rerun;
	char digest[DIGEST_TEXT + 1];
	if (json_canonical(evidence, &text, im->e))
		return -1;
	struct digest d = digest_of(text.data, text.len);
	buf_fini(&text);
	digest_text(&d, digest);
	if (linked_before(im, digest)) {
		im->totals->known++;
		return 0;
	}
	if (strcmp(json_text_of(evidence, "type"), "evidence") != 0 || strcmp(json_text_of(evidence, "policy"), "verify-v1") != 0)
		return refuse(im, "not evidence of policy verify-v1");
	if (json_array_size(json_object_get(evidence, "records")) == 0)
		return refuse(im, "nothing was timed, so there is no run to publish");
	int rc = find_subject(im, evidence, &row);
	if (rc)
		return rc;
	const struct catalog_case *of = catalog_case(&im->c, row.case_id);
	if (!of || put_records(im, evidence, &of->parts, &rerun))
		return im->e->code ? -1 : refuse(im, "its records hold no run");
	json_array_append_new(im->links, link_json(evidence, digest, &rerun, key));
	im->totals->accepted++;
	return 0;
}

static int take_line(struct import *im, struct slice line)
{
	struct sign_check check;
	struct buf payload = {0};
	struct err err = {0};
	im->totals->statements++;
	if (sign_open(line, im->signers, im->file, im->line, &check, &payload, &err)) {
		buf_fini(&payload);
		return refuse(im, "%s", err.text);
	}
	int rc;
	json_t *statement = json_load_text(payload.data, payload.len, im->file, &err);
	json_t *evidence = json_object_get(json_object_get(statement, "predicate"), "evidence");
	if (!sign_accepted(&check))
		rc = refuse(im, "%s", check.what[0] ? check.what : "its signatures are not those of approved keys");
	else if (!json_is_object(evidence))
		rc = refuse(im, "no evidence in the statement");
	else
		rc = take_evidence(im, evidence, check.keyid[0]);
	json_decref(statement);
	buf_fini(&payload);
	return rc < 0 ? -1 : 0;
}

/* Publishes the wire stream of one file through the one writer there is. */
static int publish(struct import *im, const struct batch_file *b)
{
	struct buf stream = {0};
	struct put_options options = {0};
	struct put_totals totals = {0};
	struct snapshot_parts s = {.channel = slice_of("verify"), .entry = slice_of(b->name), .file = slice_of(b->name), .sha256 = b->sha256,
				   .size_bytes = b->size_bytes};
	char report[64];
	int fd = memfd_create("evidence", MFD_CLOEXEC);
	record_put_snapshot(&stream, &s);
	buf_add(&stream, b->wire.data, b->wire.len);
	snprintf(report, sizeof report, "{\"rows\":%u}", b->accepted);
	record_put_report(&stream, slice_of(report));
	int rc = fd < 0 ? err_errno(im->e, b->name, "cannot buffer") : file_write_all(fd, stream.data, stream.len, b->name, im->e);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = err_errno(im->e, b->name, "cannot rewind");
	if (rc == 0)
		rc = put_stream(im->st, fd, &options, &totals, im->e);
	if (fd >= 0)
		close(fd);
	im->totals->published += (unsigned)totals.runs_new;
	buf_fini(&stream);
	return rc;
}

static int keep(struct import *im, const char *from, const char *folder, const char *name)
{
	struct buf bytes = {0}, to = {0};
	buf_printf(&to, "%s/%s", im->st->directory, folder);
	int rc = file_make_dirs(to.data, im->e);
	buf_printf(&to, "/%s", name);
	bool there = access(to.data, F_OK) == 0;
	if (rc == 0 && !there && errno != ENOENT)
		rc = err_errno(im->e, to.data, "cannot look at");
	if (rc == 0 && !there) {
		rc = file_read(from, EVIDENCE_MAX, &bytes, im->e);
		if (rc == 0)
			rc = file_write(to.data, bytes.data, bytes.len, 0444, im->e);
		im->totals->artifacts += rc == 0;
	}
	buf_fini(&bytes);
	buf_fini(&to);
	return rc;
}

/* What an import that was killed left half written. */
static void sweep(const struct store *st)
{
	static const char *const folders[] = {"evidence", "samples"};
	struct buf path = {0};
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s", st->directory, folders[i]);
		file_sweep_directory(path.data);
	}
	buf_fini(&path);
}

static int take_file(struct import *im, const char *path)
{
	struct buf bytes = {0};
	unsigned before = im->totals->accepted;
	int rc = file_read(path, EVIDENCE_MAX, &bytes, im->e);
	buf_clear(&im->wire);
	im->line = 0;
	for (size_t at = 0; at < bytes.len && rc == 0;) {
		const char *start = bytes.data + at, *end = memchr(start, '\n', bytes.len - at);
		size_t len = end ? (size_t)(end - start) : bytes.len - at;
		im->line++;
		if (len)
			rc = take_line(im, (struct slice){start, len});
		at += len + 1;
	}
	if (rc == 0 && im->totals->accepted > before) {
		im->batches = xrealloc(im->batches, (im->batch_count + 1) * sizeof *im->batches);
		im->batches[im->batch_count++] = (struct batch_file){xstrdup(im->file), digest_of(bytes.data, bytes.len), (int64_t)bytes.len,
								      im->totals->accepted - before, im->wire};
		im->wire = (struct buf){0};
		char name[DIGEST_HEX + sizeof ".jsonl"];
		digest_hex(&im->batches[im->batch_count - 1].sha256, name);
		memcpy(name + DIGEST_HEX, ".jsonl", sizeof ".jsonl");
		rc = keep(im, path, "evidence", name);
	}
	buf_fini(&bytes);
	return rc;
}

static int is_evidence(const struct dirent *d)
{
	size_t len = strlen(d->d_name);
	return strncmp(d->d_name, "evidence-", 9) == 0 && len > 6 && strcmp(d->d_name + len - 6, ".jsonl") == 0;
}

static int is_sample(const struct dirent *d)
{
	struct digest ignored;
	return strlen(d->d_name) == DIGEST_HEX + 9 && digest_parse_hex(d->d_name, DIGEST_HEX, &ignored) && strcmp(d->d_name + DIGEST_HEX, ".json.zst") == 0;
}

/* Calls `take` for each chosen file of a directory, by name. */
static int each_file(struct import *im, const char *directory, int (*chosen)(const struct dirent *), int (*take)(struct import *im, const char *path), bool required)
{
	struct dirent **names;
	int count = scandir(directory, &names, chosen, alphasort), rc = 0;
	if (count < 0)
		return required || errno != ENOENT ? err_errno(im->e, directory, "cannot read directory") : 0;
	for (int i = 0; i < count; i++) {
		struct buf path = {0};
		buf_printf(&path, "%s/%s", directory, names[i]->d_name);
		im->file = names[i]->d_name;
		if (rc == 0)
			rc = take(im, path.data);
		buf_fini(&path);
		free(names[i]);
	}
	free(names);
	if (rc == 0 && required && count == 0)
		rc = err_at(im->e, ERR_NOTFOUND, directory, 0, 0, "no evidence-*.jsonl in it");
	return rc;
}

static int take_sample(struct import *im, const char *path)
{
	return keep(im, path, "samples", im->file);
}

/* Samples first, then the reruns, then the links: whatever an interrupted import leaves, the same import completes. */
static int write_all(struct import *im, const char *samples)
{
	int rc = im->batch_count ? each_file(im, samples, is_sample, take_sample, false) : 0;
	for (size_t i = 0; i < im->batch_count && rc == 0; i++)
		rc = publish(im, &im->batches[i]);
	return rc == 0 && im->batch_count ? entry_append_all(im->st, im->links, im->e) : rc;
}

static void free_batches(struct import *im)
{
	for (size_t i = 0; i < im->batch_count; i++) {
		free(im->batches[i].name);
		buf_fini(&im->batches[i].wire);
	}
	free(im->batches);
}

int rerun_import(struct store *st, const char *config, const char *directory, struct import_totals *totals, FILE *report, struct err *e)
{
	struct import im = {.st = st, .totals = totals, .report = report, .e = e, .links = json_array()};
	struct buf signers = {0}, samples = {0};
	buf_printf(&signers, "%s/signers.json", config);
	buf_printf(&samples, "%s/samples", directory);
	im.signers = signers_load(signers.data, e);
	int rc = im.signers ? catalog_attach(&im.c, st, e) : -1;
	sweep(st);
	if (rc == 0)
		rc = each_file(&im, directory, is_evidence, take_file, true);
	if (im.signers)
		catalog_close(&im.c);
	if (rc == 0)
		rc = write_all(&im, samples.data);
	free_batches(&im);
	if (rc == 0 && totals->refused)
		rc = err_at(e, ERR_DATA, directory, 0, 0, "%u of %u statements refused", totals->refused, totals->statements);
	signers_free(im.signers);
	json_decref(im.links);
	buf_fini(&im.wire);
	buf_fini(&signers);
	buf_fini(&samples);
	return rc;
}
