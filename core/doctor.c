#include "core/doctor.h"

#include <errno.h>
#include <getopt.h>
#include <openssl/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/json.h"
#include "core/log.h"
#include "core/nightly.h"
#include "core/process.h"
#include "core/sign.h"
#include "core/when.h"

enum verdict { OK, WARN, FAIL };
static const char *const verdict_words[] = {"ok", "warn", "fail"};

struct doctor {
	const char *store, *config;
	double max_age_hours;
	bool json, help;
	struct arena arena;
	json_t *checks;
	enum err_code first; /* of what failed */
};

enum { FREE_FAIL = 64 << 20, FREE_WARN = 1 << 30, INODES_FAIL = 100, INODES_WARN = 10000 };

/* One check's outcome: what was found and, where it is not fine, what to do. `code` is what a failure ends with. */
static void say(struct doctor *d, enum verdict v, enum err_code code, const char *name, const char *advice, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

static void say(struct doctor *d, enum verdict v, enum err_code code, const char *name, const char *advice, const char *format, ...)
{
	char found[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof found, format, args);
	va_end(args);
	if (v == FAIL && !d->first)
		d->first = code;
	json_t *check = json_pack("{s:s, s:s, s:s}", "check", name, "verdict", verdict_words[v], "found", found);
	if (v != OK)
		json_object_set_new(check, "advice", json_string(advice));
	json_array_append_new(d->checks, check);
	if (!d->json)
		printf("%-4s  %-11s  %s%s%s\n", verdict_words[v], name, found, v == OK ? "" : ": ", v == OK ? "" : advice);
}

/* ---- programs and config ---- */

/* Each program starts and is of this version: a library that is not there shows here. */
static void check_programs(struct doctor *d)
{
	static const char *const programs[] = {"ki-ingest", "ki-normalize", "ki-store", "ki-verify"};
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct command c = {0};
		struct buf out = {0};
		struct err e = {0};
		const char *own = arena_printf(&d->arena, "%s %s ", programs[i], KI_VERSION);
		command_add(&c, home_program(&d->arena, programs[i]));
		command_add(&c, "--version");
		int code = process_read(&c, &out, &e);
		if (code == 0)
			out.data[strcspn(out.data, "\n")] = '\0';
		if (code)
			say(d, FAIL, ERR_UNAVAILABLE, programs[i], "install the package again, with its libraries (ldd names those missing)", "does not start (%d)", code);
		else if (strncmp(out.data, own, strlen(own)) != 0)
			say(d, FAIL, ERR_UNAVAILABLE, programs[i], "install all programs from one package", "is not %s but %s", KI_VERSION, out.data);
		else
			say(d, OK, ERR_NONE, programs[i], NULL, "%s", out.data + strlen(programs[i]) + 1);
		buf_fini(&out);
	}
}

static void check_config(struct doctor *d)
{
	struct err e = {0};
	struct command c = {0};
	struct buf out = {0};
	const char *config = home_config(&d->arena, d->config, &e);
	if (!config) {
		say(d, FAIL, ERR_CONFIG, "config", "install it, or set KI_CONFIG", "%s", e.text);
		return;
	}
	command_add(&c, home_program(&d->arena, "ki-normalize"));
	command_add(&c, "--check-config");
	command_add(&c, "--config");
	command_add(&c, config);
	int code = process_read(&c, &out, &e);
	if (code)
		say(d, FAIL, ERR_CONFIG, "config", "mend what the line above names", "%s is not sound", config);
	else
		say(d, OK, ERR_NONE, "config", NULL, "%s: %.*s", config, (int)strcspn(out.data, "\n"), out.data);
	buf_fini(&out);
}

/* ---- the machine ---- */

static void check_clock(struct doctor *d)
{
	struct timex t = {0};
	char now[WHEN_TEXT + 1];
	int64_t now_ms = when_now_ms(), earliest_ms = 0;
	bool synchronized = adjtimex(&t) != TIME_ERROR && !(t.status & STA_UNSYNC);
	const char release[] = "2026-01-01 00:00:00";
	when_parse(release, sizeof release - 1, &earliest_ms);
	when_text(now_ms, now);
	if (now_ms < earliest_ms)
		say(d, FAIL, ERR_CONFIG, "clock", "set it: certificates and ages depend on it", "says %s, which is before this program was made", now);
	else if (!synchronized)
		say(d, WARN, ERR_NONE, "clock", "run a time service (systemd-timesyncd, chrony), unless the host keeps this machine's time", "%s, not known to be synchronized", now);
	else
		say(d, OK, ERR_NONE, "clock", NULL, "%s, synchronized", now);
}

