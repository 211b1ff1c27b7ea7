/* The layer kinds: one line each. */
#include <string.h>

#include "model/layer.h"

#define FOR_EACH_KIND(KIND)   \
    KIND(input)               \
    KIND(conv)                \
    KIND(dense)               \
    KIND(max_pool)            \
    KIND(average_pool)        \
    KIND(global_pool)         \
    KIND(adaptive_pool)       \
    KIND(batch_norm)          \
    KIND(relu)                \
    KIND(dropout)             \
    KIND(add)                 \
    KIND(flatten)             \
    KIND(softmax_cross_entropy) \
    KIND(mean_squared_error)  \
    KIND(relu6)               \
    KIND(leaky_relu)          \
    KIND(sigmoid)             \
    KIND(tanh)                \
    KIND(silu)                \
    KIND(hard_swish)          \
    KIND(multiply)            \
    KIND(stochastic_depth)    \
    KIND(concat)              \
    KIND(group_norm)          \
    KIND(local_response_norm) \
    KIND(transposed_conv)     \
    KIND(soft_dice)

#define DECLARE(kind) extern const cvy_layer_kind cvy_layer_##kind;
#define LIST(kind) &cvy_layer_##kind,

FOR_EACH_KIND(DECLARE)
static const cvy_layer_kind *const kinds[] = {FOR_EACH_KIND(LIST)};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const cvy_layer_kind *cvy_layer_kind_get(int i) { return i >= 0 && i < KINDS ? kinds[i] : NULL; }

const cvy_layer_kind *cvy_layer_kind_find(const char *name)
{
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

bool cvy_layer_kind_commits(const cvy_layer_kind *kind)
{
    for (int i = 0; i < kind->forward_passes; i++) {
        if (kind->forward[i] == CVY_PASS_COMMIT) {
            return true;
        }
    }
    return false;
}
