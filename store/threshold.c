#include "store/threshold.h"

int thresholds_read(const json_t *table, const struct threshold *wanted, size_t count, const char *file, const char *where, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_object_get(table, wanted[i].name), *value = json_object_get(item, "value");
		double number = json_number_value(value);
		if (!json_is_number(value) || number < wanted[i].least || number >= wanted[i].below || !json_is_string(json_object_get(item, "reason")))
			return err_at(e, ERR_CONFIG, file, 0, 0, "%s%s: wants {\"value\": a number from %g to below %g, \"reason\": text}", where, wanted[i].name,
				      wanted[i].least, wanted[i].below);
		*wanted[i].to = number;
	}
	return 0;
}
