/* The coverage page: what each channel brought, what was skipped and why, how fresh it is, and what these numbers cannot say. */
#ifndef KI_STORE_SITE_COVERAGE_H
#define KI_STORE_SITE_COVERAGE_H

#include "store/site_html.h"

/* Writes coverage.html. */
int site_coverage(struct site *s);

#endif
