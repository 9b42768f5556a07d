/* config/env-v1.json: whether a rerun's GPU and code count as the record's. Data decides; this file only compares. */
#ifndef KI_VERIFY_EQUIVALENCE_H
#define KI_VERIFY_EQUIVALENCE_H

#include "core/arena.h"
#include "verify/bundle.h"

/* A GPU as a record or an environment states it. */
struct gpu_facts {
    const char *product, *form_factor; /* form_factor "": not stated */
    int64_t memory_bytes;              /* 0: not stated */
};

struct equivalence {
    const char *policy;                /* "env-v1" */
    bool product, form_factor, memory; /* must be equal where the record states them */
    const char **framework;            /* prefixes of providers */
    struct { const char *package, *commit, *version; struct digest files; } *code; /* one of commit and version is "" */
    int frameworks, codes;
};

/* Checked whole; an unknown or missing field is ERR_CONFIG. Lives in the arena. */
int equivalence_load(const char *path, struct arena *, struct equivalence *, struct err *);

bool equivalence_same_gpu(const struct equivalence *, const struct gpu_facts *record, const struct gpu_facts *here);
bool equivalence_is_framework(const struct equivalence *, const char *provider);
/* Whether the installed files are those of the commit (or, without one, of the version) that the record names. */
bool equivalence_same_code(const struct equivalence *, const char *commit, const char *version, const struct bundle *);

#endif
