/* Manifests: identity bodies of every kind, as canonical JSON (manifests.md sections 1 to 3), their digests, and the metadata
 * that travels beside them (names, titles, descriptions, labels; never part of identity). Bodies are written straight into a
 * buffer, names in canonical order. Slices in results live in the arena given. */
#ifndef KI_NORMALIZE_BUILD_H
#define KI_NORMALIZE_BUILD_H

#include "normalize/bind.h"
#include "normalize/curate.h"

/* What does not depend on a row: operations, projects, environments, protocols. Fills the objects of `c`. */
void build_tables(struct curate *c);

/* The implementation that a provider stands for in one operation; `segment` is the kernel's part of external ids. */
void build_implementation(const struct rule *rule, const struct provider *provider, struct arena *a, struct object *out);
/* The workload that a binding describes. */
void build_workload(const struct binding *b, struct arena *a, struct object *out);

/* The size of one dimension of a tensor of the binding's operation. */
int64_t build_dim(const struct binding *b, const struct dim *dim);

/* text_kebab of core/text.h. */
void build_kebab(struct slice text, struct buf *out);
/* `hidden4096-rows2048-bf16`; with the model's name behind where x is a model. Appends. */
void build_case_key(const struct binding *b, bool with_model, struct buf *out);
/* `rows = 2048 · hidden = 4096 · bf16` (manifests.md section 6). Appends. */
void build_workload_label(const struct binding *b, struct buf *out);

/* For manifests of other origin (a rerun's): wraps `spec`, which must be canonical JSON, into an identity body of `kind`. */
void build_identity(const char *kind, struct slice spec, struct arena *a, struct object *out);
/* The canonical metadata object; NULL members are left out. `labels` is canonical JSON or NULL. */
struct slice build_metadata(struct arena *a, const char *name, const char *title, const char *description, const char *labels);

#endif
