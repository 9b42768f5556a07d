#include "kernel.h"

/* One line an operation; X(name) stands for name.cu, which defines `name_operation`. */
#define OPERATIONS(X) \
    X(cross_entropy) \
    X(embedding) \
    X(dyt) \
    X(dyt_no_beta) \
    X(fused_add_rms_norm) \
    X(fused_neighborhood_attention) \
    X(group_norm) \
    X(jsd) \
    X(kl_div) \
    X(layer_norm) \
    X(llama4_rope) \
    X(megatron_cross_entropy) \
    X(megatron_rms_norm) \
    X(megatron_swiglu) \
    X(relu_squared) \
    X(rms_norm) \
    X(rope) \
    X(softmax) \
    X(sparsemax) \
    X(tvd)

#define DECLARE(name) extern const struct ki_operation name##_operation;
OPERATIONS(DECLARE)

#define ENTRY(name) &name##_operation,
static const struct ki_operation *const operations[] = { OPERATIONS(ENTRY) };

const struct ki_operation *ki_operation_at(size_t i)
{
    return i < sizeof operations / sizeof operations[0] ? operations[i] : NULL;
}

const struct ki_operation *ki_operation_find(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i]->name, name) == 0)
            return operations[i];
    return NULL;
}
