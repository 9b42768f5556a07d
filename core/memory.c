#include "core/memory.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "core/arena.h"

static void *take(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return xmalloc(size);
}

static void *take_again(void *old, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return xrealloc(old, size);
}

static void leave(void *old, const char *file, int line)
{
	(void)file;
	(void)line;
	free(old);
}

void memory_hold(void)
{
	json_set_alloc_funcs(xmalloc, free);
	CRYPTO_set_mem_functions(take, take_again, leave);
}
