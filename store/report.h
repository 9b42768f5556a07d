/* `ki report`: the morning mail. What the newest publications brought, what got slower or faster since which commit, what
 * contradicts what, which numbers lead their group for the first time, and which want a rerun. One line for a kernel, pass,
 * provider and GPU with its range over sizes, not one for each size. Nothing at all when nothing new was published. */
#ifndef KI_STORE_REPORT_H
#define KI_STORE_REPORT_H

#include <stdio.h>

#include "store/catalog.h"

struct report_options {
	const char *config; /* directory */
	int64_t since_ms;   /* publications of our store from then on; 0: of the last 24 hours, so that a nightly mail is sent once */
	bool last;          /* instead: the newest publication and those up to 12 hours before it, one night, however long ago */
	uint64_t limit;     /* lines a section; 0: 10 */
	bool json;          /* one canonical object */
};

/* A change counts as new when it is not found without the new publications, nor in the eight nights before them. Contradictions, firsts and reruns are those flags
 * whose run is new (flag.h). Errors are those of change_points and flags_derive. */
int report_print(struct catalog *c, const struct report_options *options, FILE *out);

#endif
