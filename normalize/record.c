#include "normalize/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"

#define SOURCE "liger-kernel-bench"

/* The fixed words of each metric: its name and unit in measurements, the prefix of its source values. */
static const struct {
	const char *name, *unit, *source;
	double scale; /* source value to stored integer */
} metrics[] = {
	[METRIC_LATENCY] = {"latency", "ns", "ms", 1e6},
	[METRIC_PEAK_MEMORY] = {"peak_memory", "bytes", "mib", 1048576},
};

const char *metric_name(enum metric m)
{
	return metrics[m].name;
}

bool metric_parse(struct slice text, enum metric *out)
{
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
		if (slice_eq(text, metrics[i].name)) {
			*out = (enum metric)i;
			return true;
		}
	return false;
}

int64_t record_units(enum metric m, double source)
{
	double product = source * metrics[m].scale, below = floor(product);
	return (int64_t)below + (product - below >= 0.5);
}

bool record_units_fit(enum metric m, double source)
{
	return source * metrics[m].scale < 9007199254740992.0;
}

/* ---- writing ---- */

static void put(struct buf *out, const char *text)
{
	buf_add(out, text, strlen(text));
}

static void put_digest(struct buf *out, const struct digest *d)
{
	buf_reserve(out, DIGEST_TEXT + 2);
	char *p = out->data + out->len;
	memcpy(p, "\"sha256:", 8);
	digest_put_hex(d, p + 8);
	p[8 + DIGEST_HEX] = '"';
	out->len += DIGEST_TEXT + 2;
	out->data[out->len] = '\0';
}

/* A run's body is written for every row, so this goes through a bare pointer over room reserved once. */
static inline char *add(char *p, const char *text)
{
	size_t len = strlen(text);
	return (char *)memcpy(p, text, len) + len;
}

static char *add_slice(char *p, struct slice s)
{
	return (char *)memcpy(p, s.data, s.len) + s.len;
}

static char *add_digest(char *p, const char *before, const struct digest *d)
{
	p = add(add(p, before), "sha256:");
	digest_put_hex(d, p);
	return p + DIGEST_HEX;
}

static char *add_whole(char *p, int64_t value)
{
	char digits[20], *first = digits + sizeof digits;
	do
		*--first = (char)('0' + value % 10);
	while (value /= 10);
	size_t len = (size_t)(digits + sizeof digits - first);
	return (char *)memcpy(p, first, len) + len;
}

static char *add_measurement(char *p, enum metric m, const char *statistic, double source)
{
	p = add(add(p, "{\"metric\":\""), metrics[m].name);
	p = add(add(p, "\",\"statistic\":\""), statistic);
	p = add(add(p, "\",\"unit\":\""), metrics[m].unit);
	p = add_whole(add(p, "\",\"value\":"), record_units(m, source));
	return add(p, "}");
}

static char *add_measurements(char *p, const struct run_parts *run)
{
	bool median = run->metric == METRIC_PEAK_MEMORY, quantiles = !isnan(run->source_20);
	if (!median && !quantiles)
		return p;
	p = add(p, "\"measurements\":[");
	if (median)
		p = add_measurement(p, run->metric, "median", run->source_50);
	if (median && quantiles)
		p = add(p, ",");
	if (quantiles) {
		p = add(add_measurement(p, run->metric, "p20", run->source_20), ",");
		p = add_measurement(p, run->metric, "p80", run->source_80);
	}
	return add(p, "],");
}

static char *add_source_value(char *p, const char *before, enum metric m, const char *after, double value)
{
	p = add(add(add(p, before), metrics[m].source), after);
	return p + json_number(value, p);
}

static char *add_source_native(char *p, const struct run_parts *run)
{
	p = add_slice(add(p, "\"sourceNative\":{\"benchmark\":\""), run->benchmark);
	p = add_slice(add(p, "\",\"externalId\":\""), run->external_id);
	p = add(p, "\",\"metrics\":{");
	if (isnan(run->source_20)) {
		p = add_source_value(p, "\"", run->metric, "_50\":", run->source_50);
	} else {
		p = add_source_value(p, "\"", run->metric, "_20\":", run->source_20);
		p = add_source_value(p, ",\"", run->metric, "_50\":", run->source_50);
		p = add_source_value(p, ",\"", run->metric, "_80\":", run->source_80);
	}
	return add(p, "},\"source\":\"" SOURCE "\"},\"status\":\"passed\",");
}

