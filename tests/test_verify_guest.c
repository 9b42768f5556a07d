/* A call in a child as a window of the timer, with this very program as the child (`test_verify_guest serve`): there is no GPU here, so a thread
 * of it does to the shared page what the device would, or what $PLAY says. What is asked, believed and refused is the real thing. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/when.h"
#include "verify/control.h"
#include "verify/guest.h"

/* ---- the child ---- */

static bool play(const char *what)
{
    const char *p = getenv("PLAY");
    return p && strcmp(p, what) == 0;
}

static volatile struct child_words *page;
static volatile uint32_t queued; /* newest ticket */

/* Holds each ticket until it may go, takes 3 ms for it, and says that it is done. */
static void *device(void *unused)
{
    (void)unused;
    for (uint32_t held = 1;; usleep(50)) {
        if (queued < held)
            continue;
        if (!play("never held"))
            page->beat++;
        if (play("done early"))
            page->done = held;
        if (play("expired"))
            page->expired = 1;
        if ((int32_t)(page->ticket - held) < 0)
            continue;
        usleep(3000);
        if (!play("never done"))
            page->done = held;
        held++;
    }
    return NULL;
}

static void answer(const char *line)
{
    const char *ticket = strstr(line, "\"ticket\":");
    if (ticket)
        queued = (uint32_t)strtoul(ticket + strlen("\"ticket\":"), NULL, 10);
    if (strstr(line, "\"ask\":\"run\"") && play("shut"))
        fclose(stdout), pause();
    else if (strstr(line, "\"ask\":\"run\"") && play("no queue"))
        printf("{\"error\":\"cannot\"}\n");
    else if (strstr(line, "\"ask\":\"run\"") && play("twice"))
        printf("{}\n{\"ns\":3000000.5}\n");
    else if (strstr(line, "\"ask\":\"times\""))
        printf("%s\n", play("no time") ? "{}" : play("text") ? "{\"ns\":\"1\"}" : play("negative") ? "{\"ns\":-1}" : "{\"ns\":3000000.5}");
    else if (strstr(line, "\"ask\":\"source\""))
        printf("{\"median_ns\":%s,\"p20_ns\":900,\"p80_ns\":1100,\"host_ns\":400,\"flush_ns\":80000,\"samples\":%s}\n",
            play("much") ? "1e12" : play("none") ? "0" : "1000", play("few") ? "0" : "20");
    else
        printf("{\"waits\":%s}\n", play("waits") ? "true" : "false");
    fflush(stdout);
}

