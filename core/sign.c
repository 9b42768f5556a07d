#include "core/sign.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"

struct sign_key {
    EVP_PKEY *key;
    unsigned char public_bytes[SIGN_KEY_BYTES];
    char keyid[DIGEST_HEX + 1];
};

struct signers {
    json_t *document;
};

static void key_id(const unsigned char public_bytes[SIGN_KEY_BYTES], char out[DIGEST_HEX + 1])
{
    struct digest d = digest_of(public_bytes, SIGN_KEY_BYTES);
    digest_hex(&d, out);
}

static void put_base64(struct buf *out, const void *data, size_t len)
{
    buf_reserve(out, (len + 2) / 3 * 4 + 1);
    out->len += (size_t)EVP_EncodeBlock((unsigned char *)out->data + out->len, data, (int)len);
}

/* Strict base64: whole groups, padding at the end only. Appends; false when the text is anything else. */
static bool get_base64(const char *text, struct buf *out)
{
    size_t len = strlen(text), pad = len && text[len - 1] == '=' ? (len > 1 && text[len - 2] == '=' ? 2 : 1) : 0;
    if (len % 4 != 0 || len > 1 << 26
        || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") != len - pad)
        return false;
    buf_reserve(out, len / 4 * 3 + 1);
    int n = EVP_DecodeBlock((unsigned char *)out->data + out->len, (const unsigned char *)text, (int)len);
    if (n < 0)
        return false;
    out->len += (size_t)n - pad;
    return true;
}

static struct sign_key *key_new(EVP_PKEY *pkey)
{
    size_t n = SIGN_KEY_BYTES;
    struct sign_key *k = xcalloc(1, sizeof *k);
    k->key = pkey;
    if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519 || EVP_PKEY_get_raw_public_key(pkey, k->public_bytes, &n) != 1) {
        sign_key_free(k);
        return NULL;
    }
    key_id(k->public_bytes, k->keyid);
    return k;
}

static int write_key(int fd, EVP_PKEY *key, const char *path, struct err *e)
{
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return err_errno(e, path, "opening");
    }
    int ok = PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1 && fflush(f) == 0 && fsync(fd) == 0;
    if (fclose(f) != 0 || !ok)
        return err_errno(e, path, "writing");
    return 0;
}

int sign_keygen(const char *path, struct err *e)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (!key)
        return err_set(e, ERR_BUG, "OpenSSL cannot make an Ed25519 key");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd < 0 ? err_errno(e, path, "creating") : write_key(fd, key, path, e);
    EVP_PKEY_free(key);
    return rc;
}

struct sign_key *sign_key_load(const char *path, struct err *e)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        err_errno(e, path, "opening");
        return NULL;
    }
    EVP_PKEY *pkey = PEM_read_PrivateKey(f, NULL, NULL, (void *)(uintptr_t) "");
    fclose(f);
    struct sign_key *k = pkey ? key_new(pkey) : NULL;
    if (!k)
        err_at(e, ERR_CONFIG, path, 0, 0, "not an Ed25519 private key in PEM");
    return k;
}

void sign_key_free(struct sign_key *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->key);
    free(k);
}

void sign_key_entry(const struct sign_key *k, const char *name, struct buf *out)
{
    buf_printf(out, "{\"keyid\":\"%s\",\"name\":", k->keyid);
    json_put_str(out, name);
    buf_str(out, ",\"publicKey\":\"");
    put_base64(out, k->public_bytes, SIGN_KEY_BYTES);
    buf_str(out, "\"}");
}

/* The bytes that a signature covers. */
static void put_pae(struct buf *out, const char *type, struct slice payload)
{
    buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, payload.len);
    buf_add(out, payload.data, payload.len);
}

static int put_signature(struct buf *out, const struct sign_key *k, struct slice pae, struct err *e)
{
    unsigned char sig[SIGN_BYTES];
    size_t n = sizeof sig;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->key) == 1
        && EVP_DigestSign(ctx, sig, &n, (const unsigned char *)pae.data, pae.len) == 1;
    EVP_MD_CTX_free(ctx);
    if (!ok)
        return err_set(e, ERR_BUG, "OpenSSL cannot sign");
    buf_printf(out, "{\"keyid\":\"%s\",\"sig\":\"", k->keyid);
    put_base64(out, sig, n);
    buf_str(out, "\"}");
    return 0;
}

int sign_envelope(struct slice payload, const char *payload_type, struct sign_key *const keys[], int n, struct buf *out, struct err *e)
{
    struct buf pae = { 0 };
    int rc = 0;
    put_pae(&pae, payload_type, payload);
    buf_str(out, "{\"payload\":\"");
    put_base64(out, payload.data, payload.len);
    buf_str(out, "\",\"payloadType\":");
    json_put_str(out, payload_type);
    buf_str(out, ",\"signatures\":[");
    for (int i = 0; i < n && rc == 0; i++) {
        if (i)
            buf_char(out, ',');
        rc = put_signature(out, keys[i], (struct slice){ pae.data, pae.len }, e);
    }
    buf_str(out, "]}");
    buf_fini(&pae);
    return rc;
}

/* The three members of an envelope; ERR_DATA when they are not there. */
static int envelope_parts(json_t *o, const char **type, struct buf *payload, json_t **signatures)
{
    const char *text = json_string_value(json_object_get(o, "payload"));
    *type = json_string_value(json_object_get(o, "payloadType"));
    *signatures = json_object_get(o, "signatures");
    return text && *type && json_is_array(*signatures) && json_array_size(*signatures) <= SIGN_MAX && get_base64(text, payload) ? 0 : -1;
}

