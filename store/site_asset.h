/* The style sheet and the script of the site. */
#ifndef KI_STORE_SITE_ASSET_H
#define KI_STORE_SITE_ASSET_H

#include "store/site.h"

/* Writes an asset that is kept in the source as a list of texts. */
int site_put_asset(struct site *s, const char *name, const char *const *lines, size_t count);
/* Writes assets/site.css and assets/site.js. */
int site_assets(struct site *s);

#endif
