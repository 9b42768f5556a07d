/* What this GPU, its driver, its clocks and its host are; and whether it stayed well.
 *
 * The driver's management library (NVML) is looked for at run time and may be missing: then what only it knows is left out of
 * evidence, and health is "not watched". CUDA's own facts come from a worker process, because the watchdog never touches CUDA. */
#ifndef KI_VERIFY_DEVICE_H
#define KI_VERIFY_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define DEVICE_OPTIONAL
#else
#define DEVICE_OPTIONAL __attribute__((weak)) /* NULL without nvcc */
#endif

#include "core/err.h"

/* As the CUDA runtime knows the current device. */
struct device_cuda {
    char name[128], uuid[64], pci_bus[32]; /* uuid: "GPU-xxxxxxxx-…" */
    char compiler[64], cublas[32];         /* cublas: "" when it is not installed */
    int major, minor, multiprocessors;
    int runtime, driver;                   /* 13000 for 13.0 */
    int64_t memory_bytes, l2_bytes;
    bool ecc;
};
/* ERR_UNAVAILABLE, in words, when there is no usable GPU. */
int device_cuda_read(struct device_cuda *, struct err *) DEVICE_OPTIONAL;

enum { DEVICE_UNKNOWN = -1 };

/* As NVML knows it; DEVICE_UNKNOWN or "" for what it would not say. */
struct device_nvml {
    char driver[80], vbios[64];
    int power_limit_mw, persistence, ecc, mig;
    int sm_mhz, sm_max_mhz, memory_mhz, memory_max_mhz, temperature_c, power_mw;
};

/* Counters that must not move during a batch; -1 where not watched. */
struct device_health {
    int64_t ecc_corrected, ecc_uncorrected, xid; /* xid: events seen since nvml_open */
    int64_t last_xid;                            /* number of the newest, or -1 */
};

struct nvml;
/* For the device on a PCI bus address. NULL when NVML is missing or does not know it: not an error. */
struct nvml *nvml_open(const char *pci_bus);
void nvml_close(struct nvml *);
void nvml_read(struct nvml *, struct device_nvml *);
void nvml_health(struct nvml *, struct device_health *);

/* Reasons for which the clock is held down, as bits of NVML; 0 when it is free or nobody says. Only those that mark a sample: slowdowns
 * by hardware, heat or a power brake. A power cap is the product's own limit, not a disturbance. */
uint32_t nvml_throttle(void *nvml);
/* The power cap bit alone. */
bool nvml_power_capped(struct nvml *);

struct device_host {
    char cpu[128], kernel[96], os[96], machine[65]; /* machine: SHA-256 of this machine's id, hex; "" when it has none */
};
void device_host_read(struct device_host *);

#ifdef __cplusplus
}
#endif

#endif