int sign_add(struct slice envelope, const struct sign_key *k, struct buf *out, struct err *e)
{
    struct buf payload = { 0 }, pae = { 0 }, added = { 0 };
    const char *type;
    json_t *signatures, *o = json_load_text(envelope.data, envelope.len, "envelope", e);
    int rc = -1;
    if (!o)
        return -1;
    if (envelope_parts(o, &type, &payload, &signatures) != 0) {
        err_set(e, ERR_DATA, "not a DSSE envelope");
        goto out;
    }
    put_pae(&pae, type, (struct slice){ payload.data, payload.len });
    if (put_signature(&added, k, (struct slice){ pae.data, pae.len }, e) != 0)
        goto out;
    json_array_append_new(signatures, json_loadb(added.data, added.len, 0, NULL));
    rc = json_canonical(o, out, e);
out:
    buf_fini(&payload);
    buf_fini(&pae);
    buf_fini(&added);
    json_decref(o);
    return rc;
}

static int check_signer(const char *path, json_t *s, struct err *e)
{
    const char *id = json_string_value(json_object_get(s, "keyid")), *text = json_string_value(json_object_get(s, "publicKey"));
    struct buf raw = { 0 };
    char expected[DIGEST_HEX + 1] = "";
    if (text && get_base64(text, &raw) && raw.len == SIGN_KEY_BYTES)
        key_id((const unsigned char *)raw.data, expected);
    buf_fini(&raw);
    if (!id || strcmp(id, expected) != 0 || !json_is_string(json_object_get(s, "name")) || json_object_size(s) != 3)
        return err_at(e, ERR_CONFIG, path, 0, 0, "a signer is {keyid, name, publicKey}, its key id the SHA-256 of the key");
    return 0;
}

struct signers *signers_load(const char *path, struct err *e)
{
    struct signers *s = xcalloc(1, sizeof *s);
    size_t i;
    s->document = json_load_config(path, e);
    json_t *v, *list = json_object_get(s->document, "signers");
    bool ok = s->document != NULL;
    if (ok && (!json_is_array(list) || json_integer_value(json_object_get(s->document, "version")) != 1))
        ok = err_at(e, ERR_CONFIG, path, 0, 0, "not {version: 1, signers: […]}") == 0;
    json_array_foreach(list, i, v)
        ok = ok && check_signer(path, v, e) == 0;
    if (ok)
        return s;
    signers_free(s);
    return NULL;
}

void signers_free(struct signers *s)
{
    if (!s)
        return;
    json_decref(s->document);
    free(s);
}

/* The raw public key of an approved key id; false when there is none. */
static bool find_signer(const struct signers *s, const char *id, struct buf *raw)
{
    size_t i;
    json_t *v;
    json_array_foreach(s ? json_object_get(s->document, "signers") : NULL, i, v)
        if (strcmp(json_string_value(json_object_get(v, "keyid")), id) == 0)
            return get_base64(json_string_value(json_object_get(v, "publicKey")), raw);
    return false;
}

static bool verifies(const struct buf *raw, const char *sig_text, struct slice pae)
{
    struct buf sig = { 0 };
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)raw->data, raw->len);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key && ctx && sig_text && get_base64(sig_text, &sig) && sig.len == SIGN_BYTES
        && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1
        && EVP_DigestVerify(ctx, (const unsigned char *)sig.data, sig.len, (const unsigned char *)pae.data, pae.len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    buf_fini(&sig);
    return good;
}

static void check_signature(json_t *signature, const struct signers *signers, struct slice pae, struct sign_check *check)
{
    const char *id = json_string_value(json_object_get(signature, "keyid"));
    struct buf raw = { 0 };
    if (!id || !find_signer(signers, id, &raw)) {
        check->unknown++;
        snprintf(check->what, sizeof check->what, "signed by a key that is not approved: %.64s", id ? id : "none");
    } else if (!verifies(&raw, json_string_value(json_object_get(signature, "sig")), pae)) {
        check->bad++;
        snprintf(check->what, sizeof check->what, "the signature of %.64s does not fit the payload", id);
    } else {
        bool again = false;
        for (int i = 0; i < check->good; i++)
            again = again || strcmp(check->keyid[i], id) == 0;
        if (!again)
            snprintf(check->keyid[check->good++], sizeof check->keyid[0], "%s", id);
    }
    buf_fini(&raw);
}

int sign_open(struct slice envelope, const struct signers *signers, const char *name, unsigned line, struct sign_check *check,
    struct buf *payload, struct err *e)
{
    const char *type;
    json_t *signatures, *v, *o = json_load_text(envelope.data, envelope.len, name, e);
    struct buf pae = { 0 };
    size_t i, from = payload->len;
    *check = (struct sign_check){ 0 };
    if (!o) {
        e->line = line;
        return -1;
    }
    if (envelope_parts(o, &type, payload, &signatures) != 0) {
        json_decref(o);
        return err_at(e, ERR_DATA, name, line, 0, "not a DSSE envelope");
    }
    put_pae(&pae, type, (struct slice){ payload->data + from, payload->len - from });
    if (strcmp(type, SIGN_PAYLOAD_TYPE) != 0)
        snprintf(check->what, sizeof check->what, "the payload is not an in-toto statement");
    else if (json_array_size(signatures) == 0)
        snprintf(check->what, sizeof check->what, "not signed");
    else
        json_array_foreach(signatures, i, v)
            check_signature(v, signers, (struct slice){ pae.data, pae.len }, check);
    buf_fini(&pae);
    json_decref(o);
    return 0;
}

bool sign_accepted(const struct sign_check *c)
{
    return c->good > 0 && c->bad == 0;
}
