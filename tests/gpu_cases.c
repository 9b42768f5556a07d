#include "gpu_cases.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double gpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool gpu_chosen(const char *list, const char *word)
{
    size_t n = strlen(word);
    if (!list)
        return true;
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
            return true;
    return false;
}

bool gpu_tagged(const struct gpu_case *c, const char *tags)
{
    char copy[64], *save = NULL;
    if (!tags)
        return true;
    snprintf(copy, sizeof copy, "%s", c->tags);
    for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save))
        if (gpu_chosen(tags, t))
            return true;
    return false;
}

static void usage(const char *program)
{
    fprintf(stderr,
        "usage: %s [--cases FILE] [--config DIR] [--only OP,…] [--tag small,tiny,csv,anchor,largest] [--pass forward,…]\n"
        "       [--dtype fp32,…] [--seconds N] [--check-seconds N] [--log DIR] [--seed N] [--list] [--markdown]\n", program);
    exit(64);
}

struct gpu_options gpu_options(int argc, char **argv, const char *program)
{
    static const struct option known[] = {
        { "cases", 1, NULL, 'c' }, { "config", 1, NULL, 'C' }, { "only", 1, NULL, 'o' }, { "tag", 1, NULL, 't' },
        { "pass", 1, NULL, 'p' }, { "dtype", 1, NULL, 'd' }, { "seconds", 1, NULL, 's' }, { "check-seconds", 1, NULL, 'S' },
        { "log", 1, NULL, 'l' }, { "seed", 1, NULL, 'r' }, { "list", 0, NULL, 'L' }, { "markdown", 0, NULL, 'm' }, { 0 },
    };
    struct gpu_options o = { .cases = "fixtures/gpu/cases.txt", .config = "config", .seconds = 300, .check_seconds = 30, .seed = 1 };
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (c) {
        case 'c': o.cases = optarg; break;
        case 'C': o.config = optarg; break;
        case 'o': o.only = optarg; break;
        case 't': o.tag = optarg; break;
        case 'p': o.pass = optarg; break;
        case 'd': o.dtype = optarg; break;
        case 's': o.seconds = atof(optarg); break;
        case 'S': o.check_seconds = atof(optarg); break;
        case 'l': o.log = optarg; break;
        case 'r': o.seed = strtoull(optarg, NULL, 10); break;
        case 'L': o.list = true; break;
        case 'm': o.markdown = true; break;
        default: usage(program);
        }
    if (optind != argc)
        usage(program);
    return o;
}

static void malformed(const char *path, unsigned line, const char *what)
{
    fprintf(stderr, "%s:%u: %s\n", path, line, what);
    exit(65);
}

static void read_axes(struct gpu_case *c, char *text, const char *path, unsigned line)
{
    char *save = NULL;
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        char *value = strchr(word, '=');
        if (!value)
            malformed(path, line, "an axis without a value");
        *value++ = 0;
        if (strcmp(word, "best") == 0) {
            if (sscanf(value, "%lf,%lf", &c->best_us[0], &c->best_us[1]) != 2)
                malformed(path, line, "best= takes two times");
            continue;
        }
        if (c->n_axes == KI_MAX_AXES)
            malformed(path, line, "too many axes");
        snprintf(c->axis_name[c->n_axes], sizeof c->axis_name[0], "%s", word);
        c->axis[c->n_axes] = (struct ki_axis_value){ c->axis_name[c->n_axes], atoll(value) };
        c->n_axes++;
    }
}

size_t gpu_cases_read(const char *path, struct gpu_case cases[GPU_CASES_MAX])
{
    FILE *f = fopen(path, "r");
    char text[512];
    size_t n = 0;
    if (!f)
        malformed(path, 0, "cannot be read");
    for (unsigned line = 1; fgets(text, sizeof text, f); line++) {
        int at = 0;
        if (text[0] == '#' || text[strspn(text, " \n")] == 0)
            continue;
        if (n == GPU_CASES_MAX)
            malformed(path, line, "too many cases");
        struct gpu_case *c = &cases[n++];
        *c = (struct gpu_case){ 0 };
        if (sscanf(text, "%63s %63s %31s %n", c->name, c->tags, c->dtypes, &at) < 3 || at == 0)
            malformed(path, line, "not: operation tags dtypes axes");
        c->operation = ki_operation_find(c->name);
        read_axes(c, text + at, path, line);
    }
    fclose(f);
    return n;
}

const char *gpu_shape(const struct gpu_case *c, char *out, size_t out_size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < c->n_axes && at < out_size; i++)
        at += (size_t)snprintf(out + at, out_size - at, "%s%lld", i ? "x" : "", (long long)c->axis[i].value);
    return out;
}
