/* ki-ingest: keeps what upstream publishes and names it to the next stage. */
#include <curl/curl.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sandbox.h"
#include "ingest/ingest.h"
#include "ingest/local.h"

static const char help[] =
	"usage: ki-ingest [options]                       fetch what is new upstream\n"
	"       ki-ingest [options] --file PATH…          take local files instead\n"
	"       ki-ingest [options] --replay DIR          take a local tree of upstream's history\n"
	"\n"
	"Keeps everything unchanged under STORE/snapshots and prints one JSON source line for each publication that the\n"
	"catalog should take.\n"
	"\n"
	"  --store DIR        the store (default: $KI_STORE, else var/store)\n"
	"  --config DIR       where sources.json is (default: $KI_CONFIG, else the installation's)\n"
	"  --channel C        only this channel; may be given more than once (default: all; with --file: committed, or\n"
	"                     gh-pages when there is an entry)\n"
	"  --published FILE   what the catalog has, `channel<TAB>commit or entry<TAB>sha256:hex` a line; - is standard input.\n"
	"                     Those are not printed, and what was kept but is not among them is printed again\n"
	"  --backfill         every commit that touched a file, oldest first; goes on where it stopped\n"
	"  --recheck          ask again for files that are kept; what changed is a new snapshot\n"
	"  --dry-run          keep and remember nothing; with --file and --replay the lines name the files given\n"
	"  --commit SHA       with one --file: its commit, 40 hex digits or the first 12 or more\n"
	"  --entry E          with one --file: its gh-pages entry\n"
	"  --quiet            no summary, no warnings\n"
	"  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
	"  --strict           fail when this system cannot confine the program\n"
	"  --help             this text\n"
	"  --version          versions of the program and its libraries\n"
	"\n"
	"KI_GITHUB_TOKEN, when set, is sent to the API host and to no other.\n"
	"Exit: 0 done, also when nothing was new; 64 usage; 65 refused input; 66 not found; 74 disk; 75 try again later;\n"
	"77 not permitted, by upstream or by the fetch policy; 78 configuration.\n";

enum { CHANNELS_MAX = 16 };

struct options {
	const char *store, *config, *published, *replay, *commit, *entry;
	const char *channels[CHANNELS_MAX];
	size_t channel_count;
	const char **files;
	size_t file_count;
	bool file_mode, backfill, recheck, dry_run, quiet, strict, done;
};

enum option_id { OPT_STORE = 256, OPT_CONFIG, OPT_CHANNEL, OPT_PUBLISHED, OPT_FILE, OPT_REPLAY, OPT_COMMIT, OPT_ENTRY,
		 OPT_BACKFILL, OPT_RECHECK, OPT_DRY_RUN, OPT_QUIET, OPT_LOG_FORMAT, OPT_STRICT, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPT_STORE},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"channel", required_argument, NULL, OPT_CHANNEL},
	{"published", required_argument, NULL, OPT_PUBLISHED},
	{"file", required_argument, NULL, OPT_FILE},
	{"replay", required_argument, NULL, OPT_REPLAY},
	{"commit", required_argument, NULL, OPT_COMMIT},
	{"entry", required_argument, NULL, OPT_ENTRY},
	{"backfill", no_argument, NULL, OPT_BACKFILL},
	{"recheck", no_argument, NULL, OPT_RECHECK},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"log-format", required_argument, NULL, OPT_LOG_FORMAT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static int take_option(struct options *o, int id, const char *value, struct err *e)
{
	switch (id) {
	case OPT_STORE: o->store = value; break;
	case OPT_CONFIG: o->config = value; break;
	case OPT_PUBLISHED: o->published = value; break;
	case OPT_REPLAY: o->replay = value; break;
	case OPT_COMMIT: o->commit = value; break;
	case OPT_ENTRY: o->entry = value; break;
	case OPT_BACKFILL: o->backfill = true; break;
	case OPT_RECHECK: o->recheck = true; break;
	case OPT_DRY_RUN: o->dry_run = true; break;
	case OPT_QUIET: o->quiet = true; break;
	case OPT_LOG_FORMAT: return log_set_format(value, e);
	case OPT_STRICT: o->strict = true; break;
	case OPT_CHANNEL:
		if (o->channel_count == CHANNELS_MAX)
			return err_set(e, ERR_USAGE, "more than %d channels", CHANNELS_MAX);
		o->channels[o->channel_count++] = value;
		break;
	case OPT_FILE:
		o->file_mode = true;
		o->files[o->file_count++] = value;
		break;
	case OPT_HELP:
		fputs(help, stdout);
		o->done = true;
		break;
	case OPT_VERSION:
		printf("ki-ingest %s (%s)\n", KI_VERSION, curl_version());
		o->done = true;
		break;
	default: return err_set(e, ERR_BUG, "option %d is in the table and not here", id);
	}
	return 0;
}

