#include "verify/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/file.h"

/* The part of NVML's interface that is used; 0 is success everywhere. */
typedef struct nvml_device *device_handle;
typedef struct nvml_event_set *event_set;
struct event_data {
    device_handle device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_VOLATILE = 0 };
static const unsigned long long event_xid = 8;
static const unsigned long long throttle_power_cap = 0x4, throttle_marks = 0x8 | 0x20 | 0x40 | 0x80;

struct nvml {
    void *library;
    device_handle device;
    event_set events; /* NULL when Xid events cannot be had */
    int64_t xids, last_xid;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *, device_handle *);
    int (*driver)(char *, unsigned);
    int (*vbios)(device_handle, char *, unsigned);
    int (*power_limit)(device_handle, unsigned *);
    int (*persistence)(device_handle, unsigned *);
    int (*ecc_mode)(device_handle, unsigned *, unsigned *);
    int (*mig_mode)(device_handle, unsigned *, unsigned *);
    int (*clock)(device_handle, int, unsigned *);
    int (*max_clock)(device_handle, int, unsigned *);
    int (*temperature)(device_handle, int, unsigned *);
    int (*power)(device_handle, unsigned *);
    int (*ecc_errors)(device_handle, int, int, unsigned long long *);
    int (*throttle)(device_handle, unsigned long long *);
    int (*event_create)(event_set *);
    int (*event_register)(device_handle, unsigned long long, event_set);
    int (*event_wait)(event_set, struct event_data *, unsigned);
    int (*event_free)(event_set);
};

/* Every function may be missing in an old driver; callers ask. dlsym's void * becomes a function pointer through memcpy. */
static void find(struct nvml *n, const char *name, void *function)
{
    void *at = dlsym(n->library, name);
    memcpy(function, &at, sizeof at);
}

static void find_all(struct nvml *n)
{
    find(n, "nvmlInit_v2", &n->init);
    find(n, "nvmlShutdown", &n->shutdown);
    find(n, "nvmlDeviceGetHandleByPciBusId_v2", &n->by_bus);
    find(n, "nvmlSystemGetDriverVersion", &n->driver);
    find(n, "nvmlDeviceGetVbiosVersion", &n->vbios);
    find(n, "nvmlDeviceGetPowerManagementLimit", &n->power_limit);
    find(n, "nvmlDeviceGetPersistenceMode", &n->persistence);
    find(n, "nvmlDeviceGetEccMode", &n->ecc_mode);
    find(n, "nvmlDeviceGetMigMode", &n->mig_mode);
    find(n, "nvmlDeviceGetClockInfo", &n->clock);
    find(n, "nvmlDeviceGetMaxClockInfo", &n->max_clock);
    find(n, "nvmlDeviceGetTemperature", &n->temperature);
    find(n, "nvmlDeviceGetPowerUsage", &n->power);
    find(n, "nvmlDeviceGetTotalEccErrors", &n->ecc_errors);
    find(n, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->throttle);
    find(n, "nvmlEventSetCreate", &n->event_create);
    find(n, "nvmlDeviceRegisterEvents", &n->event_register);
    find(n, "nvmlEventSetWait_v2", &n->event_wait);
    find(n, "nvmlEventSetFree", &n->event_free);
}

static void watch_xid(struct nvml *n)
{
    if (!n->event_create || !n->event_register || !n->event_wait || !n->event_free || n->event_create(&n->events) != 0)
        n->events = NULL;
    else if (n->event_register(n->device, event_xid, n->events) != 0) {
        n->event_free(n->events);
        n->events = NULL;
    }
}

struct nvml *nvml_open(const char *pci_bus)
{
    struct nvml *n = xcalloc(1, sizeof *n);
    n->last_xid = -1;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library)
        find_all(n);
    if (!n->library || !n->init || !n->by_bus || n->init() != 0 || n->by_bus(pci_bus, &n->device) != 0) {
        nvml_close(n);
        return NULL;
    }
    watch_xid(n);
    return n;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    if (n->events)
        n->event_free(n->events);
    if (n->device && n->shutdown)
        n->shutdown();
    if (n->library)
        dlclose(n->library);
    free(n);
}

static int one(const struct nvml *n, int (*get)(device_handle, unsigned *))
{
    unsigned v = 0;
    return get && get(n->device, &v) == 0 ? (int)v : DEVICE_UNKNOWN;
}

