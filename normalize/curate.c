#include "normalize/curate.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "normalize/document.h"
#include "normalize/rules.h"

bool list_has(const struct list *l, struct slice item)
{
	for (size_t i = 0; i < l->count; i++)
		if (slice_eq(item, l->items[i]))
			return true;
	return false;
}

static struct slice text_slice(const char *s)
{
	return (struct slice){s, strlen(s)};
}

/* Every table of config/ is an object of items under one key; `load` takes one of them. */
typedef int (*load_item)(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out);

static int load_table(struct curate *c, const struct document *d, const char *name, load_item load, size_t size, void *out,
		      size_t *count)
{
	const json_t *table = document_object(d, NULL, d->root, name, true);
	struct place here = {.key = name};
	const char *key;
	json_t *value;
	if (!table)
		return -1;
	char *items = arena_alloc(&c->arena, json_object_size(table) * size);
	memcpy(out, &(void *){items}, sizeof(void *));
	json_object_foreach((json_t *)table, key, value) {
		struct place at = {.up = &here, .key = arena_strdup(&c->arena, key)};
		if (load(c, d, &at, value, items + *count * size))
			return -1;
		++*count;
	}
	return 0;
}

static int load_text_pair(const struct document *d, const struct place *at, const json_t *item, const char **from, const char **to)
{
	*from = at->key;
	if (!json_is_string(item))
		return document_complain(d, at, "a string expected");
	*to = arena_strdup(d->arena, json_string_value(item));
	return 0;
}

static int load_dtype(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct dtype *dtype = out;
	(void)c;
	return load_text_pair(d, at, item, &dtype->upstream, &dtype->token);
}

static int load_entry(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct entry *entry = out;
	(void)c;
	if (load_text_pair(d, at, item, &entry->name, &entry->commit))
		return -1;
	if (strlen(entry->commit) != 40 || strspn(entry->commit, "0123456789abcdef") != 40)
		return document_complain(d, at, "40 hex digits expected");
	return 0;
}

static int load_mode(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct mode *mode = out;
	(void)c;
	if (document_keys(d, at, item, "status pass timed"))
		return -1;
	mode->name = at->key;
	mode->prior = document_prior(d, at, item);
	mode->pass = document_text(d, at, item, "pass", true);
	document_text(d, at, item, "timed", true);
	return document_failed(d) ? -1 : 0;
}

static void note_field(struct curate *c, const char *name)
{
	if (!list_has(&c->model_fields, text_slice(name)) && c->model_fields.count < 64)
		c->model_fields.items[c->model_fields.count++] = name;
}

static int load_model(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct model *model = out;
	const char *key;
	json_t *value;
	if (!json_is_object(item))
		return document_complain(d, at, "an object expected");
	model->name = at->key;
	model->dtype = document_text(d, at, item, "dtype", true);
	model->names = arena_alloc(&c->arena, json_object_size(item) * sizeof *model->names);
	model->values = arena_alloc(&c->arena, json_object_size(item) * sizeof *model->values);
	json_object_foreach((json_t *)item, key, value) {
		if (!json_whole(value, &model->values[model->count]))
			continue;
		model->names[model->count] = arena_printf(&c->arena, "model.%s", key);
		note_field(c, model->names[model->count++]);
	}
	for (size_t i = 0; i < c->dtype_count; i++)
		if (strcmp(c->dtypes[i].token, model->dtype) == 0)
			return document_failed(d) ? -1 : 0;
	return document_complain(d, &(struct place){.up = at, .key = "dtype"}, "unknown dtype");
}

static int load_window(const struct document *d, const struct place *at, const json_t *item, struct window *w)
{
	if (document_keys(d, at, item, "sources kernels modes providers memory"))
		return -1;
	w->sources = document_list(d, at, item, "sources", false);
	w->kernels = document_list(d, at, item, "kernels", false);
	w->modes = document_list(d, at, item, "modes", false);
	w->providers = document_list(d, at, item, "providers", false);
	w->memory = document_bool(d, at, item, "memory");
	return document_failed(d) ? -1 : 0;
}

