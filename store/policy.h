/* Thresholds and floors from config/: flags.json (when a number deserves doubt), floors.json (the least work of an operation) and
 * the data-sheet peaks of hardware.json. Loaded whole; a missing or mistyped member is ERR_CONFIG with its name. */
#ifndef KI_STORE_POLICY_H
#define KI_STORE_POLICY_H

#include "store/catalog.h"

struct policy {
	double floor_allowance, hard_floor_bytes, launch_ratio, launch_median_ns, flat_time_ratio, flat_floor_ratio, spread_ratio,
		contradiction_ratio, drop_ratio, outlier_ratio, record_gain, flush_ns;
	const char *name;    /* `flags-v1` */
	struct policy_tables *tables;
};
int policy_load(const char *config_directory, struct policy *out, struct err *e);
void policy_fini(struct policy *p);

struct floor {
	bool known, hard;    /* known: the operation has a floor in this pass, and the GPU a data sheet */
	double bytes, flops; /* of one call */
	double ns;           /* the longer of bytes over bandwidth and flops over the matrix rate; no allowance */
};
/* The floor of a case. ERR_CORRUPT when its workload is unreadable; a config expression that names no axis of it is ERR_CONFIG. */
int policy_floor(struct policy *p, struct catalog *c, const struct catalog_case *k, struct floor *out);

/* A data-sheet peak of a GPU (`GBps`, `bf16TFLOPs`, `tf32TFLOPs`, `fp32TFLOPs`); 0 when unknown. */
double policy_peak(const struct policy *p, struct slice gpu, const char *name);
/* Time budget of upstream's timer for a kernel, in ms. `channel` decides where it is one with a budget of its own. */
double policy_budget_ms(const struct policy *p, struct slice kernel, const char *channel);
/* How many samples upstream's timer can have taken of a call this long (verification.md section 1); at least 1. */
double policy_samples(const struct policy *p, struct slice kernel, const char *channel, double median_ns);

#endif
