/* HTML text: escaping, and the frame that all pages share.
 *
 * Whatever comes from upstream goes through html_text: the five characters of HTML become entities; controls, bidirectional marks
 * and other characters that show nothing or reorder what stands around them are written out, `[U+202E]`; bytes that are not UTF-8
 * become U+FFFD. The result is safe in text and in a quoted attribute. */
#ifndef KI_STORE_SITE_HTML_H
#define KI_STORE_SITE_HTML_H

#include "store/site.h"

void html_text(struct buf *out, struct slice text);
void html_str(struct buf *out, const char *text);
/* The first half of it, without entities: for texts that a script will show. */
void html_visible(struct buf *out, struct slice text);
/* The same as a JSON string. */
void html_json(struct buf *out, struct slice text);
/* Percent-encodes everything but unreserved characters (RFC 3986 section 2.3). */
void html_percent(struct buf *out, const char *text);

struct page {
	struct site *site;
	struct buf out;
	const char *up; /* from the page to the site's root: "", "../" or "../../" */
};
/* Starts a page: head, skip link, navigation, `<main>` and `<h1>`. `p` starts zeroed and may be used again. */
void page_begin(struct page *p, struct site *s, const char *up, struct slice title);
/* Ends it and writes it under `name`. */
int page_end(struct page *p, const char *name);
void page_fini(struct page *p);

void page_str(struct page *p, const char *html); /* as it is */
void page_printf(struct page *p, const char *html, ...) __attribute__((format(printf, 2, 3))); /* likewise: for numbers and own names */
void page_text(struct page *p, struct slice text); /* escaped */

/* `<section>` with a heading; close with page_str(p, "</section>\n"). */
void page_section(struct page *p, const char *id, const char *title);
/* A line of a `<dl>`: name and escaped text; or with the value written between open and close. */
void page_row(struct page *p, const char *name, struct slice text);
void page_row_str(struct page *p, const char *name, const char *text);
void page_row_open(struct page *p, const char *name);
void page_row_close(struct page *p);
/* A digest in full, with a button that copies it. */
void page_digest(struct page *p, const struct digest *d);
/* A link within the site: `name` as the functions of site.h make it. */
void page_link(struct page *p, const char *name, struct slice text);
/* Two paragraphs at the head of a page: operation, pass and GPU, which `link_gpu` makes a link; and the workload. */
void page_benchmark(struct page *p, const struct case_parts *c, bool link_gpu);
/* A link elsewhere when `url` begins with https://, else its text. */
void page_url(struct page *p, const char *url);
/* A value in stored units as people read it, or an em dash. */
void page_quantity(struct page *p, enum metric m, int64_t value);
/* All leaves of a JSON tree, as `<dl>` lines `a.b.c`, in the order of their names. */
void page_leaves(struct page *p, const char *name, const json_t *value);
/* A table that scrolls by itself when it is wider than the page; close with page_table_end. `heads` is separated by `|`; a
 * column whose head begins with `#` is aligned as numbers are. */
void page_table(struct page *p, const char *caption, const char *heads);
void page_table_end(struct page *p);

#endif
