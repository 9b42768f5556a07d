/* Files: the only writer of files, and the few readers that everything shares. Every file is written as a temporary beside its
 * final name, synced, renamed, and its directory synced, so that a name never shows half a file. */
#ifndef KI_CORE_FILE_H
#define KI_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/err.h"

/* Reads a whole file of at most `max` bytes into `out` (appended). ERR_DATA when it is larger. */
int file_read(const char *path, size_t max, struct buf *out, struct err *e);
/* Writes `len` bytes under `path` with `mode`, replacing what was there, durably. */
int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *e);

/* Writes a file that can be made again at any time: only when its bytes differ from what is there, whose name and time then stay
 * as they are (*written tells). A temporary and a rename, but no sync: after a crash it may be short, and the next call mends it. */
int file_refresh(const char *path, const void *data, size_t len, mode_t mode, bool *written, struct err *e);
/* The same in pieces: begin makes `<path>.tmp.<pid>`, commit syncs and renames it, abort removes it. Free both ways. */
struct file_out;
struct file_out *file_begin(const char *path, mode_t mode, struct err *e);
int file_add(struct file_out *f, const void *data, size_t len, struct err *e);
int file_commit(struct file_out *f, struct err *e); /* frees `f`, also when it fails */
/* The same under another name in the same directory, for files named by their contents. */
int file_commit_as(struct file_out *f, const char *path, struct err *e);
void file_abort(struct file_out *f);                /* frees `f`; NULL is fine */

/* A temporary is `<path>.tmp.<pid>`, a file or a directory. Its maker holds it locked (flock) for as long as it lives, so one that can
 * be locked is nobody's. file_sweep removes what dead makers of `path` left beside it, file_sweep_directory whatever dead makers left in
 * a directory; trouble is no error, for the next sweep may do better. */
void file_sweep(const char *path);
void file_sweep_directory(const char *directory);
/* Makes a temporary directory, with missing parents, to build a tree in that will be moved to `path`; its name in `out`. Returns its
 * descriptor, to close when it has been moved or removed, or -1. */
int file_begin_directory(const char *path, struct buf *out, struct err *e);
/* Ends it: when `rc` is 0 it is synced and gets its name durably, which must be new (file_move_new); else, and when that fails, it is removed.
 * `held` is what file_begin_directory returned, -1 too; frees `temporary`. Returns 0, or -1. */
int file_end_directory(int held, struct buf *temporary, const char *path, int rc, struct err *e);
/* Syncs the directory in which `path` lies: what was made, renamed or removed there then lasts. */
int file_sync_parent(const char *path, struct err *e);

/* Makes a directory and its missing parents, mode 0755 whatever the umask says. */
int file_make_dirs(const char *path, struct err *e);
/* False only when it is sure that nothing is there: what cannot be looked at is left to whoever opens it, who can say why. */
bool file_exists(const char *path);
/* Syncs a directory, so that what it names survives. */
int file_sync_directory(const char *path, struct err *e);
/* Gives a file or a whole tree, synced already, the name `to`, durably. ERR_USAGE when that exists. When it fails the name
 * is not given. */
int file_move_new(const char *from, const char *to, struct err *e);
/* Removes a file or a tree as well as it can. */
void file_remove_tree(const char *path);
/* Whether two files are there with the same time of last change. */
bool file_same_time(const char *path, const char *other);
/* Writes all of `len` bytes to a descriptor. */
int file_write_all(int fd, const void *data, size_t len, const char *name, struct err *e);
/* Takes an exclusive lock that dies with the process: ERR_TEMP when another holds it. Returns the descriptor or -1. */
int file_lock(const char *path, struct err *e);
/* Opens /dev/null for reading on every closed standard stream, so that no file of ours takes its number and is written to
 * instead; writing to the stand-in fails, as it should. For main(), first of all. */
void file_hold_streams(void);
/* Flushes and checks stdout; ERR_IO when something written to it was lost. A closed pipe ends the process quietly. */
int file_flush_stdout(struct err *e);

#endif