static int load_caveat(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct caveat *caveat = out;
	struct place here = {.up = at, .key = "windows"};
	if (document_keys(d, at, item, "text windows"))
		return -1;
	caveat->code = at->key;
	caveat->text = document_text(d, at, item, "text", true);
	const json_t *windows = document_array(d, at, item, "windows", false);
	caveat->window_count = json_array_size(windows);
	caveat->windows = arena_alloc(&c->arena, caveat->window_count * sizeof *caveat->windows);
	for (size_t i = 0; i < caveat->window_count; i++) {
		struct place window_at = {.up = &here, .index = i};
		if (load_window(d, &window_at, json_array_get(windows, i), &caveat->windows[i]))
			return -1;
	}
	return document_failed(d) ? -1 : 0;
}

static int load_bindings(struct curate *c, const char *directory, struct err *e)
{
	struct document d;
	int rc = -1;
	if (document_open(&d, directory, "bindings.json", &c->arena, e))
		goto out;
	c->bindings_path = d.path;
	c->model_fields.items = arena_alloc(&c->arena, 64 * sizeof *c->model_fields.items);
	if (document_keys(&d, NULL, d.root, "version about dtypes modes models operations bindings scriptOnly caveats") ||
	    load_table(c, &d, "dtypes", load_dtype, sizeof *c->dtypes, &c->dtypes, &c->dtype_count) ||
	    load_table(c, &d, "modes", load_mode, sizeof *c->modes, &c->modes, &c->mode_count) ||
	    load_table(c, &d, "models", load_model, sizeof *c->models, &c->models, &c->model_count) ||
	    load_table(c, &d, "caveats", load_caveat, sizeof *c->caveats, &c->caveats, &c->caveat_count) || rules_load(c, &d, e))
		goto out;
	c->bindings = json_incref(d.root);
	rc = 0;
out:
	document_close(&d);
	return rc;
}

static int load_project(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct project *project = out;
	struct place host_at = {.up = at, .key = "host"};
	(void)c;
	if (document_keys(d, at, item, "name kind repository host"))
		return -1;
	project->slug = at->key;
	project->name = document_text(d, at, item, "name", true);
	document_text(d, at, item, "kind", true);
	document_text(d, at, item, "repository", true);
	const json_t *host = document_object(d, at, item, "host", true);
	if (!host || document_keys(d, &host_at, host, "kind id"))
		return -1;
	project->spec = document_canonical(d, at, item);
	return document_failed(d) ? -1 : 0;
}

static const struct project *find_project(const struct curate *c, const char *slug)
{
	for (size_t i = 0; i < c->project_count; i++)
		if (strcmp(c->projects[i].slug, slug) == 0)
			return &c->projects[i];
	return NULL;
}

static int load_provider(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct provider *p = out;
	if (document_keys(d, at, item,
			  "status project title language description declared concluded pipPackage pipExtra role baseProvider "
			  "sameCodeAs licenceNote"))
		return -1;
	p->name = at->key;
	p->prior = document_prior(d, at, item);
	p->title = document_text(d, at, item, "title", true);
	p->language = document_text(d, at, item, "language", true);
	p->description = document_text(d, at, item, "description", true);
	p->declared = document_text(d, at, item, "declared", true);
	p->concluded = document_text(d, at, item, "concluded", false);
	p->package = document_text(d, at, item, "pipPackage", false);
	const char *role = document_text(d, at, item, "role", false), *slug = document_text(d, at, item, "project", true);
	if (document_failed(d))
		return -1;
	p->baseline = role && strcmp(role, "baseline") == 0;
	if (role && !p->baseline)
		return document_complain(d, &(struct place){.up = at, .key = "role"}, "\"baseline\" expected");
	p->project = find_project(c, slug);
	if (!p->project)
		return document_complain(d, &(struct place){.up = at, .key = "project"}, "unknown project \"%s\"", slug);
	return 0;
}

