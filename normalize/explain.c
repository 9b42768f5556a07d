#include "normalize/explain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/locate.h"
#include "normalize/build.h"
#include "normalize/csv.h"
#include "normalize/reject.h"

struct explainer {
	const struct curate *curate;
	struct buf config_text; /* bindings.json, for line numbers */
	FILE *out;
};

static void print_slice(FILE *out, struct slice s)
{
	fwrite(s.data, 1, s.len, out);
}

/* `bindings.json:213 rms_norm:H|N(M,dtype,eps)` */
static void print_rule(const struct explainer *x, const struct rule *r)
{
	unsigned line, column;
	locate(x->config_text.data, x->config_text.len, r->pointer, &line, &column);
	fprintf(x->out, "bindings.json:%u %s", line, r->id);
}

static void print_tensors(FILE *out, const char *title, const struct binding *b, const struct tensor *tensors, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct tensor *t = &tensors[i];
		fprintf(out, "  %-10s %s [", i ? "" : title, t->name);
		for (size_t j = 0; j < t->rank; j++)
			fprintf(out, "%s%lld", j ? ", " : "", (long long)build_dim(b, &t->dims[j]));
		fprintf(out, "] %s\n", strcmp(t->dtype, "cfg") == 0 ? b->dtype : t->dtype);
	}
}

static void print_binding(const struct explainer *x, const struct binding *b)
{
	const struct rule *r = b->rule;
	struct buf label = {0};
	struct object workload;
	struct arena a = {0};
	char digest[DIGEST_TEXT + 1];
	build_workload_label(b, &label);
	build_workload(b, &a, &workload);
	digest_text(&workload.digest, digest);
	fprintf(x->out, "  rule       ");
	print_rule(x, r);
	fprintf(x->out, " (%s%s)\n  operation  %s, %s\n  axes       %s\n", r->prior ? "prior" : "new", r->quirk ? ", quirk" : "",
		r->operation->slug, r->operation->title, label.data);
	for (size_t i = 0; i < r->operation->derived_count; i++)
		fprintf(x->out, "  %-10s %s = %lld\n", i ? "" : "derived", r->axis_names[r->axis_count + i],
			(long long)b->axes[r->axis_count + i]);
	for (size_t i = 0; i < r->scalar_count; i++) {
		char number[JSON_NUMBER_MAX];
		json_number(b->scalars[i], number);
		fprintf(x->out, "  %-10s %s = %s\n", i ? "" : "scalars", r->scalars[i].name, number);
	}
	print_tensors(x->out, "inputs", b, r->operation->inputs, r->operation->input_count);
	print_tensors(x->out, "outputs", b, r->operation->outputs, r->operation->output_count);
	for (size_t i = 0; i < r->caveats.count; i++)
		fprintf(x->out, "  %-10s %s\n", i ? "" : "caveats", r->caveats.items[i]);
	fprintf(x->out, "  workload   %s\n", digest);
	buf_fini(&label);
	arena_fini(&a);
}

static void print_names(const struct explainer *x, const struct slice *f, const size_t *place)
{
	const struct {
		const char *what;
		enum column column;
		bool known;
	} names[] = {
		{"provider", COLUMN_PROVIDER, curate_provider(x->curate, f[place[COLUMN_PROVIDER]]) != NULL},
		{"GPU", COLUMN_GPU, curate_gpu(x->curate, f[place[COLUMN_GPU]]) != NULL},
		{"mode", COLUMN_MODE, curate_mode(x->curate, f[place[COLUMN_MODE]]) != NULL},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct buf quoted = {0};
		report_quote(f[place[names[i].column]], &quoted);
		if (!names[i].known)
			fprintf(x->out, "  skipped    the %s is unknown: %s\n", names[i].what, quoted.data);
		buf_fini(&quoted);
	}
}

