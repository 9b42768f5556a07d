/* Where a value stands in a JSON text: line and column for messages about config files. The loader keeps no positions, so this
 * walks the text again, and only when something is wrong. Leaves all checking to core/json. */
#ifndef KI_INGEST_POSITION_H
#define KI_INGEST_POSITION_H

#include <stddef.h>

struct position_step {
	const char *name; /* member of an object, or NULL */
	size_t index;     /* element of an array when `name` is NULL */
};

/* Position (1-based) of what `steps` lead to in a well-formed text: the name of a member, or the start of an element. Stops at
 * the last step that exists. */
void position_find(const char *text, size_t len, const struct position_step *steps, size_t count, unsigned *line, unsigned *column);

#endif