static int check_options(const struct options *o, struct err *e)
{
	if (!o->file_mode && o->file_count)
		return err_set(e, ERR_USAGE, "%s: a path needs --file before it", o->files[0]);
	if (o->file_mode && o->replay)
		return err_set(e, ERR_USAGE, "--file and --replay exclude each other");
	if ((o->file_mode || o->replay) && (o->backfill || o->recheck))
		return err_set(e, ERR_USAGE, "--backfill and --recheck are for fetching");
	if ((o->commit || o->entry) && o->file_count != 1)
		return err_set(e, ERR_USAGE, "--commit and --entry go with one --file");
	if (o->commit && o->entry)
		return err_set(e, ERR_USAGE, "--commit and --entry exclude each other");
	if (o->commit && !source_commit_prefix_valid(o->commit))
		return err_set(e, ERR_USAGE, "%s: not a commit of 12 to 40 lowercase hex digits", o->commit);
	if (o->entry && !source_entry_valid(o->entry))
		return err_set(e, ERR_USAGE, "%s: not a gh-pages entry", o->entry);
	if (o->file_mode && o->channel_count > 1)
		return err_set(e, ERR_USAGE, "--file takes one channel");
	return 0;
}

static int read_options(int argc, char **argv, struct options *o, struct err *e)
{
	int id;
	opterr = 0;
	o->files = xcalloc((size_t)argc, sizeof *o->files);
	while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1 && !o->done)
		if (id == '?' ? err_option(e, argv, "ki-ingest") : take_option(o, id, optarg, e))
			return -1;
	for (; optind < argc; optind++)
		o->files[o->file_count++] = argv[optind];
	return o->done ? 0 : check_options(o, e);
}

static bool wanted(const void *context, const char *channel)
{
	const struct options *o = context;
	for (size_t i = 0; i < o->channel_count; i++)
		if (strcmp(o->channels[i], channel) == 0)
			return true;
	return o->channel_count == 0;
}

static int check_channels(const struct options *o, const struct sources *s, struct err *e)
{
	for (size_t i = 0; i < o->channel_count; i++)
		if (!sources_channel(s, o->channels[i]))
			return err_set(e, ERR_USAGE, "%s: no such channel in config/sources.json", o->channels[i]);
	return 0;
}

static int take_files(struct ingest *in, const struct options *o, struct err *e)
{
	const char *name = o->channel_count ? o->channels[0] : o->entry ? "gh-pages" : "committed";
	const struct source_channel *channel = sources_channel(in->sources, name);
	if (!channel || (channel->index ? !o->entry : o->entry != NULL))
		return err_set(e, ERR_USAGE, "channel %s: gh-pages files need --entry, others take --commit", name);
	for (size_t i = 0; i < o->file_count; i++)
		if (local_file(in, o->files[i], channel, o->commit, o->entry, e))
			return -1;
	return 0;
}

