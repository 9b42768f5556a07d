/* What an interrupted writer left beyond the published counts, where no reader looks. */
#ifndef KI_STORE_RECOVER_H
#define KI_STORE_RECOVER_H

#include "store/store.h"

/* Drops it. Every writer begins with this. */
int recover_store(struct store *st, struct err *e);

#endif