static void check_disk(struct doctor *d, const char *path)
{
	struct statvfs f;
	if (statvfs(path, &f) != 0) {
		say(d, FAIL, ERR_IO, "disk", "look at the file system", "%s: %s", path, strerror(errno));
		return;
	}
	unsigned long long bytes = (unsigned long long)f.f_bavail * f.f_frsize, inodes = f.f_favail;
	bool counted = f.f_files > 0; /* some file systems have no fixed number of inodes */
	enum verdict v = bytes < FREE_FAIL || (counted && inodes < INODES_FAIL)	  ? FAIL
			 : bytes < FREE_WARN || (counted && inodes < INODES_WARN) ? WARN
										  : OK;
	say(d, f.f_flag & ST_RDONLY ? FAIL : v, ERR_IO, "disk", f.f_flag & ST_RDONLY ? "mount it for writing" : "make room: old dumps in export/ may go", "%s: %llu MiB and %llu inodes free%s", path,
	    bytes >> 20, inodes, f.f_flag & ST_RDONLY ? ", read-only" : "");
}

/* Where libcurl on Debian, and OpenSSL, look for the certificates of authorities. */
static void check_certificates(struct doctor *d)
{
	const char *given = getenv("SSL_CERT_FILE"), *path = given ? given : "/etc/ssl/certs/ca-certificates.crt";
	if (access(path, R_OK) != 0 && !given)
		path = X509_get_default_cert_file();
	X509_STORE *authorities = X509_STORE_new();
	bool loaded = authorities && X509_STORE_load_file(authorities, path) == 1;
	STACK_OF(X509_OBJECT) *objects = loaded ? X509_STORE_get0_objects(authorities) : NULL;
	int count = objects ? sk_X509_OBJECT_num(objects) : 0;
	X509_STORE_free(authorities);
	if (count > 0)
		say(d, OK, ERR_NONE, "ca-certs", NULL, "%d authorities in %s", count, path);
	else
		say(d, FAIL, ERR_UNAVAILABLE, "ca-certs", "install ca-certificates: without them nothing can be fetched", "none in %s", path);
}

/* A GPU is for reruns only. */
static void check_gpu(struct doctor *d)
{
	struct buf text = {0};
	struct err e = {0};
	if (access("/dev/nvidiactl", F_OK) != 0)
		say(d, OK, ERR_NONE, "gpu", NULL, "none here; only ki verify run needs one");
	else if (access("/dev/nvidiactl", R_OK | W_OK) != 0)
		say(d, WARN, ERR_NONE, "gpu", "let this user open /dev/nvidia*, or rerun elsewhere", "/dev/nvidiactl: %s", strerror(errno));
	else if (file_read("/proc/driver/nvidia/version", 4096, &text, &e))
		say(d, WARN, ERR_NONE, "gpu", "load the nvidia module", "a device, but no driver: %s", e.text);
	else
		say(d, OK, ERR_NONE, "gpu", NULL, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	buf_fini(&text);
}

/* ---- keys ---- */

static void check_key(struct doctor *d, const char *path)
{
	struct err e = {0};
	struct stat info;
	struct sign_key *key = sign_key_load(path, &e);
	if (!key)
		say(d, FAIL, ERR_CONFIG, "key", "ki verify keygen FILE makes one", "KI_KEY %s: %s", path, e.text);
	else if (stat(path, &info) == 0 && (info.st_mode & 077))
		say(d, WARN, ERR_NONE, "key", "chmod 600 it", "KI_KEY %s can be read by others", path);
	else
		say(d, OK, ERR_NONE, "key", NULL, "KI_KEY %s", path);
	sign_key_free(key);
}

static void check_keys(struct doctor *d)
{
	struct err e = {0};
	const char *config = home_config(&d->arena, d->config, &e), *key = getenv("KI_KEY");
	if (!config)
		return; /* said already */
	struct signers *signers = signers_load(arena_printf(&d->arena, "%s/signers.json", config), &e);
	if (signers)
		say(d, OK, ERR_NONE, "signers", NULL, "%s/signers.json is sound", config);
	else
		say(d, FAIL, ERR_CONFIG, "signers", "mend it: evidence is accepted only from the keys it lists", "%s: %s", e.file, e.text);
	signers_free(signers);
	if (key)
		check_key(d, key);
}

/* ---- the store ---- */

static void check_permissions(struct doctor *d)
{
	static const char *const files[] = {"", "/data.mdb", "/nightly.lock", "/write.lock", "/report.json", "/snapshots", "/export"};
	struct stat info;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *path = arena_printf(&d->arena, "%s%s", d->store, files[i]);
		if (access(path, F_OK) == 0 && access(path, W_OK) != 0) {
			say(d, FAIL, ERR_NOPERM, "permissions", "run as the store's owner, or give it to this user (chown -R)", "%s cannot be written by user %u", path, (unsigned)geteuid());
			return;
		}
		if (stat(path, &info) == 0 && (info.st_mode & S_IWOTH)) {
			say(d, WARN, ERR_NONE, "permissions", "chmod o-w it", "%s can be written by anybody", path);
			return;
		}
		if (stat(path, &info) == 0 && geteuid() == 0 && info.st_uid != 0) {
			say(d, WARN, ERR_NONE, "permissions", "run ki as that user, or its files will be root's", "%s belongs to user %u, and this is root", path, (unsigned)info.st_uid);
			return;
		}
	}
	say(d, OK, ERR_NONE, "permissions", NULL, "user %u may write %s", (unsigned)geteuid(), d->store);
}

