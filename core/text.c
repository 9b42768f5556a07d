#include "core/text.h"

#include "core/json.h"

void text_put_printable(struct buf *out, const char *text, size_t len)
{
	bool utf8 = json_is_utf8(text, len);
	buf_add(out, "", 0); /* an empty text is one too */
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i], next = i + 1 < len ? (unsigned char)text[i + 1] : 0;
		if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_printf(out, "\\x%02x", c);
		else if (c == 0xc2 && next < 0xa0)
			buf_printf(out, "\\x%02x", (unsigned char)text[++i]);
		else
			buf_char(out, (char)c);
	}
}

void text_kebab(struct slice text, struct buf *out)
{
	size_t start = out->len;
	bool dash = false;
	for (size_t i = 0; i < text.len && out->len - start < 100; i++) {
		char c = text.data[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
			dash = out->len > start;
			continue;
		}
		if (dash)
			buf_char(out, '-');
		dash = false;
		if (out->len - start < 100)
			buf_char(out, c);
	}
	buf_add(out, "", 0);
}
