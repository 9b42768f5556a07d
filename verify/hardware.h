/* config/hardware.json: what a device name stands for, and the peaks of its data sheet. */
#ifndef KI_VERIFY_HARDWARE_H
#define KI_VERIFY_HARDWARE_H

#include "core/arena.h"
#include "core/err.h"
#include "verify/light.h"

struct hardware {
    const char *vendor, *product, *architecture, *form_factor; /* form_factor "" when it has none */
    struct peak peak;                                          /* zeros when the table has no entry or no peak */
};

/* The entry of a name; a name that is not in the table stands for itself, with architecture sm_<major><minor>. */
int hardware_find(const char *path, const char *name, int major, int minor, struct arena *, struct hardware *, struct err *);

#endif
