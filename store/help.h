/* What `ki-store VERB --help` says. Man pages and completions are made from this text, so an option is described here and nowhere else.
 * Its shape, which all programs of this project share: `usage:` lines, a paragraph, then for each option a line of two blanks, the option,
 * its value in capitals (or its choices joined by |), and what it does; a longer text goes on in the same column. */
#ifndef KI_STORE_HELP_H
#define KI_STORE_HELP_H

#include <stdio.h>

#include "core/err.h"

/* `options` are the names that the verb takes beside the common ones, separated by blanks. ERR_BUG when one of them is described
 * nowhere. */
int help_verb(const char *verb, const char *operands, const char *what, const char *options, FILE *out, struct err *e);

#endif
