/* Libraries answer a lack of memory with NULL, and a JSON value that is NULL passes for one that is not there. So jansson and OpenSSL
 * allocate through arena.h, where a lack ends the process. For main(), before either is used. */
#ifndef KI_CORE_MEMORY_H
#define KI_CORE_MEMORY_H

void memory_hold(void);

#endif
