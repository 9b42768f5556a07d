/* The pages of operations: what was measured of each, by GPU, pass and dtype; and the list of them. */
#ifndef KI_STORE_SITE_OPERATION_H
#define KI_STORE_SITE_OPERATION_H

#include "store/site_html.h"

/* Writes operations/SLUG.html for every operation that has runs, and operations/index.html. Sorts s->runs. */
int site_operations(struct site *s);

#endif
