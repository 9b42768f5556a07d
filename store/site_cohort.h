/* The page of a cohort: its ranking, ties, and ratios to the first. */
#ifndef KI_STORE_SITE_COHORT_H
#define KI_STORE_SITE_COHORT_H

#include "store/site_html.h"

/* `p` is reused from page to page. */
int site_cohort_page(struct page *p, struct site *s, const struct cohort *k);

#endif
