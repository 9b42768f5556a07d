#include "store/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 3, TEXT_MAX = 4 << 20 };

/* Text that occurs in many bodies, the most frequent last, where matches are cheapest. */
static const char dictionary[] =
	"{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"OperationSpec\",\"spec\":{\"axes\":{\"batch\":{\"role\":\"variable\",\"type\":"
	"\"integer\"},\"hidden\":{\"role\":\"variable\",\"type\":\"integer\"},\"seq\":{\"expression\":\"\",\"role\":\"derived\",\"type\":\"integer\"}"
	"},\"family\":\"\",\"inputs\":[{\"name\":\"x\",\"tensor\":{\"dtype\":\"float\",\"shape\":[\"rows\",\"hidden\"]}}],\"outputs\":[{\"name\":\"y\","
	"\"tensor\":{\"dtype\":\"float\",\"shape\":[\"tokens\",\"vocab\"]}}],\"semantics\":{\"determinism\":\"unspecified\",\"mutation\":\"none\"}}}"
	"{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"ImplementationRevision\",\"spec\":{\"buildVariants\":[{\"install\":{\"kind\":\"pip\","
	"\"package\":\"liger-kernel\"},\"name\":\"pip\"}],\"callable\":{\"language\":\"triton\"},\"licensing\":{\"concluded\":\"BSD-2-Clause\","
	"\"declared\":\"BSD-2-Clause\"},\"operation\":{\"specDigest\":\"sha256:\"},\"projectRevision\":{},\"support\":{\"dtypes\":[],"
	"\"hardwareArchitectures\":[]}}}"
	"{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"WorkloadCase\",\"spec\":{\"axes\":{\"hidden\":4096,\"rows\":2048},\"correctness\":{"
	"\"comparator\":\"not_asserted\"},\"operationSpecDigest\":\"sha256:\",\"scalars\":{\"eps\":{\"dtype\":\"fp32\",\"value\":0.000001}},\"tensors\":"
	"{\"weight\":{\"dtype\":\"bf16\",\"shape\":[4096]},\"x\":{\"dtype\":\"bf16\",\"shape\":[2048,4096]}}}}"
	"liger-fused-linear-cross-entropy sparse_multi_token_attention fused_neighborhood_attention tiled_swiglu geglu group_norm "
	"layer_norm embedding distill_jsd_loss dpo_loss kto_loss llama4_rope qwen2vl_mrope poly_norm softmax sparsemax Fused linear "
	"Cross-entropy loss Transformers PyTorch Liger torch.compile nvidia-a100-sxm4-80gb NVIDIA A100-SXM4-80GB NVIDIA H200 nvidia-h200 "
	"{\"benchmark\":\"cross_entropy/forward\",\"caseKey\":\"hidden4096-rows2048-bf16\",\"config\":\"{\\\"B\\\": 8, \\\"H\\\": 4096, \\\"V\\\": 32000, "
	"\\\"M\\\": 2048, \\\"T\\\": 2048, \\\"bsz\\\": 1, \\\"hidden_size\\\": 4096, \\\"num_q_heads\\\": 32, \\\"seq_len\\\": 2048, \\\"dtype\\\": "
	"\\\"torch.bfloat16\\\", \\\"torch.float32\\\", \\\"eps\\\": 1e-06}\",\"dtype\":\"bf16\",\"environment\":\"sha256:\",\"externalPrefix\":\""
	"rms_norm/forward/liger/nvidia-h100-80gb-hbm3/hidden4096-rows2048-bf16\",\"gpu\":\"NVIDIA H100 80GB HBM3\",\"implementation\":\"sha256:\","
	"\"kernel\":\"rms_norm\",\"metric\":\"latency\",\"mode\":\"forward\",\"operation\":\"sha256:\",\"operationSlug\":\"liger-rms-norm\","
	"\"operationTitle\":\"RMSNorm\",\"project\":\"sha256:\",\"protocol\":\"sha256:\",\"provider\":\"liger\",\"providerTitle\":\"Liger\",\"rule\":\""
	"\",\"workload\":\"sha256:\",\"workloadLabel\":\"rows = 2048 \xc2\xb7 hidden = 4096 \xc2\xb7 bf16\",\"xLabel\":\"hidden size\",\"xName\":\"H\","
	"\"xValue\":\"4096\"}";

/* libzstd 1.5.4 writes through NULL when a dictionary finds no memory. So as much is asked for and given back first: more than the
 * dictionary takes, and less than the C library would return to the kernel. */
enum { PROBE = 120 << 10 };

struct packer {
	ZSTD_CCtx *deflate;
	ZSTD_DCtx *inflate;
	ZSTD_CDict *to;
	ZSTD_DDict *from;
};

struct packer *packer_new(void)
{
	struct packer *p = xmalloc(sizeof *p);
	p->deflate = ZSTD_createCCtx();
	p->inflate = ZSTD_createDCtx();
	free(xmalloc(PROBE));
	p->to = ZSTD_createCDict(dictionary, sizeof dictionary - 1, LEVEL);
	p->from = ZSTD_createDDict(dictionary, sizeof dictionary - 1);
	if (!p->deflate || !p->inflate || !p->to || !p->from)
		out_of_memory();
	return p;
}

void packer_free(struct packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->deflate);
	ZSTD_freeDCtx(p->inflate);
	ZSTD_freeCDict(p->to);
	ZSTD_freeDDict(p->from);
	free(p);
}

void pack(struct packer *p, struct slice text, struct buf *out)
{
	size_t room = ZSTD_compressBound(text.len);
	buf_reserve(out, room);
	size_t len = ZSTD_compress_usingCDict(p->deflate, out->data + out->len, room, text.data, text.len, p->to);
	if (ZSTD_isError(len))
		out_of_memory(); /* the bound was given, so nothing else can fail */
	out->len += len;
}

int unpack(struct packer *p, struct slice packed, struct buf *out, struct err *e)
{
	unsigned long long len = ZSTD_getFrameContentSize(packed.data, packed.len);
	if (len > TEXT_MAX) /* also the two error values */
		return err_set(e, ERR_CORRUPT, "a packed text has no readable frame");
	buf_reserve(out, len);
	size_t got = ZSTD_decompress_usingDDict(p->inflate, out->data + out->len, len, packed.data, packed.len, p->from);
	if (ZSTD_isError(got) || got != len)
		return err_set(e, ERR_CORRUPT, "a packed text is damaged: %s", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong length");
	out->len += len;
	out->data[out->len] = '\0';
	return 0;
}
