/* Manifests of bundles, as a GPU host reads them before it loads anybody's kernels: what is accepted stays within its own buffers. */
#include "fuzz.h"
#include "verify/bundle.h"

static void check_place(const struct bundle *b, const struct bundle_place *at, int64_t size_bytes)
{
	must(at->buffer >= 0 && at->buffer < b->buffers, "a place is in a buffer");
	must(at->offset >= 0 && size_bytes <= b->buffer[at->buffer].size_bytes - at->offset, "a place lies within its buffer");
}

static void check_ops(const struct bundle *b, const struct bundle_ops *ops)
{
	for (int i = 0; i < ops->count; i++) {
		const struct bundle_op *op = &ops->op[i];
		if (op->kind == BUNDLE_LAUNCH) {
			must(op->kernel >= 0 && op->kernel < b->kernel_count && op->args <= BUNDLE_ARGS_MAX, "a launch is of a kernel");
			must(op->grid[0] && op->grid[1] && op->grid[2], "a grid has blocks");
			for (int a = 0; a < op->args; a++)
				if (op->arg[a].pointer)
					check_place(b, &op->arg[a].at, 1);
		} else {
			check_place(b, &op->to, op->size_bytes);
			if (op->kind == BUNDLE_COPY)
				check_place(b, &op->from, op->size_bytes);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ki_axis_value axes[] = {{"rows", 8}, {"hidden", 64}};
	struct arena a = {0};
	struct bundle b;
	struct ki_case c;
	struct err e = {0};
	const char *reason;
	const struct ki_operation *op = ki_operation_find("rms_norm");
	int rc = bundle_read((struct slice){(const char *)data, size}, "input", op, &a, &b, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "a manifest is refused as input");
	if (rc == 0) {
		check_ops(&b, &b.setup);
		check_ops(&b, &b.timed);
		must(ki_case_set(&c, op, KI_BF16, axes, 2, NULL, 0, &reason) == 0, "the case is one");
		if (!bundle_unfit(&b, &c, KI_FORWARD))
			must(b.timed.count > 0, "what fits launches something");
	}
	arena_fini(&a);
	return 0;
}
