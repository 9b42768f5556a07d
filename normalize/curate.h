/* What config/ says: operations, binding rules, models, dtypes, modes, caveats, providers and their projects, GPUs, overrides
 * and the commits of known gh-pages entries. Loaded once, checked whole, read-only afterwards; everything lives in one arena.
 * What these tables do not know is skipped and counted by the caller, never guessed.
 *
 * Files: bindings.json (grammar: docs/bindings.md), providers.json, hardware.json, entries.json. Any mistake is ERR_CONFIG with
 * file, line and column: syntax, unknown or missing keys, names an expression cannot know, unknown guards, dtypes, operations or
 * caveats, shapes that name an axis no rule binds, an operation without tensors, and a rule that can never fire because an
 * earlier one takes all its rows. */
#ifndef KI_NORMALIZE_CURATE_H
#define KI_NORMALIZE_CURATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"
#include "core/expr.h"
#include "normalize/record.h"

enum { AXES_MAX = 16, GUARDS_MAX = 24, DIMS_MAX = 8, SCALARS_MAX = 8, METRICS = METRIC_PEAK_MEMORY + 1 };

/* An identity body with its digest and the metadata that goes with it; filled by build.h. */
struct object {
	struct slice body, metadata;
	struct digest digest;
};

struct list {
	const char **items;
	size_t count;
};
bool list_has(const struct list *l, struct slice item);

struct dtype {
	const char *upstream, *token; /* torch.bfloat16, bf16 */
};

struct mode {
	const char *name, *pass; /* `the module forward pass` */
	bool prior;
	struct object protocol[METRICS];
};

struct model {
	const char *name, *dtype;
	const char **names; /* numeric fields, as `model.<field>` */
	int64_t *values;
	size_t count;
};

struct dim {
	const char *name; /* NULL: the literal number */
	int64_t number;
};

struct tensor {
	const char *name, *dtype; /* dtype `cfg` stands for the dtype of the case */
	struct dim dims[DIMS_MAX];
	size_t rank;
};

struct derived {
	const char *name, *expression;
};

struct operation {
	const char *slug, *family, *title, *description;
	bool prior;
	struct tensor *inputs, *outputs;
	size_t input_count, output_count;
	struct derived derived[AXES_MAX];
	size_t derived_count;
	struct list variables; /* names used in shapes that are not derived */
	struct object object;
};

enum guard_type { GUARD_INT, GUARD_POSITIVE, GUARD_NUMBER, GUARD_DTYPE, GUARD_BOOL, GUARD_CONST };
struct guard {
	const char *key;
	enum guard_type type;
	json_t *constant; /* GUARD_CONST: borrowed from the loaded document */
};

struct scalar {
	const char *name, *key; /* key NULL: the literal number */
	double number;
};

enum dtype_from { DTYPE_LITERAL, DTYPE_CONFIG, DTYPE_MODEL };

/* Names of a rule's expressions, in this order: x, the config keys, the fields of the models. */
struct rule {
	const char *id;     /* stable text: kernel:x(keys) */
	const char *kernel, *segment; /* segment: the kernel's part of external ids */
	const char *pointer; /* where in bindings.json */
	const struct operation *operation;
	bool prior, quirk, closed, x_any, x_model;
	struct list x_names, not_x_names;
	struct guard guards[GUARDS_MAX];
	size_t guard_count;
	struct expr *zero[AXES_MAX];
	size_t zero_count;
	const char *axis_names[AXES_MAX]; /* the bound axes, then the derived ones */
	struct expr *axes[AXES_MAX];
	size_t axis_count;
	struct expr *derived[AXES_MAX]; /* over axis_names */
	uint8_t sorted[AXES_MAX], shown[AXES_MAX]; /* the bound axes by name; by length, then name */
	enum dtype_from dtype_from;
	const char *dtype; /* DTYPE_LITERAL: the token; DTYPE_CONFIG: the config key */
	struct scalar scalars[SCALARS_MAX]; /* sorted by name */
	size_t scalar_count;
	struct list caveats; /* sorted */
};

/* A caveat applies where any of its windows does, or everywhere when it has none. An empty list stands for all. Without
 * `memory`, a window is about times only. */
struct window {
	struct list sources, kernels, modes, providers;
	bool memory;
};
struct caveat {
	const char *code, *text;
	struct window *windows;
	size_t window_count;
};

struct project {
	const char *slug, *name;
	struct slice spec; /* canonical */
	struct object object;
};

struct provider {
	const char *name, *title, *language, *declared, *concluded, *package, *description;
	const struct project *project;
	bool prior, baseline;
};

struct gpu {
	const char *name;
	bool prior;
	struct slice spec; /* canonical */
	struct object object;
};

struct override {
	const char *channel, *revision, *provider, *use;
};

struct entry {
	const char *name, *commit;
};

struct curate {
	struct arena arena;
	const char *bindings_path;
	struct dtype *dtypes;
	struct mode *modes;
	struct model *models;
	struct operation *operations;
	struct rule *rules; /* in order: the first that fits wins */
	struct caveat *caveats;
	struct project *projects;
	struct provider *providers;
	struct gpu *gpus;
	struct override *overrides;
	struct entry *entries;
	size_t dtype_count, mode_count, model_count, operation_count, rule_count, script_only_count, caveat_count, project_count,
		provider_count, gpu_count, override_count, entry_count;
	struct list model_fields; /* of all models, as `model.<field>` */
	json_t *bindings; /* keeps the constants of guards alive */
};

/* Loads and checks the directory. NULL with `e` filled (ERR_CONFIG). */
struct curate *curate_new(const char *directory, struct err *e);
void curate_free(struct curate *c);

/* NULL when unknown. */
const struct mode *curate_mode(const struct curate *c, struct slice name);
const struct model *curate_model(const struct curate *c, struct slice name);
const struct provider *curate_provider(const struct curate *c, struct slice name);
const struct gpu *curate_gpu(const struct curate *c, struct slice name);
const char *curate_dtype(const struct curate *c, struct slice upstream);
const char *curate_entry(const struct curate *c, struct slice entry); /* its full commit */
/* True when at least one rule is about this kernel. */
bool curate_kernel(const struct curate *c, struct slice kernel);
/* What a provider name stands for in a file of `channel` at `commit` (12 or more hex digits; empty: unknown). Returns `provider`
 * itself when no override applies. `*any` tells whether the channel and commit have overrides at all. */
struct slice curate_override(const struct curate *c, struct slice channel, struct slice commit, struct slice provider, bool *any);
/* Appends the codes that apply to a row, comma-joined in order. `source`: `ghp:<entry>`, or the channel. */
void curate_caveats(const struct curate *c, const struct rule *rule, const char *mode, const char *provider, enum metric metric,
		    struct slice source, struct buf *out);

#endif
