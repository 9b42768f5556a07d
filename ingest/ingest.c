#include "ingest/ingest.h"

#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/when.h"

static int emit(struct ingest *in, const struct publication *p, const char *path, struct slice provenance, struct err *e)
{
	struct buf line = {0};
	int rc = publication_put_line(p, path, provenance, &line, e);
	if (rc == 0) {
		fwrite(line.data, 1, line.len, stdout);
		rc = file_flush_stdout(e);
		in->emitted++;
	}
	buf_fini(&line);
	return rc;
}

static bool in_catalog(const struct ingest *in, const struct publication *p)
{
	return in->published && published_has(in->published, p);
}

/* Keeps (unless in a dry run) and, when `offer` says so, emits. */
static int keep_and_emit(struct ingest *in, const struct content *c, const struct publication *p, bool offer, struct err *e)
{
	struct buf provenance = {0}, path = {0};
	int rc = 0;
	if (in->dry_run) {
		publication_put_provenance(p, &provenance);
		if (c->path)
			buf_str(&path, c->path);
	} else {
		rc = snapshots_keep(in->snapshots, c, p, &provenance, e);
		snapshots_path(in->snapshots, &p->sha256, &path);
	}
	if (rc == 0 && offer)
		rc = emit(in, p, path.data, (struct slice){provenance.data, provenance.len}, e);
	buf_fini(&provenance);
	buf_fini(&path);
	return rc;
}

int ingest_local(struct ingest *in, const struct content *c, struct publication *p, struct err *e)
{
	if (content_digest(c, &p->sha256, &p->size_bytes, e))
		return -1;
	p->fetched_ms = when_now_ms();
	if (in_catalog(in, p)) {
		in->unchanged++;
		return 0;
	}
	in->kept++;
	return keep_and_emit(in, c, p, true, e);
}

/* Whether a fetched body is to be handed over: the catalog's list decides, and without one, whether it is new here. */
static bool wanted(const struct ingest *in, const struct publication *p, bool known)
{
	return in->published ? !published_has(in->published, p) : !known;
}

int ingest_fetched(struct ingest *in, const struct fetch_reply *reply, const char *url, struct publication *p,
		   const struct digest *before, struct err *e)
{
	struct content c = {.memory = {reply->body.data, reply->body.len}};
	if (content_digest(&c, &p->sha256, &p->size_bytes, e))
		return -1;
	bool known = before && digest_cmp(before, &p->sha256) == 0;
	p->fetched_ms = when_now_ms();
	p->requested_url = url;
	p->final_url = reply->final_url;
	p->etag = reply->etag;
	p->last_modified = reply->last_modified;
	p->media_type = reply->media_type;
	p->changed = before && !known;
	if (p->changed) {
		in->changed++;
		log_warn("%s %s: upstream changed what it had published", p->channel, publication_id(p));
	}
	*(known ? &in->unchanged : &in->kept) += 1;
	return keep_and_emit(in, &c, p, wanted(in, p, known), e);
}

int ingest_held(struct ingest *in, struct publication *p, bool *lost, struct err *e)
{
	struct buf provenance = {0}, path = {0};
	int rc = 0;
	bool needed = in->published && !in_catalog(in, p);
	*lost = needed && !snapshots_have(in->snapshots, p, &provenance);
	if (*lost) {
		log_warn("%s %s: the snapshot is missing or damaged, fetching it again", p->channel, publication_id(p));
	} else {
		in->unchanged++;
		if (needed) {
			snapshots_path(in->snapshots, &p->sha256, &path);
			rc = emit(in, p, path.data, (struct slice){provenance.data, provenance.len}, e);
		}
	}
	buf_fini(&provenance);
	buf_fini(&path);
	return rc;
}
