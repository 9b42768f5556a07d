#include "ingest/address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

struct block {
	uint8_t prefix[16];
	unsigned bits;
	int embedded; /* where an IPv4 address stands inside a matching IPv6 one; -1: refused as a whole */
};

/* iana-ipv4-special-registry, multicast (RFC 5771) and reserved (RFC 1112). */
static const struct block refused_v4[] = {
	{{0}, 8, -1},                /* this network, RFC 791 */
	{{10}, 8, -1},               /* private, RFC 1918 */
	{{100, 64}, 10, -1},         /* shared, RFC 6598 */
	{{127}, 8, -1},              /* loopback, RFC 1122 */
	{{169, 254}, 16, -1},        /* link-local, RFC 3927 */
	{{172, 16}, 12, -1},         /* private, RFC 1918 */
	{{192, 0, 0}, 24, -1},       /* IETF protocols, RFC 6890 */
	{{192, 0, 2}, 24, -1},       /* documentation, RFC 5737 */
	{{192, 31, 196}, 24, -1},    /* AS112, RFC 7535 */
	{{192, 52, 193}, 24, -1},    /* AMT, RFC 7450 */
	{{192, 88, 99}, 24, -1},     /* former 6to4 relays, RFC 7526 */
	{{192, 168}, 16, -1},        /* private, RFC 1918 */
	{{192, 175, 48}, 24, -1},    /* AS112, RFC 7534 */
	{{198, 18}, 15, -1},         /* benchmarking, RFC 2544 */
	{{198, 51, 100}, 24, -1},    /* documentation, RFC 5737 */
	{{203, 0, 113}, 24, -1},     /* documentation, RFC 5737 */
	{{224}, 4, -1},              /* multicast, RFC 5771 */
	{{240}, 4, -1},              /* reserved and broadcast, RFC 1112 */
};

/* iana-ipv6-special-registry. The first match decides; what matches none must lie in 2000::/3. */
static const struct block special_v6[] = {
	{{[10] = 0xff, [11] = 0xff}, 96, 12},           /* v4-mapped, RFC 4291 */
	{{0x00, 0x64, 0xff, 0x9b}, 96, 12},             /* NAT64, RFC 6052 */
	{{0x20, 0x02}, 16, 2},                          /* 6to4, RFC 3056 */
	{{0x20, 0x01, 0x00, 0x00}, 23, -1},             /* IETF protocols, Teredo among them, RFC 2928 */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, -1},             /* documentation, RFC 3849 */
	{{0x26, 0x20, 0x00, 0x4f, 0x80, 0x00}, 48, -1}, /* AS112, RFC 7534 */
	{{0x3f, 0xff}, 20, -1},                         /* documentation, RFC 9637 */
};

static bool inside(const uint8_t *address, const struct block *b)
{
	unsigned whole = b->bits / 8, rest = b->bits % 8;
	if (memcmp(address, b->prefix, whole) != 0)
		return false;
	return rest == 0 || ((address[whole] ^ b->prefix[whole]) >> (8 - rest)) == 0;
}

static bool public_v4(const uint8_t *address)
{
	for (size_t i = 0; i < sizeof refused_v4 / sizeof *refused_v4; i++)
		if (inside(address, &refused_v4[i]))
			return false;
	return true;
}

static bool public_v6(const uint8_t *address)
{
	for (size_t i = 0; i < sizeof special_v6 / sizeof *special_v6; i++)
		if (inside(address, &special_v6[i]))
			return special_v6[i].embedded >= 0 && public_v4(address + special_v6[i].embedded);
	return address[0] >> 5 == 1;
}

bool address_text_is_public(const char *text)
{
	uint8_t bytes[16];
	if (inet_pton(AF_INET, text, bytes) == 1)
		return public_v4(bytes);
	return inet_pton(AF_INET6, text, bytes) == 1 && public_v6(bytes);
}

bool address_text_is_loopback(const char *text)
{
	static const uint8_t loopback_v6[16] = {[15] = 1};
	uint8_t bytes[16];
	if (inet_pton(AF_INET, text, bytes) == 1)
		return bytes[0] == 127;
	return inet_pton(AF_INET6, text, bytes) == 1 && memcmp(bytes, loopback_v6, sizeof bytes) == 0;
}
