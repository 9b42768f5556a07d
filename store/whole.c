#include "store/whole.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/correction.h"
#include "store/link.h"

struct held {
	struct digest digest;
	json_t *body; /* NULL: a free place */
};
struct whole_cache {
	struct catalog *c;
	struct held *objects; /* open addressing by the first bytes of the digest */
	size_t count, room;   /* room: a power of two */
	json_t **publications;
};

struct whole_cache *whole_cache_new(struct catalog *c)
{
	struct whole_cache *cache = xcalloc(1, sizeof *cache);
	cache->c = c;
	cache->room = 64;
	cache->objects = xcalloc(cache->room, sizeof *cache->objects);
	cache->publications = xcalloc((size_t)c->counts.publications + 1, sizeof *cache->publications);
	return cache;
}

void whole_cache_free(struct whole_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->room; i++)
		json_decref(cache->objects[i].body);
	for (size_t i = 0; i < cache->c->counts.publications; i++)
		json_decref(cache->publications[i]);
	free(cache->objects);
	free(cache->publications);
	free(cache);
}

static struct held *place(struct held *objects, size_t room, const struct digest *d)
{
	size_t at;
	memcpy(&at, d->bytes, sizeof at);
	while (at &= room - 1, objects[at].body && digest_cmp(&objects[at].digest, d) != 0)
		at++;
	return &objects[at];
}

static void grow(struct whole_cache *cache)
{
	struct held *wider = xcalloc(cache->room * 2, sizeof *wider);
	for (size_t i = 0; i < cache->room; i++)
		if (cache->objects[i].body)
			*place(wider, cache->room * 2, &cache->objects[i].digest) = cache->objects[i];
	free(cache->objects);
	cache->objects = wider;
	cache->room *= 2;
}

const json_t *whole_object(struct whole_cache *cache, const struct digest *d)
{
	struct held *h = place(cache->objects, cache->room, d);
	if (h->body)
		return h->body;
	json_t *body = catalog_load(cache->c, d);
	if (!body)
		return NULL;
	if (++cache->count * 2 > cache->room) {
		grow(cache);
		h = place(cache->objects, cache->room, d);
	}
	*h = (struct held){*d, body};
	return body;
}

const json_t *whole_publication(struct whole_cache *cache, uint32_t id)
{
	if (!cache->publications[id]) {
		cache->publications[id] = catalog_publication(cache->c, id);
		json_object_del(cache->publications[id], "report");
	}
	return cache->publications[id];
}

int whole_load(struct whole *w, struct whole_cache *cache, const struct cohort *k, const struct member *m)
{
	struct catalog *c = w->c = cache->c;
	w->cache = cache;
	w->parts = &m->c->parts;
	w->operation = whole_object(cache, &w->parts->operation);
	w->workload = whole_object(cache, &w->parts->workload);
	w->implementation = whole_object(cache, &w->parts->implementation);
	w->protocol = whole_object(cache, &w->parts->protocol);
	w->environment = whole_object(cache, &w->parts->environment);
	w->project = whole_object(cache, &w->parts->project);
	free(w->carriers);
	w->carriers = catalog_carriers(c, m->run, &w->carrier_count);
	return c->err->code ? -1 : view_fill(&w->v, c, k, m);
}

void whole_fini(struct whole *w)
{
	free(w->carriers);
	view_fini(&w->v);
}

/* ---- JSON ---- */

static json_t *publications_json(struct whole *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->carrier_count; i++)
		json_array_append(list, (json_t *)whole_publication(w->cache, w->carriers[i]));
	return list;
}

static json_t *parse(const struct buf *text, const char *name, struct err *e)
{
	return json_load_text(text->data, text->len, name, e);
}

json_t *whole_json(struct whole *w)
{
	struct buf text = {0};
	json_t *root = NULL;
	if (view_json(&w->v, &text, w->c->err) == 0) {
		root = parse(&text, "run", w->c->err);
		buf_clear(&text);
		if (root && catalog_body(w->c, &w->v.m->row, &text) == 0)
			json_object_set_new(root, "manifest", parse(&text, "manifest", w->c->err));
	}
	buf_fini(&text);
	if (!root || w->c->err->code)
		return root;
	json_object_set_new(root, "cites",
			    json_pack("{s:O, s:O, s:O, s:O, s:O, s:O}", "operation", w->operation, "workload", w->workload, "implementation",
				      w->implementation, "protocol", w->protocol, "environment", w->environment, "project", w->project));
	json_set_slice(root, "config", w->parts->config);
	json_object_set_new(root, "publications", publications_json(w));
	json_object_set_new(root, "reruns", link_of(w->c, &w->v.m->row.digest));
	json_t *corrections = correction_of(w->c, &w->v.m->row.digest);
	if (json_array_size(corrections))
		json_object_set(root, "corrections", corrections);
	json_decref(corrections);
	return root;
}

void whole_measurements(const json_t *manifest, whole_measurement *put, void *context)
{
	const json_t *spec = json_object_get(manifest, "spec"), *latency = json_object_get(json_object_get(spec, "timing"), "latencyNs");
	const char *name;
	json_t *value;
	size_t i;
	json_object_foreach((json_t *)latency, name, value)
		if (json_is_number(value))
			put(context, "latency", name, value, "ns");
	json_array_foreach(json_object_get(latency, "confidence95"), i, value)
		put(context, "latency", i ? "95% interval of the median, upper end" : "95% interval of the median, lower end", value, "ns");
	json_array_foreach(json_object_get(spec, "measurements"), i, value)
		put(context, json_text_of(value, "metric"), json_text_of(value, "statistic"), json_object_get(value, "value"), json_text_of(value, "unit"));
}
