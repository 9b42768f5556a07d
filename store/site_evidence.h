/* What stands behind a run's numbers: doubts, reruns, notes, and where it was published. Sections of its page. */
#ifndef KI_STORE_SITE_EVIDENCE_H
#define KI_STORE_SITE_EVIDENCE_H

#include "store/site_html.h"

/* A box with the flags of a run; nothing when there are none. */
void site_put_flags(struct page *p, uint32_t run);
/* Reruns of it, or what it is the rerun of, with class, verdict and policy; notes. */
void site_put_reruns(struct page *p, const struct whole *w);
/* Predecessor, successor, and every publication that carried it. */
void site_put_history(struct page *p, const struct whole *w);

#endif
