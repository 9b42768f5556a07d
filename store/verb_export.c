#include "store/options.h"

#include <stdlib.h>
#include <string.h>

#include "core/home.h"
#include "store/dump.h"
#include "store/export.h"
#include "store/site.h"

/* Some formats are the whole catalog, always. */
static int refuse_filter(const struct options *o, struct err *e)
{
	const struct filter *f = &o->list.filter;
	if (f->kernel || f->gpu || f->mode || f->provider || f->dtype || f->since_ms || f->memory || !f->latency || o->list.columns)
		return err_set(e, ERR_USAGE, "--format %s takes no filter and no --columns", o->format);
	return 0;
}

static int write_dump(struct catalog *c, struct options *o)
{
	return refuse_filter(o, c->err) ? -1 : dump_write(c, stdout);
}

const char *export_directory(const struct options *o)
{
	bool site = o->format && strcmp(o->format, "site") == 0;
	if (o->format && !site)
		return NULL;
	return o->out ? o->out : site ? "var/site" : "var/export";
}

static int write_site(struct catalog *c, struct options *o)
{
	if (refuse_filter(o, c->err))
		return -1;
	struct arena a = {0};
	struct site_totals t = {0};
	const char *config = home_config(&a, o->config, c->err);
	int rc = config ? site_export(c, config, export_directory(o), &t) : -1;
	if (rc == 0 && o->json)
		printf("{\"files\":%llu,\"pages\":%llu,\"sizeBytes\":%llu,\"unchanged\":%llu,\"written\":%llu}\n", (unsigned long long)t.files,
		       (unsigned long long)t.pages, (unsigned long long)t.size_bytes, (unsigned long long)t.unchanged, (unsigned long long)t.written);
	else if (rc == 0 && !o->quiet)
		printf("%s: %llu pages in %llu files of %llu bytes; %llu written, %llu unchanged\n", export_directory(o), (unsigned long long)t.pages,
		       (unsigned long long)t.files, (unsigned long long)t.size_bytes, (unsigned long long)t.written, (unsigned long long)t.unchanged);
	arena_fini(&a);
	return rc;
}

static int read_export(struct catalog *c, struct options *o)
{
	char *path = NULL;
	if (!o->format) {
		int rc = export_files(c, &o->list.filter, export_directory(o), &path);
		if (rc == 0 && !o->quiet)
			printf("%s\n", path);
		free(path);
		return rc;
	}
	if (strcmp(o->format, "site") == 0)
		return write_site(c, o);
	if (strcmp(o->format, "store") == 0)
		return write_dump(c, o);
	if (strcmp(o->format, "jsonl") == 0)
		return export_jsonl(c, &o->list.filter, stdout);
	if (strcmp(o->format, "json") == 0)
		return export_json(c, &o->list.filter, stdout);
	if (strcmp(o->format, "csv") != 0)
		return err_set(c->err, ERR_USAGE, "--format %s: want json, jsonl, csv, store or site", o->format);
	o->list.format = LIST_CSV;
	o->list.sort = SORT_DIGEST;
	if (!o->list.columns)
		o->list.columns = "external_id,digest,comparison_key,kernel,mode,provider,gpu,dtype,workload_label,metric,median_ns,p20_ns,p80_ns,"
				  "median_bytes,rank,cohort_size,tied,unranked,evidence,observed_at,liger_version,upstream_commit,caveats";
	return list_runs(c, &o->list, stdout);
}

int verb_export(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_export);
}
