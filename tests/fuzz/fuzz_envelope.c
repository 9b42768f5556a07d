/* DSSE envelopes of evidence and who may sign. Any bytes are opened; the same bytes as a payload are signed, opened and accepted. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/sign.h"
#include "fuzz.h"

static struct sign_key *key;
static struct signers *signers;

static void prepare(void)
{
	char path[64], list[64];
	struct buf entry = {0};
	struct err e = {0};
	snprintf(path, sizeof path, "%s/key.pem", fuzz_directory());
	snprintf(list, sizeof list, "%s/signers.json", fuzz_directory());
	must(sign_keygen(path, &e) == 0 && (key = sign_key_load(path, &e)) != NULL, "a key can be made");
	sign_key_entry(key, "fuzz", &entry);
	FILE *out = fopen(list, "w");
	must(out != NULL, "there is a place for signers");
	fprintf(out, "{\"version\":1,\"about\":\"x\",\"signers\":[%s]}\n", entry.data);
	must(fclose(out) == 0 && (signers = signers_load(list, &e)) != NULL, "the key is approved");
	buf_fini(&entry);
}

static void open_any(struct slice text)
{
	struct sign_check check;
	struct buf payload = {0}, added = {0};
	struct err e = {0}, other = {0};
	int rc = sign_open(text, signers, "input", 1, &check, &payload, &e);
	must_agree(rc != 0, &e);
	must(rc || !sign_accepted(&check), "nobody's envelope but ours is accepted");
	rc = sign_add(text, key, &added, &other);
	must_agree(rc != 0, &other);
	buf_fini(&payload);
	buf_fini(&added);
}

static void sign_any(struct slice payload)
{
	struct sign_check check;
	struct buf envelope = {0}, back = {0};
	struct err e = {0};
	must(sign_envelope(payload, SIGN_PAYLOAD_TYPE, &key, 1, &envelope, &e) == 0, "any payload can be signed");
	must(sign_open((struct slice){envelope.data, envelope.len}, signers, "own", 1, &check, &back, &e) == 0 && sign_accepted(&check),
	     "what we sign we accept");
	must(slice_same(payload, (struct slice){back.data, back.len}), "the payload comes back as it was");
	size_t middle = envelope.len / 2;
	envelope.data[middle] = (char)(envelope.data[middle] ^ 1);
	back.len = 0;
	if (sign_open((struct slice){envelope.data, envelope.len}, signers, "changed", 1, &check, &back, &e) == 0)
		must(!sign_accepted(&check) || slice_same(payload, (struct slice){back.data, back.len}), "a changed payload is not accepted");
	buf_fini(&envelope);
	buf_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	if (!key)
		prepare();
	open_any(text);
	sign_any(text);
	return 0;
}
