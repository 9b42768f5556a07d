/* What a worker process tells its watchdog: the first byte is what was asked, the rest the line. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "verify/wire.h"

static void read_reply(struct slice line, const struct request *request)
{
	struct arena a = {0};
	struct reply reply = {0};
	struct err e = {0};
	int rc = wire_read_reply(line, request, &a, &reply, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "a reply is refused as input");
	if (rc == 0 && request->ask == ASK_BLOCK) {
		must(reply.samples >= 0 && reply.samples <= WIRE_SAMPLES_MAX, "samples are counted");
		for (int64_t i = 0; i < reply.samples; i++)
			must(isfinite(reply.ns[i]), "a sample is a number");
		reply_check(request, &reply, 1e9, 100);
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	struct request request = {.ask = (enum ask)(feed_byte(&feed) % 3), .nonce = "00112233"}, read = {0};
	struct slice line = feed_rest(&feed);
	struct err e = {0};
	must_agree(wire_read_request(line, &read, &e) != 0, &e);
	read_reply(line, &request);
	return 0;
}
