#include "normalize/canon.h"

#include <stdlib.h>

#include "core/digest.h"
#include "core/json.h"

/* The canonical text of one document, or its digest; 0 or -1. */
static int canon_text(const char *text, size_t len, bool digest, const char *name, struct buf *out, struct err *e)
{
	json_t *value = json_load_numbers_as_double(text, len, name, e);
	buf_clear(out);
	int rc = value ? json_canonical(value, out, e) : -1;
	json_decref(value);
	if (rc == 0 && digest) {
		char hex[DIGEST_TEXT + 1];
		struct digest d = digest_of(out->data, out->len);
		digest_text(&d, hex);
		buf_clear(out);
		buf_str(out, hex);
	}
	return rc;
}

int canon_lines(FILE *in, const char *name, FILE *out, bool digest, void (*refused)(const struct err *), struct err *e)
{
	struct buf text = {0};
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0, bad = 0;
	ssize_t len;
	while ((len = getline(&line, &room, in)) >= 0) {
		struct err why = {0};
		number++;
		if (len > 0 && line[len - 1] == '\n')
			len--;
		if (canon_text(line, (size_t)len, digest, name, &text, &why)) {
			why.line = number;
			buf_clear(&text);
			bad++;
			refused(&why);
		}
		buf_char(&text, '\n');
		fwrite(text.data, 1, text.len, out);
	}
	free(line);
	buf_fini(&text);
	if (ferror(in))
		return err_errno(e, name, "reading");
	return bad ? err_at(e, ERR_DATA, name, 0, 0, "%u of %u lines have no canonical text", bad, number) : 0;
}