/* Every rule of the kernel in order: the first that fits, and for all others the reason or that they come too late. */
static void print_rules(const struct explainer *x, const struct slice *f, const size_t *place, const json_t *config)
{
	bool bound = false;
	for (size_t i = 0; i < x->curate->rule_count; i++) {
		const struct rule *r = &x->curate->rules[i];
		struct binding b;
		struct buf why = {0};
		if (!slice_eq(f[place[COLUMN_KERNEL]], r->kernel))
			continue;
		enum bind_result got = bind_rule(x->curate, r, f[place[COLUMN_X_NAME]], f[place[COLUMN_X_VALUE]], config, &b, &why);
		if (got == BIND_OK && !bound) {
			print_binding(x, &b);
			bound = true;
		} else {
			fprintf(x->out, "  not        ");
			print_rule(x, r);
			fprintf(x->out, ": %s\n", got == BIND_OK ? "would fit, but an earlier rule does" : why.data);
		}
		buf_fini(&why);
	}
	if (!bound)
		fprintf(x->out, "  unbound    no rule of this kernel fits\n");
}

static void explain_row(const struct explainer *x, const struct csv_record *row, const struct csv_header *h)
{
	const struct slice *f = row->fields;
	static const enum column shown[] = {COLUMN_KERNEL, COLUMN_PROVIDER, COLUMN_MODE, COLUMN_METRIC, COLUMN_X_NAME, COLUMN_X_VALUE,
					    COLUMN_CONFIG, COLUMN_GPU};
	struct err e = {0};
	if (row->count != h->width) {
		fprintf(x->out, "line %u: rejected, %zu fields where the header has %zu\n", row->line, row->count, h->width);
		return;
	}
	fprintf(x->out, "line %u:", row->line);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		fputc(' ', x->out);
		print_slice(x->out, f[h->place[shown[i]]]);
	}
	fputc('\n', x->out);
	if (!curate_kernel(x->curate, f[h->place[COLUMN_KERNEL]])) {
		fprintf(x->out, "  skipped    no rule knows this kernel\n");
		return;
	}
	json_t *config = bind_config(f[h->place[COLUMN_CONFIG]], &e);
	if (!config)
		fprintf(x->out, "  rejected   extra_benchmark_config_str: %s\n", e.text);
	else
		print_rules(x, f, h->place, config);
	print_names(x, f, h->place);
	json_decref(config);
}

/* A temporary file that holds one row, so that it is read as any table is. */
static int row_file(const char *row, struct err *e)
{
	int fd = memfd_create("row", MFD_CLOEXEC);
	if (fd < 0 || file_write_all(fd, row, strlen(row), "temporary file", e) || lseek(fd, 0, SEEK_SET) < 0) {
		err_errno(e, "temporary file", "cannot write");
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	return fd;
}

int explain_rows(const struct curate *c, int fd, const char *name, const char *row, FILE *out, struct err *e)
{
	struct explainer x = {.curate = c, .out = out};
	struct csv_header header = {0};
	struct csv_record record;
	int got = -1, own = row ? row_file(row, e) : fd;
	struct csv_reader *r = csv_reader_new(own, name);
	if (own < 0 || file_read(c->bindings_path, 8 << 20, &x.config_text, e))
		goto out;
	if (row)
		csv_standard_header(&header);
	else if (csv_read_header(r, name, &header, e))
		goto out;
	while ((got = csv_next(r, &record, e)) > 0)
		explain_row(&x, &record, &header);
out:
	csv_reader_free(r);
	buf_fini(&header.extra);
	buf_fini(&x.config_text);
	if (row && own >= 0)
		close(own);
	return got;
}

void explain_config(const struct curate *c, FILE *out)
{
	fprintf(out,
		"config is sound: %zu rules and %zu script-only rules, %zu operations, %zu models, %zu providers, %zu GPUs, %zu caveats, "
		"%zu overrides, %zu gh-pages entries\n",
		c->rule_count - c->script_only_count, c->script_only_count, c->operation_count, c->model_count, c->provider_count,
		c->gpu_count, c->caveat_count, c->override_count, c->entry_count);
}