static int mode(const struct nvml *n, int (*get)(device_handle, unsigned *, unsigned *))
{
    unsigned v = 0, pending = 0;
    return get && get(n->device, &v, &pending) == 0 ? (int)v : DEVICE_UNKNOWN;
}

static int of_kind(const struct nvml *n, int (*get)(device_handle, int, unsigned *), int kind)
{
    unsigned v = 0;
    return get && get(n->device, kind, &v) == 0 ? (int)v : DEVICE_UNKNOWN;
}

void nvml_read(struct nvml *n, struct device_nvml *d)
{
    *d = (struct device_nvml){ .driver = "" };
    const struct nvml none = { 0 };
    const struct nvml *f = n ? n : &none;
    if (n && n->driver && n->driver(d->driver, sizeof d->driver) != 0)
        d->driver[0] = 0;
    if (n && n->vbios && n->vbios(n->device, d->vbios, sizeof d->vbios) != 0)
        d->vbios[0] = 0;
    d->power_limit_mw = one(f, f->power_limit);
    d->persistence = one(f, f->persistence);
    d->power_mw = one(f, f->power);
    d->ecc = mode(f, f->ecc_mode);
    d->mig = mode(f, f->mig_mode);
    d->sm_mhz = of_kind(f, f->clock, CLOCK_SM);
    d->memory_mhz = of_kind(f, f->clock, CLOCK_MEMORY);
    d->sm_max_mhz = of_kind(f, f->max_clock, CLOCK_SM);
    d->memory_max_mhz = of_kind(f, f->max_clock, CLOCK_MEMORY);
    d->temperature_c = of_kind(f, f->temperature, 0);
}

static int64_t ecc(const struct nvml *n, int type)
{
    unsigned long long v = 0;
    return n->ecc_errors && n->ecc_errors(n->device, type, ECC_VOLATILE, &v) == 0 ? (int64_t)v : DEVICE_UNKNOWN;
}

void nvml_health(struct nvml *n, struct device_health *h)
{
    *h = (struct device_health){ -1, -1, -1, -1 };
    if (!n)
        return;
    h->ecc_corrected = ecc(n, ECC_CORRECTED);
    h->ecc_uncorrected = ecc(n, ECC_UNCORRECTED);
    struct event_data event;
    while (n->events && n->event_wait(n->events, &event, 0) == 0) {
        n->xids++;
        n->last_xid = (int64_t)event.data;
    }
    h->xid = n->events ? n->xids : -1;
    h->last_xid = n->last_xid;
}

static unsigned long long reasons(const struct nvml *n)
{
    unsigned long long v = 0;
    return n && n->throttle && n->throttle(n->device, &v) == 0 ? v : 0;
}

uint32_t nvml_throttle(void *nvml)
{
    return (uint32_t)(reasons(nvml) & throttle_marks);
}

bool nvml_power_capped(struct nvml *n)
{
    return (reasons(n) & throttle_power_cap) != 0;
}

/* The value of the first line of a file that begins with `name`, after any of " \t:=", without quotes. */
static void read_value(const char *path, const char *name, char *out, size_t out_size)
{
    char line[512];
    FILE *f = fopen(path, "re");
    out[0] = 0;
    while (f && !out[0] && fgets(line, sizeof line, f)) {
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        char *value = line + strlen(name);
        value += strspn(value, " \t:=\"");
        value[strcspn(value, "\"\n")] = 0;
        snprintf(out, out_size, "%s", value);
    }
    if (f)
        fclose(f);
}

void device_host_read(struct device_host *h)
{
    struct utsname u;
    char id[128];
    *h = (struct device_host){ .cpu = "" };
    read_value("/proc/cpuinfo", "model name", h->cpu, sizeof h->cpu);
    read_value("/etc/os-release", "PRETTY_NAME", h->os, sizeof h->os);
    if (uname(&u) == 0)
        snprintf(h->kernel, sizeof h->kernel, "%.32s %.60s", u.sysname, u.release);
    read_value("/etc/machine-id", "", id, sizeof id);
    if (id[0]) {
        char text[192];
        int n = snprintf(text, sizeof text, "kernelindex machine %s", id);
        struct digest d = digest_of(text, (size_t)n);
        digest_hex(&d, h->machine);
    }
}
