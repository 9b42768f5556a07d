/* Flags as a list, for people and for programs: flags_print of flag.h. */
#include "store/flag.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"

static int print_json(struct catalog *c, const struct flags *f, const struct flag *x, const struct run_row *row, const struct buf *id, FILE *out)
{
	char run[DIGEST_TEXT + 1], other[DIGEST_TEXT + 1];
	struct run_row other_row;
	if (catalog_run(c, x->other, &other_row))
		return -1;
	digest_text(&row->digest, run);
	digest_text(&other_row.digest, other);
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "code", flag_name(x->code), "externalId", id->data, "policy", f->policy, "run", run,
				   "words", x->words, "severity", x->severity);
	json_object_set_new(object, "evidence", json_load_text(x->evidence, strlen(x->evidence), "evidence", c->err));
	if (x->other != x->run)
		json_object_set_new(object, "against", json_string(other));
	int rc = json_put_line(object, out, c->err);
	json_decref(object);
	return rc;
}

/* Words may hold a text that a person gave. */
static void print_text(const struct flag *x, const char *hex, const struct buf *id, FILE *out)
{
	struct buf words = {0};
	text_put_printable(&words, x->words, strlen(x->words));
	fprintf(out, "%-16s %.12s  %s\n%30s%s\n", flag_name(x->code), hex, id->data, "", words.data);
	buf_fini(&words);
}

int flags_print(struct catalog *c, const struct flags *f, const struct filter *filter, uint64_t limit, bool json, FILE *out)
{
	struct buf id = {0};
	uint64_t printed = 0;
	for (size_t i = 0; i < f->count && !c->err->code && (limit == 0 || printed < limit); i++) {
		const struct flag *x = &f->items[i];
		struct member m = {.run = x->run};
		char hex[DIGEST_HEX + 1];
		if (catalog_run(c, x->run, &m.row) || !(m.c = catalog_case(c, m.row.case_id)))
			break;
		if (!filter_match(filter, &m))
			continue;
		if (catalog_external_id(c, &m.row, &id))
			break;
		digest_hex(&m.row.digest, hex);
		printed++;
		if (json)
			print_json(c, f, x, &m.row, &id, out);
		else
			print_text(x, hex, &id, out);
	}
	buf_fini(&id);
	return c->err->code ? -1 : 0;
}
