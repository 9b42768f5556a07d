/* A row's key: kernel, x_name, x_value, a line each, then the config string. Whatever binds describes a workload, has a key and a
 * label, and all of them are canonical. */
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "fuzz.h"
#include "normalize/build.h"

static void check_binding(const struct binding *b)
{
	struct arena a = {0};
	struct object workload;
	struct buf key = {0}, label = {0}, canonical = {0};
	struct err e = {0};
	build_workload(b, &a, &workload);
	json_t *body = json_load_text(workload.body.data, workload.body.len, "workload", &e);
	must(body && json_canonical(body, &canonical, &e) == 0, "a workload is JSON");
	must(slice_same(workload.body, (struct slice){canonical.data, canonical.len}), "a workload is canonical");
	build_case_key(b, true, &key);
	build_workload_label(b, &label);
	must(key.len > 0 && json_is_utf8(label.data, label.len), "a workload has a key and a label");
	json_decref(body);
	buf_fini(&key);
	buf_fini(&label);
	buf_fini(&canonical);
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	struct slice kernel = feed_line(&feed), x_name = feed_line(&feed), x_value = feed_line(&feed);
	struct err e = {0};
	struct binding b;
	json_t *config = bind_config(feed_rest(&feed), &e);
	must_agree(!config, &e);
	if (config && bind_row(fuzz_config(), kernel, x_name, x_value, config, &b) == BIND_OK)
		check_binding(&b);
	json_decref(config);
	return 0;
}
