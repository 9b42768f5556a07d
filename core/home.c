#include "core/home.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/file.h"

static const char *own_directory(struct arena *a)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
	char *own = len > 0 ? arena_strndup(a, path, (size_t)len) : arena_strdup(a, (const char *)getauxval(AT_EXECFN)); /* no /proc */
	char *slash = strrchr(own, '/');
	if (!slash)
		return ".";
	*slash = '\0';
	return own;
}

const char *home_program(struct arena *a, const char *name)
{
	return arena_printf(a, "%s/%s", own_directory(a), name);
}

const char *home_config(struct arena *a, const char *given, struct err *e)
{
	static const char *const beside[] = {"../../config", "../../../config", "../etc/kernelindex", "../../etc/kernelindex"};
	if (!given)
		given = getenv("KI_CONFIG");
	if (given)
		return given;
	for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
		const char *path = arena_printf(a, "%s/%s", own_directory(a), beside[i]);
		if (file_exists(path))
			return path;
	}
	err_set(e, ERR_CONFIG, "no config directory beside %s: give --config DIR or set KI_CONFIG", own_directory(a));
	return NULL;
}

const char *home_store(const char *given)
{
	if (!given)
		given = getenv("KI_STORE");
	return given ? given : "var/store";
}