static int load_override(struct curate *c, const struct document *d, const struct place *at, const json_t *item, struct override *o)
{
	if (document_keys(d, at, item, "channel revision provider use reason"))
		return -1;
	o->channel = document_text(d, at, item, "channel", true);
	o->revision = document_text(d, at, item, "revision", true);
	o->provider = document_text(d, at, item, "provider", true);
	o->use = document_text(d, at, item, "use", true);
	document_text(d, at, item, "reason", true);
	if (document_failed(d))
		return -1;
	if (strlen(o->revision) != 40)
		return document_complain(d, &(struct place){.up = at, .key = "revision"}, "40 hex digits expected");
	if (!curate_provider(c, text_slice(o->use)))
		return document_complain(d, &(struct place){.up = at, .key = "use"}, "unknown provider \"%s\"", o->use);
	return 0;
}

static int load_overrides(struct curate *c, const struct document *d)
{
	const json_t *array = document_array(d, NULL, d->root, "overrides", true);
	struct place here = {.key = "overrides"};
	c->overrides = arena_alloc(&c->arena, json_array_size(array) * sizeof *c->overrides);
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct place at = {.up = &here, .index = i};
		if (load_override(c, d, &at, json_array_get(array, i), &c->overrides[c->override_count++]))
			return -1;
	}
	return document_failed(d) ? -1 : 0;
}

static int load_providers(struct curate *c, const char *directory, struct err *e)
{
	struct document d;
	int rc = document_open(&d, directory, "providers.json", &c->arena, e) ||
			 document_keys(&d, NULL, d.root, "version about projects providers overrides") ||
			 load_table(c, &d, "projects", load_project, sizeof *c->projects, &c->projects, &c->project_count) ||
			 load_table(c, &d, "providers", load_provider, sizeof *c->providers, &c->providers, &c->provider_count) ||
			 load_overrides(c, &d)
		     ? -1
		     : 0;
	document_close(&d);
	return rc;
}

static int load_gpu(struct curate *c, const struct document *d, const struct place *at, const json_t *item, void *out)
{
	struct gpu *gpu = out;
	struct place spec_at = {.up = at, .key = "spec"};
	(void)c;
	if (document_keys(d, at, item, "status spec memoryGB memoryType board peak note"))
		return -1;
	gpu->name = at->key;
	gpu->prior = document_prior(d, at, item);
	const json_t *spec = document_object(d, at, item, "spec", true);
	if (!spec || document_keys(d, &spec_at, spec, "vendor product architecture formFactor"))
		return -1;
	document_text(d, &spec_at, spec, "vendor", true);
	document_text(d, &spec_at, spec, "product", true);
	document_text(d, &spec_at, spec, "architecture", true);
	document_text(d, &spec_at, spec, "formFactor", false);
	const json_t *peak = document_object(d, at, item, "peak", false);
	if (peak && document_keys(d, &(struct place){.up = at, .key = "peak"}, peak, "GBps bf16TFLOPs tf32TFLOPs fp32TFLOPs"))
		return -1;
	gpu->spec = document_canonical(d, &spec_at, spec);
	return document_failed(d) ? -1 : 0;
}

static int load_single(struct curate *c, const char *directory, const char *file, const char *table, load_item load, size_t size,
		       void *out, size_t *count, struct err *e)
{
	struct document d;
	const char *allowed = arena_printf(&c->arena, "version about %s", table);
	int rc = document_open(&d, directory, file, &c->arena, e) || document_keys(&d, NULL, d.root, allowed) ||
			 load_table(c, &d, table, load, size, out, count)
		     ? -1
		     : 0;
	document_close(&d);
	return rc;
}

struct curate *curate_new(const char *directory, struct err *e)
{
	struct curate *c = xcalloc(1, sizeof *c);
	if (load_bindings(c, directory, e) || load_providers(c, directory, e) ||
	    load_single(c, directory, "hardware.json", "hardware", load_gpu, sizeof *c->gpus, &c->gpus, &c->gpu_count, e) ||
	    load_single(c, directory, "entries.json", "entries", load_entry, sizeof *c->entries, &c->entries, &c->entry_count, e)) {
		curate_free(c);
		return NULL;
	}
	return c;
}

