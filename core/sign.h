/* Signatures: Ed25519 keys, DSSE envelopes, and who may sign.
 *
 * An envelope is {"payload":base64,"payloadType":T,"signatures":[{"keyid":K,"sig":base64},…]} (DSSE v1: what is signed is
 * "DSSEv1 <len T> T <len payload> payload"). A key id is the SHA-256 of the 32 raw public bytes, in hex. Approved keys are
 * config/signers.json: {"version":1,"about":…,"signers":[{"keyid":K,"name":…,"publicKey":base64},…]}. */
#ifndef KI_CORE_SIGN_H
#define KI_CORE_SIGN_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"

#define SIGN_PAYLOAD_TYPE "application/vnd.in-toto+json"
enum { SIGN_KEY_BYTES = 32, SIGN_BYTES = 64, SIGN_MAX = 16 };

struct sign_key; /* a private key */

/* Make a key and write it, PKCS #8 in PEM, mode 0600, to `path`, which must not exist. */
int sign_keygen(const char *path, struct err *);
struct sign_key *sign_key_load(const char *path, struct err *);
void sign_key_free(struct sign_key *);
/* The entry for config/signers.json: one canonical JSON object. Appends. */
void sign_key_entry(const struct sign_key *, const char *name, struct buf *out);

/* Appends an envelope (canonical JSON, no newline) over `payload`, signed by each of the keys. */
int sign_envelope(struct slice payload, const char *payload_type, struct sign_key *const keys[], int n, struct buf *out, struct err *);
/* Add one more signature to an envelope. */
int sign_add(struct slice envelope, const struct sign_key *, struct buf *out, struct err *);

struct signers;
struct signers *signers_load(const char *path, struct err *);
void signers_free(struct signers *);

/* What the signatures of an envelope are worth. */
struct sign_check {
    int good, bad, unknown; /* signatures by approved keys that verify, that do not, and by keys that are not approved */
    char keyid[SIGN_MAX][DIGEST_HEX + 1]; /* of the good ones */
    char what[200];         /* in words, when the envelope is worth nothing */
};
/* Reads an envelope, checks every signature, appends the payload. `signers` NULL: nobody is approved. ERR_DATA when it is not an
 * envelope. Returns 0 otherwise; the caller accepts it when good > 0 and bad == 0. */
int sign_open(struct slice envelope, const struct signers *, const char *name, unsigned line, struct sign_check *, struct buf *payload, struct err *);
bool sign_accepted(const struct sign_check *);

#endif