static int serve(void)
{
    char line[1 << 16];
    pthread_t thread;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
    if (page == MAP_FAILED || pthread_create(&thread, NULL, device, NULL) != 0)
        return 1;
    printf("{\"child\":1,\"files\":\"\"}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        answer(line);
    return 0;
}

/* ---- the parent ---- */

static char self[4096];

struct parts {
    struct trial trial;
    struct child *child;
    struct guest *guest;
    const struct bench_remote *remote;
};

static int nothing(void *state, const struct ki_call *call)
{
    (void)state;
    (void)call;
    return 0;
}

static struct parts *begin(const char *how)
{
    static const struct tolerance tolerance[KI_MAX_TENSORS];
    struct parts *p = calloc(1, sizeof *p);
    struct ki_case work;
    struct err e = { 0 };
    setenv("PLAY", how, 1);
    assert_int_equal(control_case("cpu", &work), 0);
    assert_int_equal(trial_init(&p->trial, place_shared(place_find("cpu")), &work, KI_FORWARD, (struct implementation){ .launch = nothing }, tolerance, 1,
                         1 << 30, &e), 0);
    p->child = child_start(self, 20, &e);
    assert_non_null(p->child);
    p->guest = guest_open(p->child, "liger", "", &p->trial, &e);
    assert_non_null(p->guest);
    p->remote = guest_remote(p->guest);
    return p;
}

static void end(struct parts *p)
{
    guest_close(p->guest);
    child_end(p->child);
    trial_fini(&p->trial);
    free(p);
}

static void a_held_call_is_timed_by_both_clocks(void **state)
{
    (void)state;
    struct parts *p = begin("well");
    for (int i = 0; i < 3; i++) {
        double inner = 0, outer = 0;
        assert_int_equal(p->remote->queue(p->remote->state, i == 2), 0);
        assert_int_equal(p->remote->release(p->remote->state, &outer), 0);
        assert_int_equal(p->remote->times(p->remote->state, &inner), 0);
        assert_true(inner == 3000000.5);
        assert_true(outer > 2.9e6 && outer < 1e9);
    }
    end(p);
}

/* Whatever the child does, the window fails with words, and in the time that it may take. */
static void what_is_no_window_is_refused(void **state)
{
    (void)state;
    static const struct { const char *how, *text; } ways[] = {
        { "never held", "the child's call was not held" }, { "expired", "the child's call was not held" }, { "never done", "the child's call did not end" },
        { "twice", "the child said something that is no answer and was killed" }, { "done early", "the child's call was over before it was let go" },
        { "no time", "the child gave no time" }, { "text", "the child gave no time" }, { "negative", "the child gave no time" },
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct parts *p = begin(ways[i].how);
        double inner, outer;
        int64_t from = when_monotonic_ns();
        assert_int_equal(p->remote->queue(p->remote->state, false), 0);
        assert_int_not_equal(p->remote->release(p->remote->state, &outer) != 0 || p->remote->times(p->remote->state, &inner) != 0, 0);
        assert_string_equal(guest_error(p->guest)->text, ways[i].text);
        assert_true(when_monotonic_ns() - from < (int64_t)20e9);
        end(p);
    }
}

static void a_call_that_cannot_be_queued_leaves_nothing_held(void **state)
{
    (void)state;
    struct parts *p = begin("no queue");
    assert_int_not_equal(p->remote->queue(p->remote->state, false), 0);
    assert_string_equal(guest_error(p->guest)->text, "cannot");
    assert_int_equal(child_words(p->child)->ticket, 1);
    end(p);
}

/* It is killed by this process then, which is not to be taken for its own end. */
static void a_child_that_says_no_more_is_said_to(void **state)
{
    (void)state;
    struct parts *p = begin("shut");
    assert_int_not_equal(p->remote->queue(p->remote->state, false), 0);
    assert_string_equal(guest_error(p->guest)->text, "the child said no more and was killed");
    assert_int_equal(child_state(p->child), CHILD_DIED);
    end(p);
}

static void a_call_that_waits_has_no_window(void **state)
{
    (void)state;
    struct parts *p = begin("waits");
    assert_null(p->remote);
    end(p);
}

static void times_by_the_sources_protocol_must_be_possible(void **state)
{
    (void)state;
    static const struct { const char *how, *text; } ways[] = {
        { "well", "" }, { "none", "the child's times by the source's protocol are no times" },
        { "few", "the child's times by the source's protocol are no times" }, { "much", "the child claims more time than it took" },
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct parts *p = begin(ways[i].how);
        struct bench_source s;
        assert_int_equal(guest_source(p->guest, 10, &s), ways[i].text[0] ? -1 : 0);
        assert_string_equal(guest_error(p->guest)->text, ways[i].text);
        end(p);
    }
}

/* ---- what a held call may leave ---- */

enum { ROWS = 16, HIDDEN = 1024 }; /* control_case() */

/* An implementation that remembers its first call. */
struct cheat {
    float x[ROWS * HIDDEN], weight[HIDDEN], y[ROWS * HIDDEN];
    bool knows, repeats, restores;
};

static int cheat(void *state, const struct ki_call *call)
{
    struct cheat *c = state;
    float *x = call->tensor[0].data, *weight = call->tensor[1].data, *y = call->tensor[ki_tensor_find(call->work.operation, "y")].data;
    if (c->restores) {
        memcpy(x, c->x, sizeof c->x);
        memcpy(weight, c->weight, sizeof c->weight);
    }
    if (c->repeats) {
        memcpy(y, c->y, sizeof c->y);
        return 0;
    }
    int rc = place_find("cpu")->launch(call);
    if (!c->knows) {
        memcpy(c->x, x, sizeof c->x);
        memcpy(c->weight, weight, sizeof c->weight);
        memcpy(c->y, y, sizeof c->y);
        c->knows = true;
    }
    return rc;
}

static struct trial *try(struct cheat *c)
{
    static const struct tolerance tolerance[KI_MAX_TENSORS] = { { 2, 1, 256, 4 }, { 2, 1, 256, 4 }, { 2, 1, 256, 4 }, { 2, 1, 256, 4 } };
    struct trial *t = calloc(1, sizeof *t);
    struct ki_case work;
    struct err e = { 0 };
    assert_int_equal(control_case("cpu", &work), 0);
    assert_int_equal(trial_init(t, place_find("cpu"), &work, KI_FORWARD, (struct implementation){ .launch = cheat, .state = c }, tolerance, 1, 1 << 30, &e), 0);
    t->hash_outputs = true;
    return t;
}

/* A sample as verify/bench.cu makes it of a remote call, compared whole. `late`: the call works on when it has ended. */
static int sample(struct trial *t, uint64_t number, bool late)
{
    struct cheat *c = t->by.state;
    t->chosen[0] = number;
    t->n_chosen = 1;
    assert_int_equal(trial_prepare(t, NULL, number), 0);
    assert_int_equal(trial_renew(t, NULL, number), 0);
    assert_int_equal(trial_enqueue(t, NULL), 0);
    assert_int_equal(trial_after(t, NULL, number), 0);
    if (late) {
        c->repeats = false;
        assert_int_equal(trial_enqueue(t, NULL), 0);
    }
    return trial_accept(t, number);
}

static void an_old_answer_is_refused_also_with_the_inputs_it_was_for(void **state)
{
    (void)state;
    struct cheat *c = calloc(1, sizeof *c);
    struct trial *t = try(c);
    assert_int_equal(sample(t, 2, false), 0);
    c->repeats = true;
    assert_int_equal(sample(t, 4, false), 1);
    assert_int_equal(t->result.status, COMPARE_NUMERICAL);
    c->restores = true;
    assert_int_equal(sample(t, 6, false), 1);
    assert_int_equal(t->result.status, COMPARE_MUTATION);
    trial_fini(t);
    free(t);
    free(c);
}

static void an_answer_that_comes_after_the_end_is_refused(void **state)
{
    (void)state;
    struct cheat *c = calloc(1, sizeof *c);
    struct trial *t = try(c);
    assert_int_equal(sample(t, 2, false), 0);
    c->repeats = true;
    assert_int_equal(sample(t, 4, true), 1);
    assert_string_equal(t->result.text, "outputs changed after a timed call had ended");
    trial_fini(t);
    free(t);
    free(c);
}

/* Not even by who knows the job, from which the rest is drawn. */
static void what_a_held_call_is_given_cannot_be_foreseen(void **state)
{
    (void)state;
    struct cheat *c = calloc(1, sizeof *c);
    struct trial *one = try(c), *other = try(c);
    assert_int_equal(sample(one, 1, false), 0);
    assert_int_equal(sample(other, 1, false), 0);
    assert_true(one->seen[3] != other->seen[3]);
    trial_fini(one);
    trial_fini(other);
    free(one);
    free(other);
    free(c);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_call_is_timed_by_both_clocks),
        cmocka_unit_test(what_is_no_window_is_refused),
        cmocka_unit_test(a_call_that_cannot_be_queued_leaves_nothing_held),
        cmocka_unit_test(a_child_that_says_no_more_is_said_to),
        cmocka_unit_test(a_call_that_waits_has_no_window),
        cmocka_unit_test(times_by_the_sources_protocol_must_be_possible),
        cmocka_unit_test(an_old_answer_is_refused_also_with_the_inputs_it_was_for),
        cmocka_unit_test(an_answer_that_comes_after_the_end_is_refused),
        cmocka_unit_test(what_a_held_call_is_given_cannot_be_foreseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
