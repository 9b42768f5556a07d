#include "verify/hardware.h"

#include "core/json.h"

static const char *text_of(json_t *o, const char *name, const char *absent, struct arena *a)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text ? arena_strdup(a, text) : absent;
}

static double number_of(json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

int hardware_find(const char *path, const char *name, int major, int minor, struct arena *a, struct hardware *h, struct err *e)
{
    json_t *document = json_load_config(path, e);
    if (!document)
        return -1;
    json_t *entry = json_object_get(json_object_get(document, "hardware"), name), *spec = json_object_get(entry, "spec");
    json_t *peak = json_object_get(entry, "peak");
    *h = (struct hardware){
        .vendor = text_of(spec, "vendor", "nvidia", a),
        .product = text_of(spec, "product", arena_strdup(a, name), a),
        .architecture = text_of(spec, "architecture", arena_printf(a, "sm_%d%d", major, minor), a),
        .form_factor = text_of(spec, "formFactor", "", a),
        .peak = { number_of(peak, "GBps"), number_of(peak, "bf16TFLOPs"), number_of(peak, "tf32TFLOPs"), number_of(peak, "fp32TFLOPs") },
    };
    json_decref(document);
    return 0;
}
