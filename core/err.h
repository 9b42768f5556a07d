/* Errors that travel up once.
 *
 * A function that can fail returns 0 or -1 (or NULL) and fills the `struct err` it was handed; the first error wins, so a
 * caller may run several steps and look once. Nothing below main() prints. Codes are the process exit codes (sysexits and a
 * few of our own), listed in README.md. */
#ifndef KI_CORE_ERR_H
#define KI_CORE_ERR_H

#include <stdbool.h>
#include <stddef.h>

enum err_code {
	ERR_NONE = 0,
	ERR_PARTIAL = 1,      /* done, but some rows were malformed */
	ERR_USAGE = 64,       /* bad arguments, or an ambiguous name */
	ERR_DATA = 65,        /* input or gate refused */
	ERR_NOTFOUND = 66,    /* no such record or file */
	ERR_UNAVAILABLE = 69, /* no GPU or no nvcc here */
	ERR_BUG = 70,         /* a broken promise of our own */
	ERR_IO = 74,          /* disk, pipe, full device */
	ERR_TEMP = 75,        /* try again later: upstream down, store busy, out of memory or descriptors */
	ERR_NOPERM = 77,      /* not permitted, by the system or by fetch policy */
	ERR_CONFIG = 78,      /* config/ is wrong */
	ERR_CORRUPT = 80,     /* the store is damaged */
};

struct err {
	enum err_code code;
	unsigned line, column; /* 1-based; 0 when they do not apply */
	char file[256];        /* file or key the error is about; "" when none */
	char text[2048];       /* room for a list of candidates */
};

/* Fills `e` unless it already holds an error. Returns -1, so that `return err_set(...)` reads well. */
int err_set(struct err *e, enum err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with a position: file, line and column (0 for unknown). */
int err_at(struct err *e, enum err_code code, const char *file, unsigned line, unsigned column, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* The code of an errno: ENOENT and ENOTDIR are ERR_NOTFOUND, EACCES, EPERM and EROFS ERR_NOPERM, a lack that passes (memory,
 * descriptors, processes, locks) ERR_TEMP, the rest ERR_IO. */
enum err_code err_code_of(int number);
/* Fills `e` from errno. */
int err_errno(struct err *e, const char *file, const char *what);
/* What is wrong with a file of config/ is ERR_CONFIG: its text, its absence, its mode. A disk or a machine that fails is not. */
void err_in_config(struct err *e);
/* ERR_USAGE for what getopt_long just called '?' (with opterr 0), naming the word and `prog --help`. */
int err_option(struct err *e, char *const *argv, const char *prog);
/* Writes `file:line:column: text` into `out`, leaving out what is unknown. Returns `out`. */
const char *err_format(const struct err *e, char *out, size_t out_size);

#endif
