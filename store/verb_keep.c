#include "store/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/backup.h"
#include "store/check.h"
#include "store/load.h"
#include "store/pages.h"

static int read_check(struct catalog *c, struct options *o)
{
	struct check_totals t;
	if (check_catalog(c, o->json ? stderr : stdout, &t))
		return -1;
	if (o->json)
		printf("{\"cases\":%llu,\"entries\":%llu,\"objects\":%llu,\"problems\":%llu,\"publications\":%llu,\"runs\":%llu,\"snapshots\":%llu,"
		       "\"unpublished\":%s,\"unsealed\":%s}\n", (unsigned long long)t.cases, (unsigned long long)t.entries, (unsigned long long)t.objects,
		       (unsigned long long)t.problems, (unsigned long long)t.publications, (unsigned long long)t.runs, (unsigned long long)t.kept,
		       t.unpublished ? "true" : "false", t.unsealed ? "true" : "false");
	else if (!o->quiet || t.problems)
		printf("%s: %llu runs rebuilt, %llu objects, %llu cases, %llu publications, %llu kept files, %llu index entries%s%s\n",
		       t.problems ? "damaged" : "clean", (unsigned long long)t.runs, (unsigned long long)t.objects, (unsigned long long)t.cases,
		       (unsigned long long)t.publications, (unsigned long long)t.kept, (unsigned long long)t.entries,
		       t.unpublished ? "; remains of an interrupted writer wait for the next one" : "",
		       t.unsealed ? "; schema 1: nothing proves its labels, publications and entries until `ki upgrade`" : "");
	return t.problems ? err_at(c->err, ERR_CORRUPT, o->store, 0, 0, "%llu problems", (unsigned long long)t.problems) : 0;
}

/* The shape first: what is read after it is read through pointers that hold. */
static int prove_pages(struct options *o, FILE *out, struct err *e)
{
	struct pages_totals pages;
	if (pages_check(o->store, out, &pages, NULL, e))
		return -1;
	if (pages.problems)
		return err_at(e, ERR_CORRUPT, o->store, 0, 0, "data.mdb is damaged in %llu places; restore a backup", (unsigned long long)pages.problems);
	return 0;
}

int verb_check(struct options *o, struct err *e)
{
	return prove_pages(o, o->json ? stderr : stdout, e) ? -1 : with_catalog(o, e, read_check);
}

/* Opening for writing is what upgrades. */
int verb_upgrade(struct options *o, struct err *e)
{
	struct store st;
	int rc = store_open(&st, o->store, STORE_READ, e); /* one must be there */
	store_close(&st);
	if (rc)
		return rc;
	rc = store_open(&st, o->store, STORE_WRITE, e);
	store_close(&st);
	if (rc == 0 && !o->quiet)
		printf("%s: schema %d\n", o->store, SCHEMA_VERSION);
	return rc;
}

int verb_backup(struct options *o, struct err *e)
{
	struct store st;
	if (prove_pages(o, stderr, e)) /* a copy of damage is no backup */
		return -1;
	int rc = store_open(&st, o->store, STORE_READ, e);
	if (rc == 0)
		rc = backup_store(&st, o->names[0], e);
	store_close(&st);
	return rc;
}

int verb_rehearse(struct options *o, struct err *e)
{
	struct check_totals t = {0};
	int rc = backup_rehearse(o->names[0], stdout, &t, e);
	if (rc == 0 && !o->quiet)
		printf("%s: %llu runs rebuilt, %llu publications, %llu kept files: whole, and what the backup claims\n", o->names[0], (unsigned long long)t.runs,
		       (unsigned long long)t.publications, (unsigned long long)t.kept);
	return rc;
}

int verb_load(struct options *o, struct err *e)
{
	struct load_totals t = {0};
	bool standard = strcmp(o->names[0], "-") == 0;
	int fd = standard ? STDIN_FILENO : open(o->names[0], O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? err_errno(e, o->names[0], "cannot open") : load_dump(o->store, fd, standard ? "standard input" : o->names[0], &t, e);
	if (fd > STDIN_FILENO)
		close(fd);
	if (rc == 0 && !o->quiet)
		printf("%s: %llu runs, %llu publications, %llu entries\n", o->store, (unsigned long long)t.runs, (unsigned long long)t.publications,
		       (unsigned long long)t.entries);
	return rc;
}