static void check_locks(struct doctor *d)
{
	static const char *const locks[] = {"nightly.lock", "write.lock", "snapshots/lock"};
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
		int fd = open(arena_printf(&d->arena, "%s/%s", d->store, locks[i]), O_RDONLY | O_CLOEXEC);
		bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
		if (fd >= 0)
			close(fd);
		if (held) {
			say(d, WARN, ERR_NONE, "locks", "wait for that run; a lock dies with its process, never remove the file", "%s is held: a run is on its way", locks[i]);
			return;
		}
	}
	say(d, OK, ERR_NONE, "locks", NULL, "none is held");
}

/* Whether nights run and succeed. */
static void check_nights(struct doctor *d)
{
	const char *advice = "look at the timer: systemctl list-timers kernelindex.timer, or the crontab";
	struct err e = {0};
	json_t *report = nightly_report(d->store, &e);
	const char *started = json_text_of(report, "startedAt"), *success = json_text_of(report, "lastSuccessAt");
	int64_t started_ms, success_ms;
	json_int_t code = json_whole_of(report, "exitCode");
	if (e.code)
		say(d, WARN, ERR_NONE, "nights", "the next night writes another one", "%s: %s", e.file, e.text);
	else if (!report || !when_parse_text(started, strlen(started), &started_ms))
		say(d, WARN, ERR_NONE, "nights", advice, "no night has left a report in %s", d->store);
	else if ((double)(when_now_ms() - started_ms) > d->max_age_hours * 3600000)
		say(d, FAIL, ERR_TEMP, "nights", advice, "the last one began at %s, more than %.0f hours ago", started, d->max_age_hours);
	else if (started_ms > when_now_ms() + 60000)
		say(d, WARN, ERR_NONE, "nights", "set the clock", "the last one began at %s, which is yet to come", started);
	else if (when_parse_text(success, strlen(success), &success_ms) && (double)(when_now_ms() - success_ms) > d->max_age_hours * 3600000)
		say(d, FAIL, ERR_TEMP, "nights", "look at what it wrote: journalctl -u kernelindex, or cron's mail", "the last success began at %s", success);
	else if (code > ERR_PARTIAL)
		say(d, WARN, ERR_NONE, "nights", "look at what it wrote: journalctl -u kernelindex, or cron's mail", "the last one, of %s, ended with %lld", started, code);
	else
		say(d, OK, ERR_NONE, "nights", NULL, "the last one began at %s and ended with %lld", started, code);
	json_decref(report);
}

