/* The page of a run: what was measured, of what, how, where, and the evidence behind it; and the JSON beside it. */
#ifndef KI_STORE_SITE_RUN_H
#define KI_STORE_SITE_RUN_H

#include "store/site_html.h"

/* Writes the page and the JSON of `m`; `p` and `w` are reused from run to run. */
int site_run_page(struct page *p, struct whole *w, struct site *s, const struct cohort *k, const struct member *m);

#endif
