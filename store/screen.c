#include "store/screen.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/text.h"

enum { WIDTH = 100, WIDTH_MIN = 40, WIDTH_MAX = 10000, HANG_MIN = 4, UNIT_MAX = 4 /* bytes of `KiB,` */ };

static unsigned width_of(FILE *out)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	int fd = fileno(out);
	unsigned long width = fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
	if (width == 0 && columns)
		width = strtoul(columns, NULL, 10);
	if (width == 0 || width > WIDTH_MAX)
		return 0;
	return width < WIDTH_MIN ? WIDTH_MIN : (unsigned)width;
}

struct screen screen_of(FILE *out, bool ascii)
{
	unsigned width = width_of(out);
	return (struct screen){out, width ? width : WIDTH, width > 0, ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0};
}

static size_t next_character(const char *text)
{
	size_t len = 1;
	while (((unsigned char)text[len] & 0xc0) == 0x80)
		len++;
	return len;
}

size_t screen_columns(const char *text)
{
	size_t columns = 0;
	for (; *text; text += next_character(text))
		columns++;
	return columns;
}

void screen_cut(const struct screen *s, const char *text, size_t columns, struct buf *out)
{
	const char *ellipsis = s->ascii ? "..." : "\xe2\x80\xa6";
	size_t kept = columns - screen_columns(ellipsis), len = 0;
	if (!s->fitted || screen_columns(text) <= columns) {
		buf_str(out, text);
		return;
	}
	for (; kept > 0; kept--)
		len += next_character(text + len);
	buf_add(out, text, len);
	buf_str(out, ellipsis);
}

/* ---- lines ---- */

static void put_ascii(struct buf *out, const char *text)
{
	static const struct {
		const char *character, *words;
	} known[] = {{"\xc2\xb5", "u"}, {"\xc2\xb7", "|"}, {"\xc3\x97", "x"}, {"\xe2\x80\x93", "-"}, {"\xe2\x80\x94", "-"}, {"\xe2\x80\xa6", "..."}};
	for (size_t len; *text; text += len) {
		const char *words = "?";
		len = next_character(text);
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (strncmp(text, known[i].character, len) == 0)
				words = known[i].words;
		if ((unsigned char)*text < 0x80)
			buf_char(out, *text);
		else
			buf_str(out, words);
	}
}

/* Whether a line may end at the space at `at`: not between a number and its unit or the sign that parts it from the next, nor beside
 * an equals sign. */
static bool is_break(const char *text, size_t at)
{
	bool number = text[at - 1] >= '0' && text[at - 1] <= '9';
	if (text[at - 1] == '=' || text[at + 1] == '=')
		return false;
	return !number || strcspn(text + at + 1, " ") > UNIT_MAX;
}

/* Where the last columns of `room` end a line: at a space; or after a slash, when the word that begins at the space fills more than
 * `next` columns; or within the word, when there is neither. In bytes, at least one. */
static size_t break_of(const char *text, size_t room, size_t next)
{
	size_t at = 0, space = 0, slash = 0, indent = strspn(text, " ");
	for (size_t columns = 0; columns <= room; columns++) {
		if (at > indent && text[at] == ' ' && is_break(text, at))
			space = at;
		if (at > indent && text[at - 1] == '/')
			slash = at;
		if (columns < room)
			at += next_character(text + at);
	}
	if (space && strcspn(text + space + 1, " ") <= next)
		return space;
	return slash > space ? slash : space ? space : at;
}

static void put_piece(FILE *out, size_t indent, const char *text, size_t len)
{
	while (len > 0 && text[len - 1] == ' ')
		len--;
	fprintf(out, "%*s", (int)indent, "");
	fwrite(text, 1, len, out);
	fputc('\n', out);
}

static void wrap(const struct screen *s, size_t hang, const char *text)
{
	size_t indent = 0;
	if (hang > s->width / 2)
		hang = HANG_MIN;
	while (s->fitted && screen_columns(text) > s->width - indent) {
		size_t len = break_of(text, s->width - indent, s->width - hang);
		put_piece(s->out, indent, text, len);
		text += len + strspn(text + len, " ");
		if (strcspn(text, " ") > s->width - hang)
			hang = HANG_MIN; /* a digest, say; and so to the end of the line */
		indent = hang;
	}
	put_piece(s->out, indent, text, strlen(text));
}

void screen_line(const struct screen *s, unsigned hang, const char *text)
{
	struct buf shown = {0}, plain = {0};
	text_put_printable(&shown, text, strlen(text));
	if (s->ascii && s->fitted)
		put_ascii(&plain, shown.data);
	wrap(s, hang, plain.data ? plain.data : shown.data);
	buf_fini(&shown);
	buf_fini(&plain);
}

void screen_printf(const struct screen *s, unsigned hang, const char *format, ...)
{
	struct buf line = {0};
	va_list args;
	va_start(args, format);
	buf_vprintf(&line, format, args);
	va_end(args);
	screen_line(s, hang, line.data);
	buf_fini(&line);
}

void screen_block(const struct screen *s, const char *lines)
{
	for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
		screen_printf(s, 0, "%.*s", (int)(end - lines), lines);
}

void screen_heading(const struct screen *s, const char *text)
{
	fputc('\n', s->out);
	screen_line(s, 0, text);
}

void screen_field(const struct screen *s, const char *name, const char *format, ...)
{
	struct buf line = {0};
	va_list args;
	buf_printf(&line, "  %-*s ", SCREEN_FIELD - 3, name);
	va_start(args, format);
	buf_vprintf(&line, format, args);
	va_end(args);
	screen_line(s, SCREEN_FIELD, line.data);
	buf_fini(&line);
}
