#include "core/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arena.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13) /* ABI 2 */
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3 */
#endif

static const uint64_t READS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t WRITES = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			       LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE;
/* Nobody needs these anywhere. */
static const uint64_t NEVER = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			      LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
/* What can be allowed on something that is no folder. */
static const uint64_t OF_FILES = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;

/* As later headers than Debian 12's have it. */
struct ruleset {
	uint64_t files, network, scopes; /* ABI 1, 4, 6 */
};
enum { SCOPE_SIGNAL = 1 << 1 };

/* What the kernel's version of Landlock knows, of all the above; 0 without Landlock. */
static uint64_t known_accesses(long abi)
{
	uint64_t all = READS | WRITES | NEVER;
	if (abi < 1)
		return 0;
	if (abi < 2)
		all &= ~(uint64_t)LANDLOCK_ACCESS_FS_REFER;
	if (abi < 3)
		all &= ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
	return all;
}

/* Opens a path for a rule; with `above`, the nearest folder above what is not there. */
static int open_path(const char *path, bool above)
{
	char *copy = xstrdup(path);
	int fd = open(copy, O_PATH | O_CLOEXEC);
	while (fd < 0 && above && (errno == ENOENT || errno == ENOTDIR)) {
		char *slash = strrchr(copy, '/');
		if (slash && slash > copy)
			*slash = '\0';
		else
			strcpy(copy, slash ? "/" : ".");
		fd = open(copy, O_PATH | O_CLOEXEC);
	}
	free(copy);
	return fd;
}

static int allow(int rules, const char *path, uint64_t accesses, bool writes, struct err *e)
{
	struct stat st;
	struct landlock_path_beneath_attr rule = {.allowed_access = accesses, .parent_fd = open_path(path, writes)};
	if (rule.parent_fd < 0)
		return writes ? err_errno(e, path, "cannot open for Landlock") : 0;
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	long rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (rc != 0)
		err_at(e, ERR_NOPERM, path, 0, 0, "Landlock takes no rule: %s", strerror(errno));
	close(rule.parent_fd);
	return rc ? -1 : 0;
}

int landlock_enter(const char *const *reads, const char *const *writes, bool runs, struct err *e)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t known = known_accesses(abi) & ~(runs ? (uint64_t)LANDLOCK_ACCESS_FS_EXECUTE : 0);
	struct ruleset attributes = {.files = reads ? known : known & ~READS, .scopes = runs && abi >= 6 ? SCOPE_SIGNAL : 0};
	if (known == 0)
		return err_set(e, ERR_NOPERM, "this kernel has no Landlock, or it is switched off: %s", strerror(errno));
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, attributes.scopes ? sizeof attributes : sizeof attributes.files, 0);
	if (rules < 0)
		return err_set(e, ERR_NOPERM, "Landlock: %s", strerror(errno));
	int rc = 0;
	for (; rc == 0 && reads && *reads; reads++)
		rc = allow(rules, *reads, known & READS, false, e);
	for (; rc == 0 && writes && *writes; writes++)
		rc = allow(rules, *writes, attributes.files & ~NEVER, true, e);
	if (rc == 0 && syscall(SYS_landlock_restrict_self, rules, 0) != 0)
		rc = err_set(e, ERR_NOPERM, "Landlock: %s", strerror(errno));
	close(rules);
	return rc;
}
