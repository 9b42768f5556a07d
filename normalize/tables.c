#include "normalize/tables.h"

#include "core/arena.h"
#include "core/file.h"
#include "normalize/document.h"

int tables_digest(const char *directory, char out[DIGEST_TEXT + 1], struct err *e)
{
	static const char *const names[] = {"bindings.json", "entries.json", "hardware.json", "providers.json"};
	struct buf path = {0}, bytes = {0};
	int rc = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s", directory, names[i]);
		rc = file_read(path.data, DOCUMENT_MAX, &bytes, e);
	}
	if (rc == 0) {
		struct digest d = digest_of(bytes.data, bytes.len);
		digest_text(&d, out);
	} else {
		err_in_config(e);
	}
	buf_fini(&path);
	buf_fini(&bytes);
	return rc;
}
