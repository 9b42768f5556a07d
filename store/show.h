/* One run, whole: for people (text) and for programs (one canonical JSON object). */
#ifndef KI_STORE_SHOW_H
#define KI_STORE_SHOW_H

#include <stdio.h>

#include "store/view.h"

/* Writes run number `run` to `out`. */
int show_text(struct catalog *c, uint32_t run, FILE *out);
int show_json(struct catalog *c, uint32_t run, FILE *out);
/* Writes the canonical identity body of any object, case excluded, by its digest: ERR_NOTFOUND when unknown. */
int show_object(struct catalog *c, const struct digest *d, FILE *out);

#endif
