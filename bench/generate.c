/* generate ROWS SEED <base.csv: writes ROWS rows made from the rows of a base file: every row on every known GPU, again and
 * again with later times and with values drawn around the base row's. Three of four values are exact floats, as upstream's are.
 * The same arguments give the same bytes. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"

enum { FIELDS = 15, BASES_MAX = 4096, VALUE_50 = 8, GPU = 12, TIME = 13 };

static const char *const gpus[] = {"NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA B200", "NVIDIA GeForce RTX 3090",
				   "NVIDIA GeForce RTX 4090", "NVIDIA H200", "NVIDIA H100 NVL", "NVIDIA A100-SXM4-40GB"};
enum { GPUS = sizeof gpus / sizeof *gpus };

/* A base row's raw fields, quotes included. */
struct base {
	char *fields[FIELDS];
	double ms;
};

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

/* Cuts a line at commas outside quotes; false when it has another number of fields. */
static int split(char *line, char *fields[FIELDS])
{
	int count = 1, quoted = 0;
	fields[0] = line;
	for (char *p = line; *p; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (*p != ',' || quoted)
			continue;
		if (count == FIELDS)
			return 0;
		*p = '\0';
		fields[count++] = p + 1;
	}
	return count == FIELDS;
}

static void put_value(double value)
{
	char text[JSON_NUMBER_MAX];
	json_number(uniform() < 0.77 ? (double)(float)value : value, text);
	fputs(text, stdout);
	putchar(',');
}

static void put_row(const struct base *b, const char *gpu, int64_t time_ms)
{
	char when[WHEN_TEXT + 1];
	double median = b->ms * exp(0.02 * (uniform() - 0.5)), spread = 0.01 * uniform();
	for (int i = 0; i < VALUE_50; i++)
		printf("%s,", b->fields[i]);
	put_value(median);
	put_value(median * (1 - spread));
	put_value(median * (1 + spread));
	when_text(time_ms, when);
	printf("%s,%s,%.10s %.8s,%s\r\n", b->fields[VALUE_50 + 3], gpu, when, when + 11, b->fields[TIME + 1]);
}

int main(int argc, char **argv)
{
	static struct base bases[BASES_MAX];
	int count = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	long rows = argc > 1 ? atol(argv[1]) : 0;
	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	while (count < BASES_MAX && (len = getline(&line, &room, stdin)) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		if (count == 0 && strncmp(line, "kernel_name,", 12) == 0) {
			printf("%s\r\n", line);
			continue;
		}
		char *copy = strdup(line);
		if (split(copy, bases[count].fields) && strcmp(bases[count].fields[3], "speed") == 0) {
			bases[count].ms = atof(bases[count].fields[VALUE_50]);
			count++;
		}
	}
	if (rows < 1 || state == 0 || count == 0) {
		fputs("usage: generate ROWS SEED <base.csv (with speed rows)\n", stderr);
		return 64;
	}
	const int64_t start_ms = INT64_C(1735689600000); /* 2025-01-01 */
	for (long i = 0; i < rows; i++) {
		long round = i / ((long)count * GPUS), in_round = i % ((long)count * GPUS);
		put_row(&bases[in_round / GPUS], gpus[in_round % GPUS], start_ms + round * 60000 + in_round % 50 * 1000);
	}
	return 0;
}
