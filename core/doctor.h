/* `ki doctor`: looks at everything that a night needs, changes nothing, and says of each thing whether it is fine, deserves a look, or
 * will fail, and what to do. */
#ifndef KI_CORE_DOCTOR_H
#define KI_CORE_DOCTOR_H

#include "core/err.h"

/* argv[0] is the verb. The error's code is that of the first check that failed; warnings are no error. */
int doctor_main(int argc, char **argv, struct err *e);

#endif
