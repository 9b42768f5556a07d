/* Text of others, shown to people. */
#ifndef KI_CORE_TEXT_H
#define KI_CORE_TEXT_H

#include "core/arena.h"

/* Appends text so that a terminal only shows it: control characters (C0, DEL, C1) and, where the whole is not UTF-8, every byte
 * beyond ASCII become \xNN. */
void text_put_printable(struct buf *out, const char *text, size_t len);

#endif
