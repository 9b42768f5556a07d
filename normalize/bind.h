/* A row's kernel, swept value and config string to an operation, its axes, dtype and scalars, by the rules of config/. The first
 * rule that fits wins; nothing is guessed. */
#ifndef KI_NORMALIZE_BIND_H
#define KI_NORMALIZE_BIND_H

#include <jansson.h>

#include "normalize/curate.h"

enum { BIND_CONFIG_MAX = 64 * 1024 }; /* bytes of a config string */

struct binding {
	const struct rule *rule;
	int64_t axes[AXES_MAX]; /* as rule->axis_names: the bound ones, then the derived ones */
	const char *dtype;      /* token */
	double scalars[SCALARS_MAX]; /* as rule->scalars */
	const struct model *model;   /* NULL unless x is a model */
};

enum bind_result {
	BIND_OK,
	BIND_NO_RULE, /* no rule of this kernel fits */
	BIND_RANGE,   /* a rule would fit, but a size lies beyond +-(2^53 - 1) */
};

/* A config string as an object; NULL with `e` filled (ERR_DATA) when it is anything else: not JSON, duplicate names, NaN, too
 * long, too deep. The caller owns it. */
json_t *bind_config(struct slice text, struct err *e);
/* `config` must be an object. */
enum bind_result bind_row(const struct curate *c, struct slice kernel, struct slice x_name, struct slice x_value,
			  const json_t *config, struct binding *out);
/* Does one rule fit, and if not, why not: a sentence appended to `why` (may be NULL). The kernel is not looked at. */
enum bind_result bind_rule(const struct curate *c, const struct rule *rule, struct slice x_name, struct slice x_value,
			   const json_t *config, struct binding *out, struct buf *why);
/* Reads a decimal number, with fraction and exponent but nothing around it. NAN when the text is anything else. */
double bind_number(struct slice text);

#endif
