/* Values as they lie in the catalog. The first byte says which: a packed text, a text to pack, ranges, a run's row, keys. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "store/key.h"
#include "store/pack.h"
#include "store/ranges.h"
#include "store/run.h"

static struct packer *packer(void)
{
	static struct packer *p;
	if (!p)
		p = packer_new();
	return p;
}

static void unpack_any(struct slice packed)
{
	struct buf text = {0};
	struct err e = {0};
	int rc = unpack(packer(), packed, &text, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_CORRUPT, "what cannot be unpacked is damaged");
	buf_fini(&text);
}

static void pack_any(struct slice text)
{
	struct buf packed = {0}, back = {0};
	struct err e = {0};
	pack(packer(), text, &packed);
	must(unpack(packer(), (struct slice){packed.data, packed.len}, &back, &e) == 0 && slice_same(text, (struct slice){back.data, back.len}),
	     "what is packed unpacks");
	buf_fini(&packed);
	buf_fini(&back);
}

static void read_ranges(struct slice bytes)
{
	struct ranges r = {0}, again = {0};
	struct buf out = {0};
	if (ranges_read(bytes, &r)) {
		uint64_t total = ranges_total(&r), end = 0;
		for (size_t i = 0; i < r.count; i++) {
			must(r.items[i].first >= end && r.items[i].count > 0, "ranges ascend and are not empty");
			end = (uint64_t)r.items[i].first + r.items[i].count;
			must(end <= (uint64_t)UINT32_MAX + 1, "a range holds run numbers");
		}
		ranges_write(&r, &out);
		must(ranges_read((struct slice){out.data, out.len}, &again) && ranges_total(&again) == total, "ranges read back");
	}
	ranges_fini(&r);
	ranges_fini(&again);
	buf_fini(&out);
}

static void add_ranges(struct feed *f)
{
	struct ranges r = {0}, again = {0};
	struct buf out = {0};
	while (f->left >= 2)
		ranges_add(&r, (uint32_t)feed_byte(f) << 8 | feed_byte(f));
	ranges_sort(&r);
	ranges_write(&r, &out);
	must(ranges_read((struct slice){out.data, out.len}, &again) && ranges_total(&again) == ranges_total(&r), "ranges that are written read back");
	ranges_fini(&r);
	ranges_fini(&again);
	buf_fini(&out);
}

/* A row that ki-store would write gives a body from which the row's values can be read. */
static void build_body(struct feed *f)
{
	struct case_parts c = {.benchmark = slice_of("rms_norm/forward"), .external_prefix = slice_of("rms_norm/forward/liger/gpu/hidden1-bf16")};
	struct run_row row = {0};
	struct run_parts found = {0};
	struct buf id = {0}, body = {0};
	uint64_t bits[4];
	for (int i = 0; i < 4; i++)
		bits[i] = feed_u64(f);
	c.metric = feed_byte(f) % 2 ? METRIC_PEAK_MEMORY : METRIC_LATENCY;
	memcpy(&row.value_50, &bits[0], 8);
	memcpy(&row.value_20, &bits[1], 8);
	memcpy(&row.value_80, &bits[2], 8);
	row.observed_ms = (int64_t)(bits[3] % UINT64_C(253402300800000));
	run_units(&row, c.metric, row.value_50);
	if (!(row.value_50 > 0) || !record_units_fit(c.metric, row.value_50))
		return;
	bool both = row.value_20 > 0 && row.value_80 > 0 && record_units_fit(c.metric, row.value_20) && record_units_fit(c.metric, row.value_80);
	if (!both)
		row.value_20 = row.value_80 = NAN;
	run_body(&row, &c, &id, &body);
	must(record_run_values((struct slice){body.data, body.len}, c.metric, &found), "a body that is built has values");
	must(found.source_50 == row.value_50 && found.observed_ms == row.observed_ms, "a body gives back the row's median and time");
	must(!both || (found.source_20 == row.value_20 && found.source_80 == row.value_80), "a body gives back the row's spread");
	buf_fini(&id);
	buf_fini(&body);
}

static int compare_keys(const struct key *a, const struct key *b)
{
	must(a->val.mv_size == b->val.mv_size, "keys of a kind have one length");
	return memcmp(a->val.mv_data, b->val.mv_data, a->val.mv_size);
}

static void order_keys(struct feed *f)
{
	struct key a, b;
	struct digest d = digest_of("x", 1);
	uint64_t x = feed_u64(f), y = feed_u64(f);
	uint32_t m = (uint32_t)x, n = (uint32_t)y;
	int wanted = (m > n) - (m < n);
	key_u32(&a, m), key_u32(&b, n);
	must((compare_keys(&a, &b) > 0) - (compare_keys(&a, &b) < 0) == wanted, "byte order is number order");
	must(key_read_u32(&a.val, 0) == m, "a key gives back its number");
	key_digest_u32(&a, &d, m), key_digest_u32(&b, &d, n);
	must((compare_keys(&a, &b) > 0) - (compare_keys(&a, &b) < 0) == wanted, "byte order is number order behind a digest");
	must(key_read_u32(&a.val, DIGEST_SIZE) == m, "a key gives back the number behind its digest");
	key_u32_digest(&a, m, &d), key_u32_digest(&b, n, &d);
	must((compare_keys(&a, &b) > 0) - (compare_keys(&a, &b) < 0) == wanted, "byte order is number order before a digest");
	key_u64_u32(&a, x, 7), key_u64_u32(&b, y, 7);
	must((compare_keys(&a, &b) > 0) - (compare_keys(&a, &b) < 0) == (x > y) - (x < y), "byte order is the order of hashes");
	key_index(&a, INDEX_CASE, 1, m, 3), key_index(&b, INDEX_CASE, 1, n, 3);
	must((compare_keys(&a, &b) > 0) - (compare_keys(&a, &b) < 0) == wanted, "byte order is the order of segments");
	int64_t early = (int64_t)(x % 4102444800000), late = early + 1000;
	must(key_of_case(m, early) < key_of_case(m, late), "runs of a case are in order of time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	switch (feed_byte(&feed)) {
	case 'u': unpack_any(feed_rest(&feed)); break;
	case 'p': pack_any(feed_rest(&feed)); break;
	case 'r': read_ranges(feed_rest(&feed)); break;
	case 'a': add_ranges(&feed); break;
	case 'b': build_body(&feed); break;
	case 'k': order_keys(&feed); break;
	default: break;
	}
	return 0;
}