void curate_free(struct curate *c)
{
	if (!c)
		return;
	json_decref(c->bindings);
	arena_fini(&c->arena);
	free(c);
}

/* The tables are short and looked at once for each new case, so a walk will do. Every item begins with its name. */
static const void *find(const void *items, size_t count, size_t size, struct slice name)
{
	for (size_t i = 0; i < count; i++) {
		const char *item = (const char *)items + i * size, *item_name;
		memcpy(&item_name, item, sizeof item_name);
		if (slice_eq(name, item_name))
			return item;
	}
	return NULL;
}

const struct mode *curate_mode(const struct curate *c, struct slice name)
{
	return find(c->modes, c->mode_count, sizeof *c->modes, name);
}

const struct model *curate_model(const struct curate *c, struct slice name)
{
	return find(c->models, c->model_count, sizeof *c->models, name);
}

const struct provider *curate_provider(const struct curate *c, struct slice name)
{
	return find(c->providers, c->provider_count, sizeof *c->providers, name);
}

const struct gpu *curate_gpu(const struct curate *c, struct slice name)
{
	return find(c->gpus, c->gpu_count, sizeof *c->gpus, name);
}

const char *curate_dtype(const struct curate *c, struct slice upstream)
{
	for (size_t i = 0; i < c->dtype_count; i++)
		if (slice_eq(upstream, c->dtypes[i].upstream))
			return c->dtypes[i].token;
	return NULL;
}

const char *curate_entry(const struct curate *c, struct slice entry)
{
	for (size_t i = 0; i < c->entry_count; i++)
		if (slice_eq(entry, c->entries[i].name))
			return c->entries[i].commit;
	return NULL;
}

bool curate_kernel(const struct curate *c, struct slice kernel)
{
	for (size_t i = 0; i < c->rule_count; i++)
		if (slice_eq(kernel, c->rules[i].kernel))
			return true;
	return false;
}

struct slice curate_override(const struct curate *c, struct slice channel, struct slice commit, struct slice provider, bool *any)
{
	*any = false;
	for (size_t i = 0; i < c->override_count; i++) {
		const struct override *o = &c->overrides[i];
		if (!slice_eq(channel, o->channel) || commit.len < 12 || commit.len > 40 ||
		    memcmp(commit.data, o->revision, commit.len) != 0)
			continue;
		*any = true;
		if (slice_eq(provider, o->provider))
			return text_slice(o->use);
	}
	return provider;
}

static bool window_open(const struct window *w, const char *kernel, const char *mode, const char *provider, enum metric metric,
			struct slice source)
{
	return (w->sources.count == 0 || list_has(&w->sources, source)) &&
	       (w->kernels.count == 0 || list_has(&w->kernels, text_slice(kernel))) &&
	       (w->modes.count == 0 || list_has(&w->modes, text_slice(mode))) &&
	       (w->providers.count == 0 || list_has(&w->providers, text_slice(provider))) &&
	       (w->memory || metric == METRIC_LATENCY);
}

static bool caveat_applies(const struct curate *c, const char *code, const char *kernel, const char *mode, const char *provider,
			   enum metric metric, struct slice source)
{
	const struct caveat *caveat = c->caveats;
	while (strcmp(caveat->code, code) != 0)
		caveat++;
	for (size_t i = 0; i < caveat->window_count; i++)
		if (window_open(&caveat->windows[i], kernel, mode, provider, metric, source))
			return true;
	return caveat->window_count == 0;
}

void curate_caveats(const struct curate *c, const struct rule *rule, const char *mode, const char *provider, enum metric metric,
		    struct slice source, struct buf *out)
{
	bool first = true;
	for (size_t i = 0; i < rule->caveats.count; i++) {
		const char *code = rule->caveats.items[i];
		if (!caveat_applies(c, code, rule->kernel, mode, provider, metric, source))
			continue;
		if (!first)
			buf_char(out, ',');
		buf_str(out, code);
		first = false;
	}
}
