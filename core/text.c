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
