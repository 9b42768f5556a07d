#include "normalize/hash.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

static uint64_t mix(uint64_t a, uint64_t b)
{
	u128 product = (u128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes at a time: multiply, fold the halves. */
uint64_t hash_bytes(const char *data, size_t len)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ len, word;
	for (; len >= sizeof word; data += sizeof word, len -= sizeof word) {
		memcpy(&word, data, sizeof word);
		h = mix(h ^ word, UINT64_C(0xd6e8feb86659fd93));
	}
	word = 0;
	memcpy(&word, data, len);
	return mix(h ^ word, UINT64_C(0xa0761d6478bd642f));
}
