/* The trend pages: how the latency of one benchmark went from publication to publication, with the versions and the change points
 * marked. A benchmark here is a case (series.h): a page has a section for each channel that published it, and is made when one of
 * these series has two points or more. */
#ifndef KI_STORE_SITE_TREND_H
#define KI_STORE_SITE_TREND_H

#include "store/site_html.h"

/* Finds which cases have a page, from s->changes, into s->trends. */
void site_trends_load(struct site *s);
void site_trends_free(struct trends *t); /* NULL is fine */

/* The name of the page of a case; false when it has none. */
bool site_trend_name(const struct site *s, const struct catalog_case *of, char out[SITE_NAME_MAX]);
/* A link to the page of a case by its provider's title, with its newest change points behind it; nothing when it has none. */
void site_trend_link(struct page *p, const struct catalog_case *of);

/* Writes trends/AB/CASE.html for each, and trends/index.html: all change points, newest first. */
int site_trends(struct site *s);

#endif
