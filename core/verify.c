#include "core/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/log.h"
#include "core/process.h"
#include "core/when.h"

static void usage(FILE *out)
{
	fputs("usage: ki verify [option…] RUN… | --flagged | FILTER…\n"
	      "       ki verify plan [RUN…|--flagged|FILTER…] job lines on standard output, for a GPU host\n"
	      "       ki verify run JOBS --out DIR --key FILE on the GPU host: no store needed\n"
	      "       ki verify campaign JOBS --out DIR       a long list in batches; goes on where it stopped\n"
	      "       ki verify import DIR                    signed evidence back into the store\n"
	      "       ki verify replay EVIDENCE…              recompute verdicts, no GPU needed\n"
	      "       ki verify keygen FILE                   make a signing key; prints its entry for config/signers.json\n"
	      "       ki verify cosign EVIDENCE --key FILE    add a signature to every envelope of a file\n"
	      "       ki verify gpu-info                      this GPU as evidence describes it\n\n"
	      "The first form plans, runs on this machine's GPU and imports; filters are those of `ki verify plan --help`.\n"
	      "plan --runner upstream asks for the record's own code, which verify/capture.py captures, and run --bundles DIR replays;\n"
	      "what cannot be replayed runs in a sealed child, run --child verify/child.py.\n\n"
	      "  --flagged      runs with a flag that a rerun could settle\n"
	      "  --campaign JOBS  as ki verify campaign\n"
	      "  --key FILE     signing key; $KI_KEY when not given\n"
	      "  --out DIR      where evidence goes; verify/<time> in the store when not given\n"
	      "  --device cuda|cpu  cpu checks references and contracts; times nothing, publishes nothing\n"
	      "  --replay EVIDENCE  as ki verify replay\n"
	      "  --store DIR    the store; $KI_STORE, else var/store, when not given\n"
	      "  --config DIR   the config; $KI_CONFIG, else the installation's, when not given\n"
	      "  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
	      "  --help         this text\n",
	      out);
}

/* A step that one program serves whole: the caller's words go to it as they are. */
static const struct step {
	const char *name, *program, *word;
} steps[] = {
	{"plan", "ki-store", "plan"},	  {"import", "ki-store", "import"},	{"run", "ki-verify", "run"},	   {"campaign", "ki-verify", "campaign"},
	{"--campaign", "ki-verify", "campaign"}, {"replay", "ki-verify", "replay"},
	{"--replay", "ki-verify", "replay"}, {"keygen", "ki-verify", "keygen"}, {"cosign", "ki-verify", "cosign"}, {"gpu-info", "ki-verify", "gpu-info"},
};

static int pass_on(const struct step *s, int argc, char **argv, struct err *e)
{
	struct arena a = {0};
	char **words = arena_alloc(&a, ((size_t)argc + 3) * sizeof *words);
	words[0] = (char *)home_program(&a, s->program);
	words[1] = (char *)s->word;
	memcpy(words + 2, argv, (size_t)argc * sizeof *words);
	execv(words[0], words);
	err_errno(e, words[0], "cannot run");
	arena_fini(&a);
	return -1;
}

struct whole {
	struct arena arena;
	const char *store, *config, *key, *out, *device, *log_format;
	struct command plan;
};