/* All wanted channels, one after the other; one that fails does not keep the others from running. */
static int fetch_channels(struct ingest *in, const struct options *o, struct err *e)
{
	int rc = 0;
	if (!(in->fetch = fetch_new(in->sources, e)))
		return -1;
	for (size_t i = 0; i < in->sources->channel_count; i++) {
		const struct source_channel *channel = &in->sources->channels[i];
		struct err own = {0};
		if (!wanted(o, channel->name))
			continue;
		if ((channel->index ? pages_run : committed_run)(in, channel, &own) == 0)
			continue;
		if (e->code != ERR_NONE)
			log_failure(&own);
		rc = err_at(e, own.code, own.file, own.line, own.column, "%s", own.text);
	}
	return rc;
}

static void report(const struct ingest *in)
{
	char changed[48] = "", missing[48] = "", requests[48] = "";
	if (in->changed)
		snprintf(changed, sizeof changed, ", %u changed", in->changed);
	if (in->missing)
		snprintf(missing, sizeof missing, ", %u listed but not there", in->missing);
	if (in->fetch)
		snprintf(requests, sizeof requests, "; requests: %u", fetch_requests(in->fetch));
	log_info("%u new, %u unchanged%s%s; handed over: %u%s", in->kept, in->unchanged, changed, missing, in->emitted, requests);
}

/* Once config, lists and the snapshot folder are open: network, that folder, and the files that were named. */
static int give_up_rights(const struct options *o, const struct sources *sources, const char *store, struct arena *a, struct err *e)
{
	const char *snapshots = arena_printf(a, "%s/snapshots", store), *writes[] = {o->dry_run ? NULL : snapshots, NULL};
	const char **reads = arena_alloc(a, (o->file_count + 5) * sizeof *reads);
	size_t count = 0;
	reads[count++] = snapshots;
	for (size_t i = 0; i < o->file_count; i++)
		reads[count++] = o->files[i];
	for (size_t i = 0; i < 3; i++) {
		const char *path = (const char *[]){o->replay, sources->token_file, sources->ca_file}[i];
		if (path)
			reads[count++] = path;
	}
	return sandbox_enter(&(struct sandbox){SANDBOX_INGEST, reads, writes, o->strict}, e);
}

static int run(struct ingest *in, const struct options *o, struct err *e)
{
	if (o->replay)
		return local_replay(in, o->replay, wanted, o, e);
	return o->file_mode ? take_files(in, o, e) : fetch_channels(in, o, e);
}

static int ingest(const struct options *o, struct err *e)
{
	struct arena a = {0};
	struct ingest in = {.dry_run = o->dry_run, .backfill = o->backfill, .recheck = o->recheck};
	struct sources *sources = NULL;
	struct published *published = NULL;
	const char *config = home_config(&a, o->config, e), *store = home_store(o->store);
	int rc = -1;
	if (!config || !(sources = sources_load(config, o->config != NULL, e)) || check_channels(o, sources, e) ||
	    (o->published && !(published = published_load(o->published, e))))
		goto out;
	in.sources = sources;
	in.published = published;
	in.snapshots = o->dry_run ? snapshots_open_readonly(store) : snapshots_open(store, e);
	if (!in.snapshots || give_up_rights(o, sources, store, &a, e))
		goto out;
	rc = run(&in, o, e);
	report(&in);
out:
	fetch_free(in.fetch);
	snapshots_close(in.snapshots);
	published_free(published);
	sources_free(sources);
	arena_fini(&a);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct err e = {0};
	signal(SIGPIPE, SIG_IGN);
	file_hold_streams();
	memory_hold();
	int rc = read_options(argc, argv, &o, &e);
	log_init("ki-ingest", o.quiet);
	if (rc == 0 && !o.done)
		rc = ingest(&o, &e);
	if (file_flush_stdout(&e))
		rc = -1;
	free(o.files);
	return rc ? log_failure(&e) : 0;
}
