#include "normalize/cases.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "normalize/hash.h"

enum { SLOTS_FIRST = 1 << 12, KEY_BYTES_MAX = 24 << 20 };

struct slot {
	uint64_t hash;
	struct known_case *found;
	const char *key;
	size_t key_len;
};

struct config_slot {
	uint64_t hash;
	struct slice text;
	json_t *config; /* NULL: bad, see `why` */
	const char *why;
};

struct cases {
	const struct curate *curate;
	struct arena arena, scratch;
	struct slot *slots;
	size_t slot_count, used;
	struct config_slot *configs;
	size_t config_count, config_used;
	uint64_t *emitted; /* a set; 0 is free */
	size_t emitted_count, emitted_used;
	size_t bytes;
	struct buf key;
	struct digest correctness;
};

struct cases *cases_new(const struct curate *c)
{
	struct cases *t = xcalloc(1, sizeof *t);
	t->curate = c;
	t->correctness = record_correctness_not_asserted();
	return t;
}

void cases_reset(struct cases *t)
{
	for (size_t i = 0; i < t->slot_count; i++)
		if (t->slots[i].found)
			buf_fini(&t->slots[i].found->caveats);
	for (size_t i = 0; i < t->config_count; i++)
		json_decref(t->configs[i].config);
	free(t->slots);
	free(t->configs);
	free(t->emitted);
	t->slots = NULL;
	t->configs = NULL;
	t->emitted = NULL;
	t->slot_count = t->used = t->config_count = t->config_used = t->emitted_count = t->emitted_used = t->bytes = 0;
	arena_reset(&t->arena);
}

void cases_free(struct cases *t)
{
	if (!t)
		return;
	cases_reset(t);
	arena_fini(&t->arena);
	arena_fini(&t->scratch);
	buf_fini(&t->key);
	free(t);
}

/* ---- what has been put on the wire ---- */

static bool set_add(uint64_t *set, size_t count, uint64_t value)
{
	size_t i = value & (count - 1);
	for (; set[i]; i = (i + 1) & (count - 1))
		if (set[i] == value)
			return false;
	set[i] = value;
	return true;
}

/* True the first time. */
static bool emit_once(struct cases *t, uint64_t value)
{
	if (t->emitted_used * 2 >= t->emitted_count) {
		size_t count = t->emitted_count ? t->emitted_count * 2 : SLOTS_FIRST;
		uint64_t *grown = xcalloc(count, sizeof *grown);
		for (size_t i = 0; i < t->emitted_count; i++)
			if (t->emitted[i])
				set_add(grown, count, t->emitted[i]);
		free(t->emitted);
		t->emitted = grown;
		t->emitted_count = count;
	}
	bool fresh = set_add(t->emitted, t->emitted_count, value ? value : 1);
	t->emitted_used += fresh;
	return fresh;
}

/* One object serves several names (manifests.md section 1), so it is put once for each metadata that it has. */
static void put_object(struct cases *t, const struct object *o, struct buf *wire)
{
	uint64_t first;
	memcpy(&first, o->digest.bytes, sizeof first);
	if (wire && emit_once(t, first ^ hash_bytes(o->metadata.data, o->metadata.len)))
		record_put_object(wire, o->body, &o->digest, o->metadata);
}

/* ---- config strings ---- */

static void grow_configs(struct cases *t)
{
	size_t count = t->config_count ? t->config_count * 2 : 256;
	struct config_slot *grown = xcalloc(count, sizeof *grown);
	for (size_t i = 0; i < t->config_count; i++) {
		if (!t->configs[i].text.data)
			continue;
		size_t j = t->configs[i].hash & (count - 1);
		while (grown[j].text.data)
			j = (j + 1) & (count - 1);
		grown[j] = t->configs[i];
	}
	free(t->configs);
	t->configs = grown;
	t->config_count = count;
}

static const struct config_slot *find_config(struct cases *t, struct slice text)
{
	if (t->config_used * 2 >= t->config_count)
		grow_configs(t);
	uint64_t hash = hash_bytes(text.data, text.len);
	size_t i = hash & (t->config_count - 1);
	for (; t->configs[i].text.data; i = (i + 1) & (t->config_count - 1))
		if (t->configs[i].hash == hash && t->configs[i].text.len == text.len &&
		    memcmp(t->configs[i].text.data, text.data, text.len) == 0)
			return &t->configs[i];
	struct config_slot *slot = &t->configs[i];
	struct err e = {0};
	slot->hash = hash;
	slot->text = (struct slice){arena_strndup(&t->arena, text.data, text.len), text.len};
	slot->config = bind_config(text, &e);
	slot->why = slot->config ? NULL : arena_strdup(&t->arena, e.text);
	t->config_used++;
	t->bytes += text.len * 8; /* a tree takes about that */
	return slot;
}

/* ---- making a case ---- */

static void skip(struct known_case *k, enum reason reason, struct slice name)
{
	k->reason = reason;
	k->name = name;
}

