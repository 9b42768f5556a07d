#include "ingest/header.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/json.h"

char *header_text(const char *value)
{
	size_t len = value ? strlen(value) : 0;
	if (len == 0 || len > HEADER_TEXT_MAX || !json_is_utf8(value, len))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return NULL;
	return xstrdup(value);
}

int64_t header_number(const char *value)
{
	size_t len = value ? strlen(value) : 0;
	if (len == 0 || len > 15 || strspn(value, "0123456789") != len)
		return -1;
	return strtoll(value, NULL, 10);
}
