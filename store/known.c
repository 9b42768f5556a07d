#include "store/known.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"

void known_init(struct known *k)
{
	*k = (struct known){.packer = packer_new(), .case_room = 1024, .last_label = UINT32_MAX};
	k->cases = xcalloc(k->case_room, sizeof *k->cases);
}

void known_fini(struct known *k)
{
	packer_free(k->packer);
	arena_fini(&k->arena);
	free(k->cases);
	free(k->labels);
	*k = (struct known){0};
}

int known_citation(struct slice body, size_t *at, const char **cited, struct digest *out)
{
	static const char mark[] = "Digest\":\"sha256:";
	const char *end = body.data + body.len, *found = memmem(body.data + *at, body.len - *at, mark, sizeof mark - 1);
	if (!found)
		return 0;
	*cited = found + strlen("Digest\":\"");
	*at = (size_t)(*cited - body.data);
	return end - *cited >= DIGEST_TEXT && digest_parse(*cited, DIGEST_TEXT, out) ? 1 : -1;
}

int known_object(struct txn *t, const struct digest *d, uint32_t *id)
{
	struct key key;
	MDB_val value;
	int found = txn_get(t, TABLE_OBJECT_IDS, key_digest(&key, d), &value);
	if (found == 1)
		*id = key_read_u32(&value, 0);
	return found;
}

/* Value of objects and cases: the digest (and a case's comparison key), then the packed body. The id under its digest is
 * big-endian, as keys are. */
static int put_packed(struct known *k, struct txn *t, enum table table, enum table ids, uint32_t id, const struct digest *d,
		      const struct digest *cohort, struct slice body)
{
	struct buf value = {0};
	struct key key, id_key;
	buf_add(&value, d->bytes, DIGEST_SIZE);
	if (cohort)
		buf_add(&value, cohort->bytes, DIGEST_SIZE);
	pack(k->packer, body, &value);
	MDB_val *id_bytes = key_u32(&id_key, id);
	int rc = txn_put(t, table, id_bytes, value.data, value.len);
	if (rc == 0)
		rc = txn_put(t, ids, key_digest(&key, d), id_bytes->mv_data, id_bytes->mv_size);
	buf_fini(&value);
	return rc;
}

int known_unpack(struct packer *p, const MDB_val *value, struct digest *d, struct digest *cohort, struct buf *out, struct err *e)
{
	size_t head = cohort ? 2 * DIGEST_SIZE : DIGEST_SIZE;
	if (value->mv_size <= head)
		return err_set(e, ERR_CORRUPT, "a stored object has no body");
	memcpy(d->bytes, value->mv_data, DIGEST_SIZE);
	if (cohort)
		memcpy(cohort->bytes, (const char *)value->mv_data + DIGEST_SIZE, DIGEST_SIZE);
	return unpack(p, (struct slice){(const char *)value->mv_data + head, value->mv_size - head}, out, e);
}

int known_add_object(struct known *k, struct txn *t, struct meta_counts *counts, const struct digest *d, struct slice body,
		     struct slice metadata, bool *added)
{
	struct key key;
	uint32_t id = 0;
	int found = known_object(t, d, &id);
	*added = found == 0;
	if (found < 0)
		return -1;
	if (found == 0) {
		id = counts->objects++;
		if (json_check_canonical(body, "object", t->err) || put_packed(k, t, TABLE_OBJECTS, TABLE_OBJECT_IDS, id, d, NULL, body))
			return -1;
	}
	if (slice_eq(metadata, "{}"))
		return 0;
	struct digest name = digest_of(metadata.data, metadata.len);
	if (json_check_canonical(metadata, "metadata", t->err))
		return -1;
	return txn_put(t, TABLE_METADATA, key_u32_digest(&key, id, &name), metadata.data, metadata.len);
}

static size_t slot_of(const struct known *k, const struct digest *d)
{
	size_t at = (size_t)key_of_digest(d) & (k->case_room - 1);
	while (k->cases[at] && digest_cmp(&k->cases[at]->digest, d) != 0)
		at = (at + 1) & (k->case_room - 1);
	return at;
}

static void grow(struct known *k)
{
	struct known_case **old = k->cases;
	size_t room = k->case_room;
	k->case_room *= 2;
	k->cases = xcalloc(k->case_room, sizeof *k->cases);
	for (size_t i = 0; i < room; i++)
		if (old[i])
			k->cases[slot_of(k, &old[i]->digest)] = old[i];
	free(old);
}

static const struct known_case *remember(struct known *k, const struct digest *d, const struct case_parts *parts, uint32_t id)
{
	struct known_case *c = arena_alloc(&k->arena, sizeof *c);
	*c = (struct known_case){*d, *parts, id};
	if (++k->case_count * 2 > k->case_room)
		grow(k);
	return k->cases[slot_of(k, d)] = c;
}

const struct known_case *known_case(struct known *k, struct txn *t, const struct digest *d)
{
	const struct known_case *held = k->cases[slot_of(k, d)];
	struct buf body = {0};
	struct case_parts parts;
	struct digest stored, cohort;
	struct key key;
	MDB_val value;
	if (held || txn_get(t, TABLE_CASE_IDS, key_digest(&key, d), &value) != 1)
		return held;
	uint32_t id = key_read_u32(&value, 0);
	if (txn_get(t, TABLE_CASES, key_u32(&key, id), &value) == 1 && known_unpack(k->packer, &value, &stored, &cohort, &body, t->err) == 0 &&
	    record_case_parse((struct slice){body.data, body.len}, &k->arena, &parts))
		held = remember(k, d, &parts, id);
	else
		err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "case number %u cannot be read", id);
	buf_fini(&body);
	return held;
}

