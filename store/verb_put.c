#include "store/options.h"

#include <unistd.h>

#include "core/home.h"
#include "core/log.h"
#include "store/put.h"
#include "store/rerun.h"

int verb_put(struct options *o, struct err *e)
{
	struct store st;
	struct gates gates;
	struct arena a = {0};
	struct put_totals totals = {0};
	struct put_options options = {.gates = &gates, .refuse = o->live, .dry_run = o->dry_run, .out = o->json ? stdout : NULL};
	const char *config = home_config(&a, o->config, e);
	if (!config || gates_load(config, &gates, e)) {
		arena_fini(&a);
		return -1;
	}
	int rc = store_open(&st, o->store, o->dry_run ? STORE_TRY : STORE_WRITE, e);
	if (rc == 0)
		rc = put_stream(&st, STDIN_FILENO, &options, &totals, e);
	store_close(&st);
	arena_fini(&a);
	if (!o->json && (rc == 0 || totals.files))
		log_info("%s%llu new runs in %u publications (%llu rows bound, %u files known, %u byte copies, %llu conflicts)",
			 o->dry_run ? "would publish " : "", (unsigned long long)totals.runs_new, totals.published, (unsigned long long)totals.runs_read,
			 totals.known, totals.copies, (unsigned long long)totals.conflicts);
	return rc;
}

int verb_import(struct options *o, struct err *e)
{
	struct store st;
	struct arena a = {0};
	struct import_totals t = {0};
	const char *config = home_config(&a, o->config, e);
	int rc = config ? store_open(&st, o->store, STORE_WRITE, e) : -1;
	if (rc == 0)
		rc = rerun_import(&st, config, o->names[0], &t, stderr, e);
	if (config)
		store_close(&st);
	arena_fini(&a);
	log_info("%u statements: %u accepted, %u known, %u refused; %u reruns published, %u files kept", t.statements, t.accepted, t.known, t.refused,
		 t.published, t.artifacts);
	return rc;
}