void record_run_body(const struct run_parts *run, struct buf *out)
{
	buf_reserve(out, 1536 + run->benchmark.len + run->external_id.len);
	char *p = out->data + out->len;
	p = add(p, "{\"apiVersion\":\"" RECORD_API_VERSION "\",\"kind\":\"BenchmarkRun\",\"spec\":{");
	p = add_digest(p, "\"environmentDigest\":\"", &run->environment);
	p = add(add_digest(p, "\",\"implementationDigest\":\"", &run->implementation), "\",");
	p = add(add_measurements(p, run), "\"observedAt\":\"");
	when_text(run->observed_ms, p);
	p = add_digest(p + WHEN_TEXT, "\",\"protocolDigest\":\"", &run->protocol);
	p = add_source_native(add(p, "\","), run);
	if (run->metric == METRIC_LATENCY) {
		p = add_whole(add(p, "\"timing\":{\"latencyNs\":{\"median\":"), record_units(run->metric, run->source_50));
		p = add(p, "},\"primaryStatistic\":\"median\"},");
	}
	p = add(add_digest(p, "\"workloadDigest\":\"", &run->workload), "\"}}");
	*p = '\0';
	out->len = (size_t)(p - out->data);
}

/* ---- reading: a cursor over text whose layout is known ---- */

struct cursor {
	const char *at, *end;
	bool failed;
};

static bool fail(struct cursor *c)
{
	c->failed = true;
	return false;
}

