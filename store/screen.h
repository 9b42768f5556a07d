/* Output that a person reads: how wide it is, and which characters it can show.
 *
 * On a terminal, and wherever COLUMNS is set, no line is wider than that: what does not fit is wrapped between words, names of
 * tables are cut with an ellipsis, digests and numbers never are. Elsewhere lines are as long as they are, so that grep finds all,
 * and drawings are made for 100 columns. No escape code is ever written; controls in texts of upstream are written out. */
#ifndef KI_STORE_SCREEN_H
#define KI_STORE_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "core/arena.h"

struct screen {
	FILE *out;
	unsigned width; /* columns, 40 or more */
	bool fitted;    /* lines keep to the width */
	bool ascii;     /* drawings are of 7-bit characters, and where lines are fitted so is the text */
};
/* Width by the terminal, else COLUMNS, else 100. `ascii` asks for 7-bit characters whatever the locale's character set is, which
 * the program must have taken from the environment (setlocale). */
struct screen screen_of(FILE *out, bool ascii);

/* Writes one line; a second one and later ones begin after `hang` spaces, or after fewer where a long word wants it. */
void screen_line(const struct screen *s, unsigned hang, const char *text);
void screen_printf(const struct screen *s, unsigned hang, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Writes every line of a drawing; each ends in a newline. */
void screen_block(const struct screen *s, const char *lines);
/* An empty line and a heading. */
void screen_heading(const struct screen *s, const char *text);
/* A name, and in a column of its own what it is; an empty name continues the line before. */
enum { SCREEN_FIELD = 19 }; /* where that column begins */
void screen_field(const struct screen *s, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Columns of a text: a character is one. */
size_t screen_columns(const char *text);
/* Appends a name, cut with an ellipsis to so many columns where lines are fitted. */
void screen_cut(const struct screen *s, const char *text, size_t columns, struct buf *out);

#endif
