#include "store/put.h"

#include "core/json.h"
#include "store/threshold.h"

static int read_gates(const json_t *root, const char *file, struct gates *out, struct err *e)
{
	const json_t *drift = json_object_get(json_object_get(root, "driftRefused"), "value");
	if (!json_is_boolean(drift))
		return err_at(e, ERR_CONFIG, file, 0, 0, "driftRefused: wants {\"value\": true or false, \"reason\": text}");
	out->drift_refused = json_is_true(drift);
	const struct threshold wanted[] = {
		{"rejectedShareMax", &out->rejected_share_max, 0, 1e9}, {"skippedShareMax", &out->skipped_share_max, 0, 1e9}, {"shrinkShareMax", &out->shrink_share_max, 0, 1e9}};
	return thresholds_read(root, wanted, sizeof wanted / sizeof *wanted, file, "", e);
}

int gates_load(const char *config_directory, struct gates *out, struct err *e)
{
	struct buf path = {0};
	buf_printf(&path, "%s/gates.json", config_directory);
	json_t *root = json_load_config(path.data, e);
	int rc = root ? read_gates(root, path.data, out, e) : -1;
	json_decref(root);
	buf_fini(&path);
	return rc;
}