static void reject(struct cases *t, struct known_case *k, enum reason reason, enum key_field field, const char *what,
		   struct slice value)
{
	struct buf quoted = {0};
	report_quote(value, &quoted);
	k->reason = reason;
	k->field = field;
	k->text = arena_printf(&t->arena, "%s: %s", what, quoted.data);
	buf_fini(&quoted);
}

static bool find_metric(struct cases *t, struct known_case *k, const struct slice key[KEY_FIELDS])
{
	if (slice_eq(key[KEY_METRIC], "speed") && slice_eq(key[KEY_UNIT], "ms")) {
		k->run.metric = METRIC_LATENCY;
		return true;
	}
	if (slice_eq(key[KEY_METRIC], "memory") && slice_eq(key[KEY_UNIT], "MB")) {
		k->run.metric = METRIC_PEAK_MEMORY;
		return true;
	}
	char *name = arena_printf(&t->arena, "%s in %s", key[KEY_METRIC].data, key[KEY_UNIT].data);
	skip(k, SKIP_METRIC, (struct slice){name, strlen(name)});
	return false;
}

static bool find_binding(struct cases *t, struct known_case *k, const struct slice key[KEY_FIELDS], struct binding *b)
{
	if (!curate_kernel(t->curate, key[KEY_KERNEL])) {
		skip(k, SKIP_KERNEL, key[KEY_KERNEL]);
		return false;
	}
	const struct config_slot *config = find_config(t, key[KEY_CONFIG]);
	if (!config->config) {
		reject(t, k, REJECT_BAD_CONFIG, KEY_CONFIG,
		       arena_printf(&t->arena, "extra_benchmark_config_str: %s", config->why), key[KEY_CONFIG]);
		return false;
	}
	switch (bind_row(t->curate, key[KEY_KERNEL], key[KEY_X_NAME], key[KEY_X_VALUE], config->config, b)) {
	case BIND_OK:
		return true;
	case BIND_RANGE:
		reject(t, k, REJECT_RANGE, KEY_CONFIG, "a size beyond 2^53 - 1", key[KEY_CONFIG]);
		break;
	case BIND_NO_RULE:
		skip(k, SKIP_CONFIG, key[KEY_KERNEL]);
		break;
	}
	return false;
}

static bool find_names(struct cases *t, struct known_case *k, const struct slice key[KEY_FIELDS])
{
	k->provider = curate_provider(t->curate, key[KEY_PROVIDER]);
	k->gpu = curate_gpu(t->curate, key[KEY_GPU]);
	k->mode = curate_mode(t->curate, key[KEY_MODE]);
	if (!k->provider)
		skip(k, SKIP_PROVIDER, key[KEY_PROVIDER]);
	else if (!k->gpu)
		skip(k, SKIP_GPU, key[KEY_GPU]);
	else if (!k->mode)
		skip(k, SKIP_MODE, key[KEY_MODE]);
	return k->provider && k->gpu && k->mode;
}

static void make_prefix(struct cases *t, struct known_case *k, const struct binding *b)
{
	struct buf prefix = {0};
	bool memory = k->run.metric == METRIC_PEAK_MEMORY;
	buf_printf(&prefix, "%s/%s%s/%s/", b->rule->segment, k->mode->name, memory ? "-memory" : "", k->provider->name);
	text_kebab(slice_of(k->gpu->name), &prefix);
	buf_char(&prefix, '/');
	build_case_key(b, true, &prefix);
	buf_char(&prefix, '/');
	k->prefix = (struct slice){arena_strndup(&t->arena, prefix.data, prefix.len), prefix.len};
	buf_fini(&prefix);
}

static void put_case(struct known_case *k, const struct slice key[KEY_FIELDS], const struct binding *b, struct buf *wire)
{
	const struct operation *op = b->rule->operation;
	struct buf case_key = {0}, label = {0}, body = {0};
	build_case_key(b, true, &case_key);
	build_workload_label(b, &label);
	struct case_parts parts = {
		.benchmark = k->run.benchmark,
		.case_key = {case_key.data, case_key.len},
		.config = key[KEY_CONFIG],
		.dtype = slice_of(b->dtype),
		.environment = k->run.environment,
		.external_prefix = {k->prefix.data, k->prefix.len - 1},
		.gpu = key[KEY_GPU],
		.implementation = k->run.implementation,
		.kernel = key[KEY_KERNEL],
		.metric = k->run.metric,
		.mode = key[KEY_MODE],
		.operation = op->object.digest,
		.operation_slug = slice_of(op->slug),
		.operation_title = slice_of(op->title),
		.project = k->provider->project->object.digest,
		.protocol = k->run.protocol,
		.provider = key[KEY_PROVIDER],
		.provider_title = slice_of(k->provider->title),
		.rule = slice_of(b->rule->id),
		.workload = k->run.workload,
		.workload_label = {label.data, label.len},
		.x_label = key[KEY_X_LABEL],
		.x_name = key[KEY_X_NAME],
		.x_value = key[KEY_X_VALUE],
	};
	record_case_body(&parts, &body);
	k->digest = digest_of(body.data, body.len);
	if (wire)
		record_put_case(wire, (struct slice){body.data, body.len}, &k->digest);
	buf_fini(&case_key);
	buf_fini(&label);
	buf_fini(&body);
}

