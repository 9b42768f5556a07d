/* The record's events: what changed ranks, derived from the ordered log of publications and the signed corrections among them. */
#ifndef KI_STORE_EVENT_H
#define KI_STORE_EVENT_H

#include <stdio.h>

#include "store/catalog.h"

/* Every change of a cohort's leader, and every retraction and its undoing with the ranks it changed, newest first, at most `limit`
 * (0: all): time, cause, old and new. Publications and entries stand in the order in which the store took them. */
int event_print(struct catalog *c, uint64_t limit, bool json, FILE *out);

#endif
