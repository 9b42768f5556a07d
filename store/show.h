/* One run, whole: for people (text) and for programs (one canonical JSON object). */
#ifndef KI_STORE_SHOW_H
#define KI_STORE_SHOW_H

#include <stdio.h>

#include "store/screen.h"
#include "store/view.h"

/* Writes run number `run`: what its page on the site says, in the page's order. Source, licence and where to report a fault are those of
 * site.json in `config`, doubts follow from its flags.json; where those cannot be read, or `config` is NULL, it goes without and says so. */
int show_text(struct catalog *c, uint32_t run, const char *config, const struct screen *on);
int show_json(struct catalog *c, uint32_t run, FILE *out);
/* Writes the canonical identity body of any object, case excluded, by its digest: ERR_NOTFOUND when unknown. */
int show_object(struct catalog *c, const struct digest *d, FILE *out);

#endif
