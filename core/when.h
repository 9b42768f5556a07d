/* Times: milliseconds since 1970-01-01T00:00:00Z as int64_t (`_ms`), proleptic Gregorian, no leap seconds. The only reader of
 * times in upstream files and the only writer of ours. TZ and the locale play no part. */
#ifndef KI_CORE_WHEN_H
#define KI_CORE_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEN_TEXT = 24 };

/* Reads `YYYY-MM-DD hh:mm:ss` (manifests.md section 3: no zone means UTC), also with `T`, a fraction of 1 to 3 digits, `Z` or
 * an offset `+hh:mm`. Years 1970 to 9999; real days only; seconds 0 to 59; hours 0 to 23. False for anything else. */
bool when_parse(const char *text, size_t len, int64_t *out_ms);
/* Writes `YYYY-MM-DDThh:mm:ss.mmmZ` and a NUL; `ms` must lie in the years 1970 to 9999. */
void when_text(int64_t ms, char out[WHEN_TEXT + 1]);
/* Reads exactly what when_text writes. */
bool when_parse_text(const char *text, size_t len, int64_t *out_ms);
/* The system's clock; KI_NOW (a when_text or a when_parse form) in the environment replaces it, for reproducible tests. */
int64_t when_now_ms(void);
/* A clock that only runs forward, in nanoseconds, for measuring durations. */
int64_t when_monotonic_ns(void);

#endif
