#include "store/run.h"

#include <math.h>
#include <string.h>

#include "core/when.h"

static int chunk_get(struct txn *t, uint32_t chunk, MDB_val *out)
{
	struct key key;
	return txn_get(t, TABLE_RUNS, key_u32(&key, chunk * RUNS_PER_CHUNK), out);
}

int run_get(struct txn *t, uint32_t run, struct run_row *out)
{
	MDB_val value;
	size_t at = run % RUNS_PER_CHUNK * sizeof *out;
	int found = chunk_get(t, run / RUNS_PER_CHUNK, &value);
	if (found == 1 && value.mv_size >= at + sizeof *out) {
		memcpy(out, (const char *)value.mv_data + at, sizeof *out);
		return 0;
	}
	return found < 0 ? -1 : err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "run number %u is missing", run);
}

int run_append(struct txn *t, uint32_t first, const struct run_row *rows, size_t count)
{
	struct run_row chunk[RUNS_PER_CHUNK];
	struct key key;
	MDB_val value;
	while (count > 0) {
		size_t held = first % RUNS_PER_CHUNK, take = RUNS_PER_CHUNK - held < count ? RUNS_PER_CHUNK - held : count;
		if (held) {
			int found = chunk_get(t, first / RUNS_PER_CHUNK, &value);
			if (found < 0)
				return -1;
			if (found == 0 || value.mv_size < held * sizeof *rows)
				return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "run number %u is missing", first - 1);
			memcpy(chunk, value.mv_data, held * sizeof *rows);
		}
		memcpy(chunk + held, rows, take * sizeof *rows);
		if (txn_put(t, TABLE_RUNS, key_u32(&key, first - (uint32_t)held), chunk, (held + take) * sizeof *rows))
			return -1;
		first += (uint32_t)take;
		rows += take;
		count -= take;
	}
	return 0;
}

void run_suffix(int64_t observed_ms, char out[RUN_SUFFIX + 1])
{
	char text[WHEN_TEXT + 1];
	when_text(observed_ms, text);
	text[10] = text[13] = text[16] = '-';
	memcpy(out, text, RUN_SUFFIX);
	out[RUN_SUFFIX] = '\0';
}

void run_body(const struct run_row *row, const struct case_parts *c, struct buf *external_id, struct buf *out)
{
	char suffix[RUN_SUFFIX + 1];
	run_suffix(row->observed_ms, suffix);
	buf_clear(external_id);
	buf_add(external_id, c->external_prefix.data, c->external_prefix.len);
	buf_char(external_id, '/');
	buf_add(external_id, suffix, RUN_SUFFIX);
	struct run_parts parts = {
		.metric = c->metric,
		.implementation = c->implementation,
		.workload = c->workload,
		.protocol = c->protocol,
		.environment = c->environment,
		.benchmark = c->benchmark,
		.external_id = {external_id->data, external_id->len},
		.source_50 = row->value_50,
		.source_20 = row->value_20,
		.source_80 = row->value_80,
		.observed_ms = row->observed_ms,
	};
	record_run_body(&parts, out);
}

int64_t run_units(const struct run_row *row, enum metric metric, double value)
{
	if (!(value >= 0)) /* also NAN */
		return -1;
	if (!(row->flags & RUN_UNITS))
		return record_units_fit(metric, value) ? record_units(metric, value) : -1;
	return value < 9007199254740992.0 ? (int64_t)value : -1; /* a body kept whole may say anything */
}
