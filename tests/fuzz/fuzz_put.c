/* A wire stream into a store of its own. Digests that a change made wrong are put right first, line by line, so that what is tried
 * is the store and not SHA-256. Whatever is taken, the store is whole afterwards and every reader can read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "fuzz.h"
#include "normalize/record.h"
#include "store/check.h"
#include "store/export.h"
#include "store/put.h"
#include "store/show.h"

enum { RENAMED_MAX = 64 };

/* Digests as the input has them and as they should be. */
struct renamed {
	char from[RENAMED_MAX][DIGEST_TEXT + 1], to[RENAMED_MAX][DIGEST_TEXT + 1];
	int count;
};

static void rename_all(const struct renamed *r, char *text, size_t len)
{
	for (int i = 0; i < r->count; i++)
		for (char *at = text; (at = memmem(at, len - (size_t)(at - text), r->from[i], DIGEST_TEXT)) != NULL; at += DIGEST_TEXT)
			memcpy(at, r->to[i], DIGEST_TEXT);
}

static void mend_line(struct renamed *r, char *text, size_t len)
{
	struct record record;
	struct err e = {0};
	struct digest right;
	rename_all(r, text, len);
	if (record_read((struct slice){text, len}, &record, "input", 1, &e) || record.type == RECORD_SNAPSHOT || record.type == RECORD_REPORT)
		return;
	right = digest_of(record.body.data, record.body.len);
	if (digest_cmp(&right, &record.digest) == 0 || r->count == RENAMED_MAX)
		return;
	digest_text(&record.digest, r->from[r->count]);
	digest_text(&right, r->to[r->count++]);
	rename_all(r, text, len);
}

static void mend(struct buf *wire)
{
	static struct renamed r;
	r.count = 0;
	for (char *at = wire->data, *end = at + wire->len, *stop; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop)
			break;
		mend_line(&r, at, (size_t)(stop - at));
	}
}

static void fresh_store(char path[64])
{
	static const char *const names[] = {"data.mdb", "lock.mdb", "write.lock"};
	char file[96];
	snprintf(path, 64, "%s/store", fuzz_directory());
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(file, sizeof file, "%s/%s", path, names[i]);
		unlink(file);
	}
}

/* What every reader prints is canonical JSON. */
static void check_lines(const char *text, size_t len)
{
	struct feed feed = {(const uint8_t *)text, len};
	struct err e = {0};
	while (feed.left)
		must(json_check_canonical(feed_line(&feed), "line", &e) == 0, "what is printed is canonical JSON");
}

static void read_store(const char *path, bool taken)
{
	struct catalog c;
	struct check_totals totals;
	struct filter all = {.latency = true, .memory = true};
	struct err e = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	must(catalog_open(&c, path, &e) == 0, "a store opens after a put");
	must(check_catalog(&c, stderr, &totals) == 0 && totals.problems == 0, "a store is whole after a put");
	must(taken || c.counts.runs == 0, "what was refused is not there");
	must(export_jsonl(&c, &all, out) == 0, "a store can be exported");
	for (uint32_t run = 0; run < c.counts.runs; run++)
		must(show_json(&c, run, out) == 0, "every run can be shown");
	must(fclose(out) == 0, "there is room for output");
	check_lines(text, len);
	free(text);
	out = open_memstream(&text, &len);
	struct screen on = screen_of(out, false);
	for (uint32_t run = 0; run < c.counts.runs; run++)
		must(show_text(&c, run, NULL, &on) == 0, "every run can be shown to people");
	fclose(out);
	free(text);
	catalog_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf wire = {0};
	struct store st;
	struct put_totals totals = {0};
	struct put_options options = {0};
	struct err e = {0};
	char path[64], input[32];
	buf_add(&wire, data, size);
	mend(&wire);
	fresh_store(path);
	int fd = fuzz_file(wire.data, wire.len, input);
	must(store_open(&st, path, STORE_WRITE, &e) == 0, "a store can be made");
	int rc = put_stream(&st, fd, &options, &totals, &e);
	store_close(&st);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "a bad stream is refused as input");
	read_store(path, totals.published > 0);
	close(fd);
	buf_fini(&wire);
	return 0;
}
