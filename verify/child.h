/* A sealed process that runs code of others: upstream's own, in Python, with what only a framework can run (docs/verify.md, "The child").
 *
 * It is a program of its own (verify/child.py), asked by JSON lines on its standard input and answering on its standard output. Sealed:
 * a session and a scratch folder of its own, no sockets but local ones, no looking into other processes, files written under the
 * scratch folder, $TRITON_CACHE_DIR, /dev and its own /proc only, limits on files and descriptors, no more rights, and it dies with this process.
 * Nothing that it says is believed alone: whoever asks gives it memory, looks at what it left there, and has a clock. Owned by whoever
 * started it; lives for one case or for many. */
#ifndef KI_VERIFY_CHILD_H
#define KI_VERIFY_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* A page that both processes and the device see: how a held call is released and how its end is known, without a message. */
struct child_words {
    volatile uint32_t ticket;  /* this process: calls up to this one may run */
    volatile uint32_t beat;    /* device: changes while a call is held */
    volatile uint32_t expired; /* device: a hold gave up after 2 s */
    volatile uint32_t done;    /* device: the call of this ticket has delivered */
};

enum child_end { CHILD_ALIVE, CHILD_TIMEOUT, CHILD_DIED, CHILD_NONSENSE };

struct child;

/* Starts `program` with the word "serve" and waits for it to say that it is there. NULL (ERR_UNAVAILABLE, in words) when it cannot start or
 * says why it cannot work here. */
struct child *child_start(const char *program, double seconds, struct err *e);
/* Kills it and everything it started in its session, and removes its scratch folder. NULL is fine. */
void child_end(struct child *c);

/* One question (given up here) and its answer, which the caller releases. NULL when there is none within `seconds`, when the child died,
 * or said something else: child_state() tells, and the child is of no use any more. An answer {"error": TEXT} is ERR_TEMP when it
 * says "memory", else ERR_UNAVAILABLE; the child lives on. */
json_t *child_ask(struct child *c, json_t *question, double seconds, struct err *e);

enum child_end child_state(const struct child *c);
volatile struct child_words *child_words(const struct child *c);
/* What it said of itself when it started: the versions of what it runs. */
const json_t *child_hello(const struct child *c);

#endif