static bool literal_n(struct cursor *c, const char *text, size_t len)
{
	if (c->failed || (size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return fail(c);
	c->at += len;
	return true;
}

static bool literal(struct cursor *c, const char *text)
{
	return literal_n(c, text, strlen(text));
}

/* True, and moves on, when the text is next; false, and stays, when it is not. */
static bool maybe(struct cursor *c, const char *text)
{
	size_t len = strlen(text);
	if (c->failed || (size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return false;
	c->at += len;
	return true;
}

static struct digest read_digest(struct cursor *c)
{
	struct digest d = {{0}};
	if (c->failed || c->end - c->at < DIGEST_TEXT + 2 || c->at[0] != '"' || c->at[DIGEST_TEXT + 1] != '"' ||
	    !digest_parse(c->at + 1, DIGEST_TEXT, &d)) {
		fail(c);
		return d;
	}
	c->at += DIGEST_TEXT + 2;
	return d;
}

/* The raw text of a JSON string up to its closing quote, which is consumed; the opening one is already behind. */
static struct slice read_raw_string(struct cursor *c)
{
	const char *start = c->at, *p = start;
	if (c->failed)
		return (struct slice){start, 0};
	for (;;) {
		p = memchr(p, '"', (size_t)(c->end - p));
		if (!p) {
			fail(c);
			return (struct slice){start, 0};
		}
		size_t slashes = 0;
		while (p - slashes > start && p[-1 - (ptrdiff_t)slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			break;
		p++;
	}
	c->at = p + 1;
	return (struct slice){start, (size_t)(p - start)};
}

/* A string that holds no escape, and nothing that JSON would have escaped. */
static struct slice read_plain(struct cursor *c)
{
	struct slice s = read_raw_string(c);
	for (size_t i = 0; i < s.len; i++)
		if (s.data[i] == '\\' || (unsigned char)s.data[i] < ' ')
			fail(c);
	if (!json_is_utf8(s.data, s.len))
		fail(c);
	return s;
}

static int64_t read_whole(struct cursor *c)
{
	int64_t value = 0;
	const char *start = c->at;
	while (!c->failed && c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - start < 17)
		value = value * 10 + (*c->at++ - '0');
	if (c->at == start)
		fail(c);
	return value;
}

static const bool number_char[256] = {['+'] = true, ['-'] = true, ['.'] = true, ['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true,
				      ['5'] = true, ['6'] = true, ['7'] = true, ['8'] = true, ['9'] = true, ['e'] = true};

static double read_number(struct cursor *c)
{
	char text[JSON_NUMBER_MAX], *end;
	size_t len = 0;
	while (!c->failed && c->at + len < c->end && len < sizeof text - 1 && number_char[(uint8_t)c->at[len]])
		len++;
	if (c->failed || len == 0) {
		fail(c);
		return NAN;
	}
	memcpy(text, c->at, len);
	text[len] = '\0';
	double value = strtod(text, &end);
	if (*end || !isfinite(value))
		fail(c);
	c->at += len;
	return value;
}

static double read_source_value(struct cursor *c, const char *before, enum metric m, const char *after)
{
	literal(c, before);
	literal(c, metrics[m].source);
	literal(c, after);
	return read_number(c);
}

/* Moves behind the first occurrence of a text. */
static void seek(struct cursor *c, const char *text)
{
	const char *at = c->failed ? NULL : memmem(c->at, (size_t)(c->end - c->at), text, strlen(text));
	if (at)
		c->at = at + strlen(text);
	else
		fail(c);
}

bool record_run_values(struct slice body, enum metric m, struct run_parts *out)
{
	struct cursor c = {body.data, body.data + body.len, false};
	out->metric = m;
	out->source_20 = out->source_80 = NAN;
	seek(&c, "\"observedAt\":\"");
	if (c.failed || c.end - c.at < WHEN_TEXT || !when_parse_text(c.at, WHEN_TEXT, &out->observed_ms))
		return false;
	seek(&c, "\"metrics\":{");
	bool quantiles = !c.failed && c.end - c.at > 8 && memchr(c.at, '2', 8);
	if (quantiles)
		out->source_20 = read_source_value(&c, "\"", m, "_20\":");
	out->source_50 = read_source_value(&c, quantiles ? ",\"" : "\"", m, "_50\":");
	if (quantiles)
		out->source_80 = read_source_value(&c, ",\"", m, "_80\":");
	return !c.failed;
}

/* ---- cases: one table of fields serves both ends ---- */

enum field_type { FIELD_TEXT, FIELD_DIGEST, FIELD_METRIC };
static const struct {
	const char *name;
	enum field_type type;
	size_t offset;
} case_fields[] = {
#define TEXT(name, member) {name, FIELD_TEXT, offsetof(struct case_parts, member)}
#define DIGEST(name, member) {name, FIELD_DIGEST, offsetof(struct case_parts, member)}
	TEXT("benchmark", benchmark),
	TEXT("caseKey", case_key),
	TEXT("config", config),
	TEXT("dtype", dtype),
	DIGEST("environment", environment),
	TEXT("externalPrefix", external_prefix),
	TEXT("gpu", gpu),
	DIGEST("implementation", implementation),
	TEXT("kernel", kernel),
	{"metric", FIELD_METRIC, offsetof(struct case_parts, metric)},
	TEXT("mode", mode),
	DIGEST("operation", operation),
	TEXT("operationSlug", operation_slug),
	TEXT("operationTitle", operation_title),
	DIGEST("project", project),
	DIGEST("protocol", protocol),
	TEXT("provider", provider),
	TEXT("providerTitle", provider_title),
	TEXT("rule", rule),
	DIGEST("workload", workload),
	TEXT("workloadLabel", workload_label),
	TEXT("xLabel", x_label),
	TEXT("xName", x_name),
	TEXT("xValue", x_value),
#undef TEXT
#undef DIGEST
};
enum { CASE_FIELDS = sizeof case_fields / sizeof *case_fields };

void record_case_body(const struct case_parts *parts, struct buf *out)
{
	for (int i = 0; i < CASE_FIELDS; i++) {
		const void *member = (const char *)parts + case_fields[i].offset;
		buf_str(out, i ? ",\"" : "{\"");
		buf_str(out, case_fields[i].name);
		buf_str(out, "\":");
		if (case_fields[i].type == FIELD_TEXT)
			json_put_string(out, ((const struct slice *)member)->data, ((const struct slice *)member)->len);
		else if (case_fields[i].type == FIELD_DIGEST)
			put_digest(out, member);
		else
			json_put_str(out, metric_name(*(const enum metric *)member));
	}
	buf_char(out, '}');
}

static int hex_value(const char *text)
{
	int value = 0;
	for (int i = 0; i < 4; i++) {
		char ch = text[i];
		int digit = ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Undoes the escapes that canonical text can hold: the short ones and \u00xx for control characters. */
static struct slice read_text(struct cursor *c, struct arena *a)
{
	static const char from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
	struct slice raw = read_raw_string(c);
	char *text = arena_alloc(a, raw.len + 1);
	size_t len = 0;
	for (size_t i = 0; i < raw.len; i++) {
		if (raw.data[i] != '\\') {
			text[len++] = raw.data[i];
			continue;
		}
		char kind = raw.data[++i]; /* read_raw_string leaves no lone backslash at the end */
		const char *known = kind ? strchr(from, kind) : NULL;
		int code = kind == 'u' && raw.len - i > 4 ? hex_value(raw.data + i + 1) : -1;
		if (known) {
			text[len++] = to[known - from];
		} else if (code >= 0 && code < 0x20) {
			text[len++] = (char)code;
			i += 4;
		} else {
			fail(c);
		}
	}
	return (struct slice){text, len};
}

bool record_case_parse(struct slice body, struct arena *a, struct case_parts *out)
{
	struct cursor c = {body.data, body.data + body.len, false};
	for (int i = 0; i < CASE_FIELDS; i++) {
		void *member = (char *)out + case_fields[i].offset;
		literal(&c, i ? ",\"" : "{\"");
		literal(&c, case_fields[i].name);
		literal(&c, "\":");
		if (case_fields[i].type == FIELD_DIGEST) {
			*(struct digest *)member = read_digest(&c);
			continue;
		}
		literal(&c, "\"");
		struct slice text = read_text(&c, a);
		if (case_fields[i].type == FIELD_TEXT)
			*(struct slice *)member = text;
		else if (!metric_parse(text, member))
			fail(&c);
	}
	literal(&c, "}");
	return !c.failed && c.at == c.end;
}

struct digest record_comparison_key(const struct digest *operation, const struct digest *workload, const struct digest *protocol,
				    const struct digest *environment, const struct digest *correctness, enum metric metric)
{
	struct buf text = {0};
	buf_str(&text, "{\"correctness\":");
	put_digest(&text, correctness);
	buf_str(&text, ",\"environment\":");
	put_digest(&text, environment);
	buf_printf(&text, ",\"metric\":\"%s:median:%s\",\"operation\":", metrics[metric].name, metrics[metric].unit);
	put_digest(&text, operation);
	buf_str(&text, ",\"protocol\":");
	put_digest(&text, protocol);
	buf_str(&text, ",\"v\":1,\"workload\":");
	put_digest(&text, workload);
	buf_char(&text, '}');
	struct digest key = digest_of(text.data, text.len);
	buf_fini(&text);
	return key;
}

struct digest record_correctness_not_asserted(void)
{
	static const char text[] = "{\"correctness\":{\"comparator\":\"not_asserted\"}}";
	return digest_of(text, sizeof text - 1);
}

/* ---- lines ---- */

static void put_slice(struct buf *out, struct slice s)
{
	buf_add(out, s.data, s.len);
}

void record_put_object(struct buf *out, struct slice body, const struct digest *digest, struct slice metadata)
{
	put(out, "{\"body\":");
	put_slice(out, body);
	put(out, ",\"digest\":");
	put_digest(out, digest);
	put(out, ",\"metadata\":");
	put_slice(out, metadata);
	put(out, ",\"type\":\"object\"}\n");
}

void record_put_case(struct buf *out, struct slice body, const struct digest *digest)
{
	put(out, "{\"body\":");
	put_slice(out, body);
	put(out, ",\"digest\":");
	put_digest(out, digest);
	put(out, ",\"type\":\"case\"}\n");
}

void record_put_run(struct buf *out, struct slice body, const struct digest *digest, const struct digest *case_digest,
		    struct slice labels, unsigned line)
{
	put(out, "{\"body\":");
	put_slice(out, body);
	put(out, ",\"case\":");
	put_digest(out, case_digest);
	put(out, ",\"digest\":");
	put_digest(out, digest);
	put(out, ",\"labels\":");
	put_slice(out, labels);
	put(out, ",\"line\":");
	buf_i64(out, line);
	put(out, ",\"type\":\"run\"}\n");
}

void record_put_report(struct buf *out, struct slice report)
{
	put(out, "{\"report\":");
	put_slice(out, report);
	put(out, ",\"type\":\"report\"}\n");
}

static void put_optional(struct buf *out, const char *name, struct slice text)
{
	if (text.len == 0)
		return;
	json_put_str(out, name);
	buf_char(out, ':');
	json_put_string(out, text.data, text.len);
	buf_char(out, ',');
}

void record_put_snapshot(struct buf *out, const struct snapshot_parts *s)
{
	buf_char(out, '{');
	put_optional(out, "channel", s->channel);
	put_optional(out, "commit", s->commit);
	put_optional(out, "config", s->config);
	put_optional(out, "entry", s->entry);
	put_optional(out, "file", s->file);
	if (s->provenance.len) {
		put(out, "\"provenance\":");
		put_slice(out, s->provenance);
		buf_char(out, ',');
	}
	put(out, "\"sha256\":");
	put_digest(out, &s->sha256);
	put(out, ",\"sizeBytes\":");
	buf_i64(out, s->size_bytes);
	buf_printf(out, ",\"type\":\"snapshot\",\"wire\":%d}\n", RECORD_WIRE);
}

/* Steps over one JSON object by counting braces outside strings. */
static struct slice read_object(struct cursor *c)
{
	const char *start = c->at;
	int depth = 0;
	while (!c->failed && c->at < c->end) {
		char ch = *c->at++;
		if (ch == '"')
			read_raw_string(c);
		else if (ch == '{')
			depth++;
		else if (ch == '}' && --depth == 0)
			return (struct slice){start, (size_t)(c->at - start)};
		if (depth == 0)
			break;
	}
	fail(c);
	return (struct slice){start, 0};
}

static struct slice read_optional(struct cursor *c, const char *name)
{
	if (!maybe(c, name))
		return (struct slice){"", 0};
	struct slice s = read_plain(c);
	literal(c, ",");
	return s;
}

static void read_snapshot(struct cursor *c, struct record *out)
{
	struct snapshot_parts *s = &out->snapshot;
	out->type = RECORD_SNAPSHOT;
	literal(c, "{");
	s->channel = read_optional(c, "\"channel\":\"");
	s->commit = read_optional(c, "\"commit\":\"");
	s->config = read_optional(c, "\"config\":\"");
	s->entry = read_optional(c, "\"entry\":\"");
	s->file = read_optional(c, "\"file\":\"");
	s->provenance = (struct slice){"", 0};
	if (maybe(c, "\"provenance\":")) {
		s->provenance = read_object(c);
		literal(c, ",");
	}
	literal(c, "\"sha256\":");
	s->sha256 = read_digest(c);
	literal(c, ",\"sizeBytes\":");
	s->size_bytes = read_whole(c);
	literal(c, ",\"type\":\"snapshot\",\"wire\":1}");
}

/* A run's body ends at the last `},"case":` of its line; looking from the end saves reading it here. What stands before that is
 * proved by its digest. */
static struct slice run_body(const struct cursor *c)
{
	static const char mark[] = "},\"case\":";
	const char *at = c->end;
	while (at > c->at && (at = memrchr(c->at, '}', (size_t)(at - c->at))))
		if (c->end - at >= (ptrdiff_t)sizeof mark - 1 && memcmp(at, mark, sizeof mark - 1) == 0)
			return (struct slice){c->at, (size_t)(at + 1 - c->at)};
	return (struct slice){c->at, 0};
}

static void read_run(struct cursor *c, struct record *out)
{
	out->type = RECORD_RUN;
	out->body = run_body(c);
	c->at += out->body.len;
	literal(c, ",\"case\":");
	out->case_digest = read_digest(c);
	literal(c, ",\"digest\":");
	out->digest = read_digest(c);
	literal(c, ",\"labels\":");
	out->labels = read_object(c);
	literal(c, ",\"line\":");
	out->line = (unsigned)read_whole(c);
	literal(c, ",\"type\":\"run\"}");
}

static void read_bodied(struct cursor *c, struct record *out)
{
	static const char run[] = "\"type\":\"run\"}";
	literal(c, "{\"body\":");
	if (c->end - c->at > (ptrdiff_t)sizeof run && memcmp(c->end - sizeof run + 1, run, sizeof run - 1) == 0) {
		read_run(c, out);
		return;
	}
	out->body = read_object(c);
	literal(c, ",\"digest\":");
	out->digest = read_digest(c);
	out->type = maybe(c, ",\"metadata\":") ? RECORD_OBJECT : RECORD_CASE;
	if (out->type == RECORD_OBJECT)
		out->metadata = read_object(c);
	literal(c, out->type == RECORD_OBJECT ? ",\"type\":\"object\"}" : ",\"type\":\"case\"}");
}

int record_read(struct slice line, struct record *out, const char *name, unsigned number, struct err *e)
{
	struct cursor c = {line.data, line.data + line.len, false};
	if (line.len > 8 && memcmp(line.data, "{\"body\":", 8) == 0) {
		read_bodied(&c, out);
	} else if (maybe(&c, "{\"report\":")) {
		out->type = RECORD_REPORT;
		out->body = read_object(&c);
		literal(&c, ",\"type\":\"report\"}");
	} else {
		read_snapshot(&c, out);
	}
	if (!c.failed && c.at == c.end)
		return 0;
	return err_at(e, ERR_DATA, name, number, (unsigned)(c.at - line.data) + 1, "not a record of wire version %d", RECORD_WIRE);
}