static void check_store(struct doctor *d)
{
	if (!file_exists(d->store)) {
		say(d, WARN, ERR_NONE, "store", "ki nightly makes it; or give --store DIR", "%s is not there yet", d->store);
		check_disk(d, ".");
		return;
	}
	struct command c = {0};
	struct buf out = {0};
	struct err e = {0};
	command_add(&c, home_program(&d->arena, "ki-store"));
	command_add(&c, "status");
	command_add(&c, "--json");
	command_add(&c, "--store");
	command_add(&c, d->store);
	int code = process_read(&c, &out, &e);
	if (code == 0)
		say(d, OK, ERR_NONE, "store", NULL, "%s can be read (ki check proves it whole)", d->store);
	else
		say(d, FAIL, code < 0 || code > 128 ? ERR_BUG : (enum err_code)code, "store", "see the line above; a backup is restored by copying it back", "%s cannot be read (%d)", d->store, code);
	buf_fini(&out);
	check_disk(d, d->store);
	check_permissions(d);
	check_locks(d);
	check_nights(d);
}

/* ---- options ---- */

static void usage(FILE *out)
{
	fputs("usage: ki doctor [option…]\n\n"
	      "Looks at everything that a night needs: programs and their libraries, config, clock, certificates, GPU, keys, store, disk,\n"
	      "permissions, locks, the last night. Changes nothing. Each line says ok, warn or fail, and what to do.\n\n"
	      "  --max-age HOURS  fail when the last night is older; 48 when not given\n"
	      "  --json         one object: {checks: [{check, verdict, found, advice}], exitCode}\n"
	      "  --store DIR    the store; $KI_STORE, else var/store, when not given\n"
	      "  --config DIR   the config; $KI_CONFIG, else the installation's, when not given\n"
	      "  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
	      "  --help         this text\n\n"
	      "exit: 0 nothing fails, also when there are warnings; else the code of the first that fails: 64 usage, 69 a program or the\n"
	      "      certificates, 74 disk, 75 no night of late, 77 permissions, 78 config, 80 store damaged\n",
	      out);
}

static int parse(struct doctor *d, int argc, char **argv, struct err *e)
{
	static const struct option known[] = {{"store", required_argument, NULL, 's'},	{"config", required_argument, NULL, 'c'},
					      {"max-age", required_argument, NULL, 'm'}, {"log-format", required_argument, NULL, 'l'},
					      {"json", no_argument, NULL, 'j'},		{"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	int code;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "", known, NULL)) != -1) {
		char *end = NULL;
		switch (code) {
		case 's': d->store = optarg; break;
		case 'c': d->config = optarg; break;
		case 'j': d->json = true; break;
		case 'h': d->help = true; break;
		case 'l':
			if (log_set_format(optarg, e))
				return -1;
			break;
		case 'm':
			d->max_age_hours = strtod(optarg, &end);
			if (!*optarg || *end || !(d->max_age_hours > 0))
				return err_set(e, ERR_USAGE, "--max-age %s: want a number of hours above 0", optarg);
			break;
		default: return err_option(e, argv, "ki doctor");
		}
	}
	if (optind < argc)
		return err_set(e, ERR_USAGE, "%s: not an option; see ki doctor --help", argv[optind]);
	d->store = home_store(d->store);
	return 0;
}

static int examine(struct doctor *d, struct err *e)
{
	check_programs(d);
	check_config(d);
	check_clock(d);
	check_certificates(d);
	check_gpu(d);
	check_keys(d);
	check_store(d);
	if (!d->json)
		return 0;
	json_t *all = json_pack("{s:O, s:i}", "checks", d->checks, "exitCode", (int)d->first);
	int rc = json_put_line(all, stdout, e);
	json_decref(all);
	return rc;
}

int doctor_main(int argc, char **argv, struct err *e)
{
	struct doctor d = {.max_age_hours = 48, .checks = json_array()};
	log_init("ki doctor", false);
	int rc = parse(&d, argc, argv, e);
	log_init("ki doctor", false); /* again, for --log-format */
	if (rc == 0 && d.help)
		usage(stdout);
	else if (rc == 0)
		rc = examine(&d, e);
	if (rc == 0)
		rc = file_flush_stdout(e);
	if (rc == 0)
		e->code = d.first; /* every line has said what is wrong */
	json_decref(d.checks);
	arena_fini(&d.arena);
	return e->code ? -1 : 0;
}
