#include "store/site_html.h"

#include <string.h>

#include "core/json.h"
#include "store/leaf.h"

/* ---- escaping ---- */

/* Length of the UTF-8 character at `at`, 0 when it is none. */
static size_t decode(const unsigned char *at, size_t left, unsigned *code)
{
	size_t len = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (len > left || !json_is_utf8((const char *)at, len))
		return 0;
	*code = len == 1 ? at[0] : at[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		*code = *code << 6 | (at[i] & 0x3fu);
	return len;
}

/* Controls, and characters that show nothing or reorder others (Unicode's bidirectional controls and default ignorables). */
static bool hidden(unsigned code)
{
	static const struct {
		unsigned first, last;
	} ranges[] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
		      {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0},
		      {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* How many bytes from `at` on stand for themselves. */
static size_t plain(const unsigned char *at, const unsigned char *end, bool entities)
{
	const unsigned char *first = at;
	while (at < end && *at >= 0x20 && *at < 0x7f && !(entities && (*at == '&' || *at == '<' || *at == '>' || *at == '"' || *at == '\'')))
		at++;
	return (size_t)(at - first);
}

static const char *entity_of(unsigned code)
{
	switch (code) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&#39;";
	default: return NULL;
	}
}

static void put_visible(struct buf *out, struct slice text, bool entities)
{
	const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;
	while (at < end) {
		unsigned code = 0;
		size_t run = plain(at, end, entities);
		buf_add(out, at, run);
		at += run;
		if (at == end)
			break;
		size_t len = decode(at, (size_t)(end - at), &code);
		if (len == 0)
			buf_str(out, "\xef\xbf\xbd");
		else if (hidden(code))
			buf_printf(out, "[U+%04X]", code);
		else if (entities && entity_of(code))
			buf_str(out, entity_of(code));
		else
			buf_add(out, at, len);
		at += len ? len : 1;
	}
}

void html_text(struct buf *out, struct slice text)
{
	put_visible(out, text, true);
}

void html_str(struct buf *out, const char *text)
{
	put_visible(out, slice_of(text), true);
}

void html_visible(struct buf *out, struct slice text)
{
	put_visible(out, text, false);
}

void html_json(struct buf *out, struct slice text)
{
	struct buf shown = {0};
	html_visible(&shown, text);
	json_put_string(out, shown.data ? shown.data : "", shown.len);
	buf_fini(&shown);
}

void html_percent(struct buf *out, const char *text)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	for (const char *at = text; *at; at++)
		if (strchr(unreserved, *at))
			buf_char(out, *at);
		else
			buf_printf(out, "%%%02X", (unsigned char)*at);
}

/* ---- frame ---- */

static const struct {
	const char *name, *title;
} menu[] = {{"index.html", "Index"}, {"operations/index.html", "Operations"}, {"gpus/index.html", "GPUs"}, {"providers/index.html", "Providers"},
	    {"trends/index.html", "Trends"}, {"compare.html", "Compare"}, {"coverage.html", "Coverage"}};

void page_begin(struct page *p, struct site *s, const char *up, struct slice title)
{
	p->site = s;
	p->up = up;
	buf_clear(&p->out);
	page_str(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
	page_text(p, title);
	page_str(p, " \xc2\xb7 ");
	html_str(&p->out, site_text(s, "title"));
	page_str(p, "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n");
	page_printf(p, "<link rel=\"stylesheet\" href=\"%sassets/site.css\">\n<script src=\"%sassets/site.js\" defer></script>\n", up, up);
	page_str(p, "</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header><nav aria-label=\"Site\"><ul>");
	for (size_t i = 0; i < sizeof menu / sizeof *menu; i++)
		page_printf(p, "<li><a href=\"%s%s\">%s</a></li>", up, menu[i].name, menu[i].title);
	page_str(p, "</ul></nav></header>\n<main id=\"main\">\n<h1>");
	page_text(p, title);
	page_str(p, "</h1>\n");
}

int page_end(struct page *p, const char *name)
{
	page_str(p, "</main>\n</body>\n</html>\n");
	p->site->totals.pages++;
	return site_write(p->site, name, &p->out);
}

void page_fini(struct page *p)
{
	buf_fini(&p->out);
}

void page_str(struct page *p, const char *html)
{
	buf_str(&p->out, html);
}

void page_printf(struct page *p, const char *html, ...)
{
	va_list args;
	va_start(args, html);
	buf_vprintf(&p->out, html, args);
	va_end(args);
}

void page_text(struct page *p, struct slice text)
{
	html_text(&p->out, text);
}

/* ---- parts ---- */

void page_section(struct page *p, const char *id, const char *title)
{
	page_printf(p, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, title);
}

void page_row_open(struct page *p, const char *name)
{
	page_str(p, "<dt>");
	html_str(&p->out, name);
	page_str(p, "</dt><dd>");
}

void page_row_close(struct page *p)
{
	page_str(p, "</dd>\n");
}

void page_row(struct page *p, const char *name, struct slice text)
{
	page_row_open(p, name);
	page_text(p, text);
	page_row_close(p);
}

void page_row_str(struct page *p, const char *name, const char *text)
{
	page_row(p, name, slice_of(text));
}

void page_digest(struct page *p, const struct digest *d)
{
	char text[DIGEST_TEXT + 1];
	digest_text(d, text);
	page_printf(p, "<code>%s</code> <button type=\"button\" class=\"copy\">Copy</button>", text);
}

void page_link(struct page *p, const char *name, struct slice text)
{
	page_printf(p, "<a href=\"%s", p->up);
	html_str(&p->out, name);
	page_str(p, "\">");
	page_text(p, text);
	page_str(p, "</a>");
}

void page_url(struct page *p, const char *url)
{
	bool safe = strncmp(url, "https://", 8) == 0;
	if (safe) {
		page_str(p, "<a href=\"");
		html_str(&p->out, url);
		page_str(p, "\">");
	}
	html_str(&p->out, url);
	if (safe)
		page_str(p, "</a>");
}

void page_quantity(struct page *p, enum metric m, int64_t value)
{
	if (value >= 0)
		view_quantity(m, value, &p->out);
	else
		page_str(p, "\xe2\x80\x94");
}

void page_benchmark(struct page *p, const struct case_parts *c, bool link_gpu)
{
	char name[SITE_NAME_MAX];
	site_list_name("operations", c->operation_slug, name);
	page_str(p, "<p>");
	page_link(p, name, c->operation_title);
	page_str(p, " \xc2\xb7 ");
	page_text(p, c->mode);
	page_str(p, " \xc2\xb7 ");
	site_list_name("gpus", c->gpu, name);
	if (link_gpu)
		page_link(p, name, c->gpu);
	else
		page_text(p, c->gpu);
	page_str(p, "</p>\n<p>");
	page_text(p, c->workload_label);
	page_str(p, "</p>\n");
}

static void put_row(void *context, const char *name, struct slice text)
{
	page_row(context, name, text);
}

void page_leaves(struct page *p, const char *name, const json_t *value)
{
	leaf_each(name, value, put_row, p);
}

void page_table(struct page *p, const char *caption, const char *heads)
{
	page_printf(p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	html_str(&p->out, caption);
	page_str(p, "\">\n<table>\n<caption>");
	html_str(&p->out, caption);
	page_str(p, "</caption>\n<thead><tr>");
	for (const char *at = heads, *end; *at; at = *end ? end + 1 : end) {
		bool number = *at == '#';
		end = strchr(at, '|');
		end = end ? end : at + strlen(at);
		page_printf(p, "<th scope=\"col\"%s>%.*s</th>", number ? " class=\"n\"" : "", (int)(end - at - number), at + number);
	}
	page_str(p, "</tr></thead>\n<tbody>\n");
}

void page_table_end(struct page *p)
{
	page_str(p, "</tbody>\n</table>\n</div>\n");
}
