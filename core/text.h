/* Text of others: shown to people, or made part of a name. */
#ifndef KI_CORE_TEXT_H
#define KI_CORE_TEXT_H

#include "core/arena.h"

/* Appends text so that a terminal only shows it: control characters (C0, DEL, C1) and, where the whole is not UTF-8, every byte
 * beyond ASCII become \xNN. */
void text_put_printable(struct buf *out, const char *text, size_t len);
/* kebab() of manifests.md section 3: lowercase, every run of characters outside [a-z0-9] one `-`, none at the ends, at most 100
 * characters. Appends; out->data is a text afterwards, if an empty one. */
void text_kebab(struct slice text, struct buf *out);

#endif
