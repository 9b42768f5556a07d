#include "verify/driver.h"

#include <dlfcn.h>
#include <stdio.h>

/* Signatures as in the CUDA driver API reference; a CUdeviceptr is 64 bits wide. */
static struct {
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*function)(void **, void *, const char *);
    int (*attribute)(void *, int, int);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*fill)(unsigned long long, unsigned char, size_t, void *);
    int (*copy)(unsigned long long, unsigned long long, size_t, void *);
    int (*name)(int, const char **);
} cu; /* the library's functions: one a process, like the library */

enum { MAX_DYNAMIC_SHARED = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static int load(void **module, const void *image)
{
    return cu.load(module, image);
}

static int unload(void *module)
{
    return cu.unload(module);
}

static int function(void **out, void *module, const char *name)
{
    return cu.function(out, module, name);
}

static int allow_shared(void *f, unsigned size_bytes)
{
    return cu.attribute(f, MAX_DYNAMIC_SHARED, (int)size_bytes);
}

static int launch(void *f, const unsigned grid[3], unsigned threads, unsigned shared_bytes, void *stream, void **args)
{
    return cu.launch(f, grid[0], grid[1], grid[2], threads, 1, 1, shared_bytes, stream, args, NULL);
}

static int zero(void *at, size_t size_bytes, void *stream)
{
    return cu.fill((unsigned long long)(size_t)at, 0, size_bytes, stream);
}

static int copy(void *to, const void *from, size_t size_bytes, void *stream)
{
    return cu.copy((unsigned long long)(size_t)to, (unsigned long long)(size_t)from, size_bytes, stream);
}

static const char *text(int error)
{
    const char *name = NULL;
    return cu.name(error, &name) == 0 && name ? name : "unknown driver error";
}

static const struct driver real = { load, unload, function, allow_shared, launch, zero, copy, text };

const struct driver *driver_find(struct err *e)
{
    const struct { const char *name; void *to; } all[] = {
        { "cuModuleLoadData", &cu.load }, { "cuModuleUnload", &cu.unload }, { "cuModuleGetFunction", &cu.function },
        { "cuFuncSetAttribute", &cu.attribute }, { "cuLaunchKernel", &cu.launch }, { "cuMemsetD8Async", &cu.fill },
        { "cuMemcpyDtoDAsync_v2", &cu.copy }, { "cuGetErrorName", &cu.name },
    };
    if (cu.load)
        return &real;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        err_set(e, ERR_UNAVAILABLE, "the CUDA driver is not installed here (libcuda.so.1)");
        return NULL;
    }
    for (size_t i = sizeof all / sizeof all[0]; i-- > 0;) { /* load last: it says that all are there */
        *(void **)all[i].to = dlsym(library, all[i].name);
        if (!*(void **)all[i].to) {
            cu.load = NULL;
            err_set(e, ERR_UNAVAILABLE, "this CUDA driver has no %s", all[i].name);
            return NULL;
        }
    }
    return &real;
}