static int check_cited(struct txn *t, const struct case_parts *c)
{
	const struct {
		const char *name;
		const struct digest *d;
	} cited[] = {{"operation", &c->operation}, {"workload", &c->workload}, {"implementation", &c->implementation},
		     {"protocol", &c->protocol}, {"environment", &c->environment}, {"project", &c->project}};
	for (size_t i = 0; i < sizeof cited / sizeof *cited; i++) {
		char text[DIGEST_TEXT + 1];
		uint32_t id;
		int found = known_object(t, cited[i].d, &id);
		digest_text(cited[i].d, text);
		if (found == 0)
			return err_set(t->err, ERR_DATA, "a case cites %s %s, which is not in the store and was not sent before it", cited[i].name, text);
		if (found < 0)
			return -1;
	}
	return 0;
}

/* The correctness part of a stored workload, as the comparison key wants it. */
static int correctness_of(struct known *k, struct txn *t, const struct digest *workload, struct digest *out)
{
	static const char usual[] = "\"correctness\":{\"comparator\":\"not_asserted\"}";
	struct buf body = {0}, text = {0};
	struct digest stored;
	struct key key;
	MDB_val value;
	uint32_t id;
	int rc = -1;
	if (known_object(t, workload, &id) == 1 && txn_get(t, TABLE_OBJECTS, key_u32(&key, id), &value) == 1 &&
	    known_unpack(k->packer, &value, &stored, NULL, &body, t->err) == 0) {
		rc = 0;
		*out = record_correctness_not_asserted();
		if (!memmem(body.data, body.len, usual, sizeof usual - 1)) {
			json_t *workload_json = json_load_text(body.data, body.len, "workload", t->err);
			json_t *part = json_object_get(json_object_get(workload_json, "spec"), "correctness");
			json_t *whole = part ? json_pack("{s:O}", "correctness", part) : json_object();
			rc = workload_json && json_canonical(whole, &text, t->err) == 0 ? 0 : -1;
			*out = digest_of(text.data, text.len);
			json_decref(whole);
			json_decref(workload_json);
		}
	}
	buf_fini(&body);
	buf_fini(&text);
	return rc;
}

uint64_t known_prefix_hash(struct slice prefix)
{
	struct digest d = digest_of(prefix.data, prefix.len);
	return key_of_digest(&d);
}

/* The same as json_check_canonical(), without a tree: a case has one way to be written. */
static int check_case(struct slice body, const struct case_parts *parts, struct err *e)
{
	struct buf again = {0};
	record_case_body(parts, &again);
	bool same = slice_same(body, (struct slice){again.data, again.len}) && json_is_utf8(body.data, body.len);
	buf_fini(&again);
	return same ? 0 : err_set(e, ERR_DATA, "a case body is not canonical JSON");
}

int known_add_case(struct known *k, struct txn *t, struct meta_counts *counts, const struct digest *d, struct slice body, bool *added)
{
	struct case_parts parts;
	struct digest correctness;
	struct key key;
	*added = false;
	if (known_case(k, t, d))
		return 0;
	if (t->err->code)
		return -1;
	if (!record_case_parse(body, &k->arena, &parts))
		return err_set(t->err, ERR_DATA, "a case body has another layout than wire version %d", RECORD_WIRE);
	if (check_case(body, &parts, t->err) || check_cited(t, &parts) || correctness_of(k, t, &parts.workload, &correctness))
		return -1;
	uint32_t id = counts->cases++;
	struct digest cohort = record_comparison_key(&parts.operation, &parts.workload, &parts.protocol, &parts.environment, &correctness, parts.metric);
	if (put_packed(k, t, TABLE_CASES, TABLE_CASE_IDS, id, d, &cohort, body) || txn_put(t, TABLE_COHORTS, key_digest_u32(&key, &cohort, id), "", 0) ||
	    txn_put(t, TABLE_PREFIXES, key_u64_u32(&key, known_prefix_hash(parts.external_prefix), id), "", 0))
		return -1;
	remember(k, d, &parts, id);
	*added = true;
	return 0;
}

static void hold_label(struct known *k, struct slice text)
{
	k->labels = xrealloc(k->labels, (k->label_count + 1) * sizeof *k->labels);
	k->labels[k->label_count++] = (struct slice){arena_strndup(&k->arena, text.data, text.len), text.len};
}

static int load_labels(struct known *k, struct txn *t, uint32_t count)
{
	struct key key;
	MDB_val value;
	while (k->label_count < count) {
		if (txn_get(t, TABLE_LABELS, key_u32(&key, (uint32_t)k->label_count), &value) != 1)
			return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "label set %zu is missing", k->label_count);
		hold_label(k, (struct slice){value.mv_data, value.mv_size});
	}
	return 0;
}

int known_label(struct known *k, struct txn *t, struct meta_counts *counts, struct slice labels, uint32_t *id)
{
	struct key key;
	if (k->last_label < k->label_count && slice_same(k->labels[k->last_label], labels)) {
		*id = k->last_label;
		return 0;
	}
	if (load_labels(k, t, counts->labels))
		return -1;
	for (*id = 0; *id < k->label_count; ++*id)
		if (slice_same(k->labels[*id], labels)) {
			k->last_label = *id;
			return 0;
		}
	if (*id >> 24)
		return err_set(t->err, ERR_DATA, "more than 2^24 distinct label sets");
	if (json_check_canonical(labels, "labels", t->err))
		return -1;
	hold_label(k, labels);
	counts->labels++;
	k->last_label = *id;
	return txn_put(t, TABLE_LABELS, key_u32(&key, *id), labels.data, labels.len);
}
