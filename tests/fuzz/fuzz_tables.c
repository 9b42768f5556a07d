/* The files of config/. The first byte chooses the file. When the second is odd the rest is the file, else edits of the one that is
 * there. Every loader takes the whole, or says where the mistake is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/sign.h"
#include "fuzz.h"
#include "ingest/sources.h"
#include "normalize/curate.h"
#include "normalize/build.h"
#include "store/change.h"
#include "store/policy.h"
#include "store/put.h"
#include "verify/hardware.h"
#include "verify/tolerance.h"

static const char *const files[] = {"bindings.json", "providers.json", "hardware.json", "entries.json", "sources.json", "gates.json", "flags.json",
				    "floors.json", "trend.json", "signers.json", "tolerances.json"};
enum { FILES = sizeof files / sizeof *files };
static json_t *trees[FILES];
static struct buf texts[FILES];

static void path_of(const char *directory, int file, char path[64])
{
	snprintf(path, 64, "%s/%s", directory, files[file]);
}

static void write_config(int file, const char *text, size_t len)
{
	char path[64];
	path_of(fuzz_directory(), file, path);
	FILE *out = fopen(path, "w");
	must(out && fwrite(text, 1, len, out) == len && fclose(out) == 0, "there is room for config");
}

static void prepare(void)
{
	char path[64];
	struct err e = {0};
	for (int i = 0; i < FILES; i++) {
		path_of("config", i, path);
		must(file_read(path, SIZE_MAX / 2, &texts[i], &e) == 0 && (trees[i] = json_load_text(texts[i].data, texts[i].len, path, &e)) != NULL,
		     "config/ is there (run from the top of the tree)");
		write_config(i, texts[i].data, texts[i].len);
	}
}

static void load_curate(const char *directory, struct err *e)
{
	struct curate *c = curate_new(directory, e);
	must_agree(!c, e);
	if (c)
		build_tables(c);
	curate_free(c);
}

static void load_sources(const char *directory, struct err *e)
{
	struct sources *s = sources_load(directory, true, e);
	must_agree(!s, e);
	for (size_t i = 0; s && i < s->channel_count; i++)
		must(s->channels[i].name && (s->channels[i].commits || s->channels[i].index), "a channel is whole");
	sources_free(s);
}

static void load_policy(const char *directory, struct err *e)
{
	struct policy p = {0};
	int rc = policy_load(directory, &p, e);
	must_agree(rc != 0, e);
	if (rc == 0)
		must(policy_samples(&p, slice_of("rms_norm"), "committed", 20000) >= 1, "upstream's timer took a sample");
	policy_fini(&p);
}

static void load_small(const char *path, struct err *e)
{
	struct arena a = {0};
	struct hardware hardware;
	struct tolerances *t = NULL;
	struct signers *s = NULL;
	if (strstr(path, "tolerances"))
		t = tolerances_load(path, e);
	else if (strstr(path, "signers"))
		s = signers_load(path, e);
	else
		hardware_find(path, "NVIDIA H200", 9, 0, &a, &hardware, e);
	tolerances_free(t);
	signers_free(s);
	arena_fini(&a);
}

static void load(const char *name, const char *directory)
{
	struct gates gates;
	struct step_rules rules;
	char path[64];
	struct err e = {0}, second = {0};
	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (strcmp(name, "gates.json") == 0)
		must_agree(gates_load(directory, &gates, &e) != 0, &e);
	else if (strcmp(name, "trend.json") == 0)
		must_agree(change_rules_load(directory, &rules, &e) != 0, &e);
	else if (strcmp(name, "sources.json") == 0)
		load_sources(directory, &e);
	else if (strcmp(name, "flags.json") == 0 || strcmp(name, "floors.json") == 0)
		load_policy(directory, &e);
	else if (strcmp(name, "tolerances.json") == 0 || strcmp(name, "signers.json") == 0)
		load_small(path, &e);
	else
		load_curate(directory, &e);
	if (strcmp(name, "hardware.json") == 0) {
		load_small(path, &second);
		second = (struct err){0};
		load_policy(directory, &second);
	}
	must(e.code == ERR_NONE || e.code == ERR_CONFIG, "a mistake in config is one of config");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	if (!trees[0])
		prepare();
	int file = feed_byte(&feed) % FILES;
	if (feed_byte(&feed) % 2) {
		struct slice text = feed_rest(&feed);
		write_config(file, text.data, text.len);
	} else {
		char *text = fuzz_edit(trees[file], &feed);
		write_config(file, text, strlen(text));
		free(text);
	}
	load(files[file], fuzz_directory());
	write_config(file, texts[file].data, texts[file].len);
	return 0;
}
