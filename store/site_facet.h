/* The pages of GPUs and of providers: what was measured on each, or of each, by operation; and the lists of them. */
#ifndef KI_STORE_SITE_FACET_H
#define KI_STORE_SITE_FACET_H

#include "store/site_html.h"

/* Writes gpus/NAME.html and providers/NAME.html, and their index pages. Sorts s->runs. Names that differ only in what a file name
 * leaves out share a page. */
int site_facets(struct site *s);

#endif
