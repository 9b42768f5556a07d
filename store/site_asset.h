/* The style sheet and the script of the site. */
#ifndef KI_STORE_SITE_ASSET_H
#define KI_STORE_SITE_ASSET_H

#include "store/site.h"

/* Writes assets/site.css and assets/site.js. */
int site_assets(struct site *s);

#endif
