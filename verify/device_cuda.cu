#include "verify/device.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>

namespace {

/* cuBLAS's version, if the library that kernels/gemm.h would find is there. */
void read_cublas(char *out, size_t out_size)
{
    const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so" };
    for (const char *name : names) {
        void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        int (*property)(int, int *) = so ? (int (*)(int, int *))dlsym(so, "cublasGetProperty") : NULL;
        int part[3] = { 0, 0, 0 };
        if (property && property(0, &part[0]) == 0 && property(1, &part[1]) == 0 && property(2, &part[2]) == 0) {
            snprintf(out, out_size, "%d.%d.%d", part[0], part[1], part[2]);
            return;
        }
    }
}

void put_uuid(const cudaUUID_t &u, char *out, size_t out_size)
{
    const unsigned char *b = (const unsigned char *)u.bytes;
    snprintf(out, out_size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
        b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

}

extern "C" int device_cuda_read(struct device_cuda *d, struct err *e)
{
    cudaDeviceProp p;
    int device = 0, count = 0;
    *d = {};
    cudaError_t rc = cudaGetDeviceCount(&count);
    if (rc == cudaSuccess && count == 0)
        return err_set(e, ERR_UNAVAILABLE, "no GPU here");
    if (rc == cudaSuccess)
        rc = cudaGetDevice(&device);
    if (rc == cudaSuccess)
        rc = cudaGetDeviceProperties(&p, device);
    if (rc == cudaSuccess)
        rc = cudaRuntimeGetVersion(&d->runtime);
    if (rc == cudaSuccess)
        rc = cudaDriverGetVersion(&d->driver);
    if (rc == cudaSuccess)
        rc = cudaDeviceGetPCIBusId(d->pci_bus, sizeof d->pci_bus, device);
    if (rc != cudaSuccess)
        return err_set(e, ERR_UNAVAILABLE, "no usable GPU here: %s", cudaGetErrorString(rc));
    snprintf(d->name, sizeof d->name, "%.120s", p.name);
    snprintf(d->compiler, sizeof d->compiler, "nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
    put_uuid(p.uuid, d->uuid, sizeof d->uuid);
    read_cublas(d->cublas, sizeof d->cublas);
    d->major = p.major;
    d->minor = p.minor;
    d->multiprocessors = p.multiProcessorCount;
    d->memory_bytes = (int64_t)p.totalGlobalMem;
    d->l2_bytes = p.l2CacheSize;
    d->ecc = p.ECCEnabled != 0;
    return 0;
}
