/* What rows share: a table from the raw text of a row's key (kernel, provider, mode, metric, unit, x_name, x_label, x_value,
 * config, gpu) to all that follows from it, so that a config string is parsed and bound once and not for each row. Also which
 * objects have been put on the wire already. Both are bounded: when the table has grown too large it is emptied, and objects are
 * then put again, which the store does not mind. */
#ifndef KI_NORMALIZE_CASES_H
#define KI_NORMALIZE_CASES_H

#include "normalize/build.h"
#include "normalize/reject.h"

enum key_field {
	KEY_KERNEL,
	KEY_PROVIDER, /* after overrides */
	KEY_MODE,
	KEY_METRIC,
	KEY_UNIT,
	KEY_X_NAME,
	KEY_X_LABEL,
	KEY_X_VALUE,
	KEY_CONFIG,
	KEY_GPU,
	KEY_FIELDS,
};

/* What a key came to. Text and pointers are valid until the next cases_find. */
struct known_case {
	bool bound;
	enum reason reason;      /* not bound: why */
	struct slice name;       /* SKIP_*: what is unknown */
	enum key_field field;    /* REJECT_*: which field is wrong */
	const char *text;        /* REJECT_*: the sentence for the report */
	struct run_parts run;    /* bound: all but external id, values and time are filled */
	struct slice prefix;     /* of the external id, with the last `/` */
	struct digest digest;    /* of the case */
	struct digest comparison_key;
	const struct rule *rule;
	const struct mode *mode;
	const struct provider *provider;
	const struct gpu *gpu;
	struct buf caveats;      /* for the file numbered `file` */
	unsigned file;
};

struct cases;
struct cases *cases_new(const struct curate *c);
void cases_free(struct cases *t);
/* Finds or makes the case of a key. A new one, with what it cites, is put on `wire` (NULL: nowhere) before it is returned. */
struct known_case *cases_find(struct cases *t, const struct slice key[KEY_FIELDS], struct buf *wire);
/* Forgets what was put on the wire, after a file that was cut off. */
void cases_reset(struct cases *t);

#endif
