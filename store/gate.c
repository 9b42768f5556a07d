#include "store/put.h"

#include <string.h>

#include "core/json.h"

static int number_of(const json_t *root, const char *name, const char *file, double *out, struct err *e)
{
	const json_t *value = json_object_get(json_object_get(root, name), "value");
	if (!json_is_number(value) || json_number_value(value) < 0)
		return err_at(e, ERR_CONFIG, file, 0, 0, "%s: wants {\"value\": a number of at least 0, \"reason\": text}", name);
	*out = json_number_value(value);
	return 0;
}

static int read_gates(const json_t *root, const char *file, struct gates *out, struct err *e)
{
	const json_t *drift = json_object_get(json_object_get(root, "driftRefused"), "value");
	if (!json_is_boolean(drift))
		return err_at(e, ERR_CONFIG, file, 0, 0, "driftRefused: wants {\"value\": true or false, \"reason\": text}");
	out->drift_refused = json_is_true(drift);
	return number_of(root, "rejectedShareMax", file, &out->rejected_share_max, e) ||
			       number_of(root, "skippedShareMax", file, &out->skipped_share_max, e) ||
			       number_of(root, "shrinkShareMax", file, &out->shrink_share_max, e)
		       ? -1
		       : 0;
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