/* Everything a run of this case cites, then the case. */
static void make_bound(struct cases *t, struct known_case *k, const struct slice key[KEY_FIELDS], const struct binding *b,
		       struct buf *wire)
{
	struct object implementation = {0}, workload = {0};
	const struct object *protocol = &k->mode->protocol[k->run.metric];
	build_implementation(b->rule, k->provider, &t->scratch, &implementation);
	build_workload(b, &t->scratch, &workload);
	put_object(t, &k->provider->project->object, wire);
	put_object(t, &b->rule->operation->object, wire);
	put_object(t, &implementation, wire);
	put_object(t, &workload, wire);
	put_object(t, protocol, wire);
	put_object(t, &k->gpu->object, wire);
	k->bound = true;
	k->rule = b->rule;
	k->run.implementation = implementation.digest;
	k->run.workload = workload.digest;
	k->run.protocol = protocol->digest;
	k->run.environment = k->gpu->object.digest;
	k->run.benchmark = slice_of(arena_printf(&t->arena, "%s/%s", b->rule->segment, k->mode->name));
	k->comparison_key = record_comparison_key(&b->rule->operation->object.digest, &k->run.workload, &k->run.protocol,
						  &k->run.environment, &t->correctness, k->run.metric);
	make_prefix(t, k, b);
	put_case(k, key, b, wire);
}

static struct known_case *make_case(struct cases *t, const struct slice key[KEY_FIELDS], struct buf *wire)
{
	struct known_case *k = arena_alloc(&t->arena, sizeof *k);
	struct binding b;
	if (find_metric(t, k, key) && find_binding(t, k, key, &b) && find_names(t, k, key))
		make_bound(t, k, key, &b, wire);
	arena_reset(&t->scratch);
	return k;
}

/* ---- the table ---- */

static void grow_slots(struct cases *t)
{
	size_t count = t->slot_count ? t->slot_count * 2 : SLOTS_FIRST;
	struct slot *grown = xcalloc(count, sizeof *grown);
	for (size_t i = 0; i < t->slot_count; i++) {
		if (!t->slots[i].found)
			continue;
		size_t j = t->slots[i].hash & (count - 1);
		while (grown[j].found)
			j = (j + 1) & (count - 1);
		grown[j] = t->slots[i];
	}
	free(t->slots);
	t->slots = grown;
	t->slot_count = count;
}

/* The key's fields with their lengths between them, so that no two keys read the same. */
static void join_key(struct buf *out, const struct slice key[KEY_FIELDS])
{
	size_t size = KEY_FIELDS * sizeof(uint32_t);
	for (int i = 0; i < KEY_FIELDS; i++)
		size += key[i].len;
	buf_clear(out);
	buf_reserve(out, size);
	char *p = out->data;
	for (int i = 0; i < KEY_FIELDS; i++) {
		uint32_t len = (uint32_t)key[i].len;
		memcpy(p, &len, sizeof len);
		memcpy(p + sizeof len, key[i].data, len);
		p += sizeof len + len;
	}
	out->len = size;
}

/* The same slices over the copy of the key, each with a NUL behind it. */
static void own_key(struct cases *t, const struct slice key[KEY_FIELDS], struct slice owned[KEY_FIELDS])
{
	for (int i = 0; i < KEY_FIELDS; i++)
		owned[i] = (struct slice){arena_strndup(&t->arena, key[i].data, key[i].len), key[i].len};
}

struct known_case *cases_find(struct cases *t, const struct slice key[KEY_FIELDS], struct buf *wire)
{
	struct slice owned[KEY_FIELDS];
	if (t->bytes > KEY_BYTES_MAX)
		cases_reset(t);
	if (t->used * 2 >= t->slot_count)
		grow_slots(t);
	join_key(&t->key, key);
	uint64_t hash = hash_bytes(t->key.data, t->key.len);
	size_t i = hash & (t->slot_count - 1);
	for (; t->slots[i].found; i = (i + 1) & (t->slot_count - 1))
		if (t->slots[i].hash == hash && t->slots[i].key_len == t->key.len &&
		    memcmp(t->slots[i].key, t->key.data, t->key.len) == 0)
			return t->slots[i].found;
	own_key(t, key, owned);
	struct slot *slot = &t->slots[i];
	slot->hash = hash;
	slot->key_len = t->key.len;
	slot->key = arena_strndup(&t->arena, t->key.data, t->key.len);
	slot->found = make_case(t, owned, wire);
	t->used++;
	t->bytes += 2 * t->key.len + 1024;
	return slot->found;
}
