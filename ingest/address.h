/* Which network addresses a fetch may connect to: global unicast ones, and nothing else.
 *
 * Refused are all blocks of the IANA special-purpose registries (RFC 6890 and its updates: private, loopback, link-local,
 * shared/CGNAT, documentation, benchmarking, multicast, reserved) of IPv4, and everything outside 2000::/3 as well as the
 * special blocks inside it of IPv6. An IPv4 address carried inside an IPv6 one (v4-mapped RFC 4291, NAT64 RFC 6052, 6to4
 * RFC 3056) is judged as that IPv4 address. Pure functions: no look-up, no state. */
#ifndef KI_INGEST_ADDRESS_H
#define KI_INGEST_ADDRESS_H

#include <stdbool.h>

/* For text as in `192.0.2.1` or `2001:db8::1`; false when it is no address. */
bool address_text_is_public(const char *text);
/* True when the text is an IPv4 or IPv6 address in the loopback block. */
bool address_text_is_loopback(const char *text);

#endif