/* Takes out the options that other steps need; the rest is the plan's. */
static int parse(struct whole *w, int argc, char **argv, struct err *e)
{
	const struct {
		const char *name, **to;
	} own[] = {{"--store", &w->store}, {"--config", &w->config}, {"--key", &w->key}, {"--out", &w->out}, {"--device", &w->device},
		 {"--log-format", &w->log_format}};
	bool chosen = false;
	command_add(&w->plan, home_program(&w->arena, "ki-store"));
	command_add(&w->plan, "plan");
	for (int i = 0; i < argc; i++) {
		const char **to = NULL;
		for (size_t k = 0; k < sizeof own / sizeof *own; k++)
			if (strcmp(argv[i], own[k].name) == 0)
				to = own[k].to;
		if (to && i + 1 == argc)
			return err_set(e, ERR_USAGE, "%s wants a value; see ki verify --help", argv[i]);
		if (to) {
			*to = argv[++i];
			continue;
		}
		if (w->plan.count > 50)
			return err_set(e, ERR_USAGE, "too many words; use ki verify plan");
		command_add(&w->plan, argv[i]);
		chosen = true;
	}
	if (w->log_format && log_set_format(w->log_format, e))
		return -1;
	log_init("ki verify", false);
	w->store = home_store(w->store);
	command_add(&w->plan, "--store");
	command_add(&w->plan, w->store);
	if (w->config) {
		command_add(&w->plan, "--config");
		command_add(&w->plan, w->config);
	}
	return chosen ? 0 : err_set(e, ERR_USAGE, "name runs, --flagged or a filter; see ki verify --help");
}

/* Runs a command with this process's own streams; a non-zero end becomes the error, already told by the step. */
static int run_step(const struct command *c, struct err *e)
{
	pid_t pid = process_start(c, -1, -1, e);
	int code = pid < 0 ? ERR_IO : process_wait(pid);
	if (code == 0 || code == ERR_PARTIAL)
		return 0;
	e->code = code > 128 ? ERR_BUG : (enum err_code)code;
	return -1;
}

static int plan(struct whole *w, const char *jobs, struct err *e)
{
	struct buf lines = {0};
	int code = process_read(&w->plan, &lines, e), rc = -1;
	if (code > 0)
		e->code = (enum err_code)code;
	else if (code == 0 && lines.len == 0)
		err_set(e, ERR_NOTFOUND, "no record fits");
	else if (code == 0)
		rc = file_write(jobs, lines.data, lines.len, 0644, e);
	buf_fini(&lines);
	return rc;
}

static int run_all(struct whole *w, struct err *e)
{
	char now[WHEN_TEXT + 1];
	struct command run = {0}, import = {0};
	when_text(when_now_ms(), now);
	now[13] = now[16] = '-';
	now[19] = '\0';
	if (!w->out)
		w->out = arena_printf(&w->arena, "%s/verify/%s", w->store, now);
	const char *jobs = arena_printf(&w->arena, "%s/jobs.jsonl", w->out);
	command_add(&run, home_program(&w->arena, "ki-verify"));
	const char *run_words[] = {"run", jobs, "--out", w->out, "--key", w->key, "--device", w->device, "--config", w->config};
	for (size_t i = 0; i < sizeof run_words / sizeof *run_words; i++)
		if (i < 4 || run_words[i | 1]) /* an option without a value is left out */
			command_add(&run, run_words[i]);
	command_add(&import, home_program(&w->arena, "ki-store"));
	const char *import_words[] = {"import", w->out, "--store", w->store, "--config", w->config};
	for (size_t i = 0; i < sizeof import_words / sizeof *import_words; i++)
		if (i < 4 || import_words[i | 1])
			command_add(&import, import_words[i]);
	if (file_make_dirs(w->out, e) || plan(w, jobs, e) || run_step(&run, e))
		return -1;
	if (w->device && strcmp(w->device, "cpu") == 0) {
		log_info("nothing was timed on the CPU, so nothing is imported; evidence is in %s", w->out);
		return 0;
	}
	return run_step(&import, e);
}

int verify_main(int argc, char **argv, struct err *e)
{
	struct whole w = {0};
	log_init("ki verify", false);
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		usage(stdout);
		return file_flush_stdout(e);
	}
	for (size_t i = 0; argc > 1 && i < sizeof steps / sizeof *steps; i++)
		if (strcmp(steps[i].name, argv[1]) == 0)
			return pass_on(&steps[i], argc - 2, argv + 2, e);
	if (parse(&w, argc - 1, argv + 1, e) == 0)
		run_all(&w, e);
	arena_fini(&w.arena);
	return e->code ? -1 : 0;
}
