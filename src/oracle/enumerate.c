/*
 * Blocks by recursion over the divisors of the ranks, an axis after the other. A number has few divisors (100,000 has
 * 36, 65,536 has 17), so the blocks are thousands at most. Their number is limited, and large ones, which
 * cut finest, are those that are left out.
 */
#include "oracle/enumerate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MICRO_BATCHES_A_STAGE = 8 };

typedef struct listing {
    cvy_blocks blocks;
    int64_t most[CVY_AXES]; /* of each axis */
    cvy_channel_cut first_cut;
} listing;

static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The input bounds space, the widest layer the channels. */
static void find_most(const cvy_model *model, int64_t most_out[CVY_AXES])
{
    int64_t space[3];
    cvy_space_get(&model->layer[0].output, space);
    for (int axis = 0; axis < CVY_AXES; axis++) {
        most_out[axis] = axis >= CVY_AXIS_DEPTH && axis <= CVY_AXIS_WIDTH ? space[axis - CVY_AXIS_DEPTH] : 1;
    }
    for (int i = 0; i < model->layers; i++) {
        const cvy_shape *y = &model->layer[i].output;
        most_out[CVY_AXIS_CHANNEL] = greater(most_out[CVY_AXIS_CHANNEL], y->dims > 1 ? y->extent[1] : 1);
    }
}

static cvy_status add_block(listing *l, const int64_t size[CVY_AXES])
{
    cvy_block block = {.ranks = 1};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        block.size[axis] = size[axis];
        block.ranks *= size[axis];
    }
    bool channels = size[CVY_AXIS_CHANNEL] > 1;
    for (int cut = channels ? (int)l->first_cut : 0; cut < (channels ? CVY_CHANNEL_CUT_COUNT : 1); cut++) {
        block.cut = (cvy_channel_cut)cut;
        CVY_TRY(cvy_array_reserve(&l->blocks.block, l->blocks.count, &l->blocks.capacity, sizeof block));
        l->blocks.block[l->blocks.count++] = block;
    }
    return CVY_OK;
}

/* All sizes of an axis and of those behind it, of ranks that are left. */
static cvy_status add_axes(listing *l, int axis, int64_t ranks, int64_t size[CVY_AXES])
{
    if (axis == CVY_AXES) {
        return add_block(l, size);
    }
    for (int64_t i = 1; i <= least(ranks, l->most[axis]); i++) {
        if (ranks % i == 0) {
            size[axis] = i;
            CVY_TRY(add_axes(l, axis + 1, ranks / i, size));
        }
    }
    size[axis] = 1;
    return CVY_OK;
}

static bool is_along_one(const cvy_block *block)
{
    int axes = 0;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        axes += block->size[axis] > 1;
    }
    return axes <= 1;
}

/* Along one axis first, then by ranks; the rest only makes the order one. */
static int compare_blocks(const void *a, const void *b)
{
    const cvy_block *x = a, *y = b;
    int one = (int)is_along_one(y) - (int)is_along_one(x);
    if (one) {
        return one;
    }
    if (x->ranks != y->ranks) {
        return x->ranks < y->ranks ? -1 : 1;
    }
    for (int axis = CVY_AXES - 1; axis >= 0; axis--) {
        if (x->size[axis] != y->size[axis]) {
            return x->size[axis] < y->size[axis] ? -1 : 1;
        }
    }
    return (int)x->cut - (int)y->cut;
}

cvy_status cvy_blocks_list(const cvy_model *model, int64_t ranks, bool whole, int limit, cvy_blocks *blocks_out)
{
    listing l = {.first_cut = whole ? CVY_CHANNEL_CUT_FILTER : (cvy_channel_cut)0};
    int64_t size[CVY_AXES] = {1, 1, 1, 1, 1, 1};
    find_most(model, l.most);
    cvy_status status = add_axes(&l, CVY_AXIS_DEPTH, ranks, size);
    if (status != CVY_OK) {
        cvy_blocks_clear(&l.blocks);
        return status;
    }
    qsort(l.blocks.block, (size_t)l.blocks.count, sizeof *l.blocks.block, compare_blocks);
    int along_one = 0;
    while (along_one < l.blocks.count && is_along_one(&l.blocks.block[along_one])) {
        along_one++;
    }
    int kept = (int)least(l.blocks.count, (int64_t)along_one + limit);
    l.blocks.left_out = l.blocks.count - kept;
    l.blocks.count = kept;
    *blocks_out = l.blocks;
    return CVY_OK;
}

void cvy_blocks_clear(cvy_blocks *blocks)
{
    cvy_free(blocks->block);
    *blocks = (cvy_blocks){0};
}

cvy_status cvy_model_count_stages(const cvy_model *model, int *stages_out)
{
    bool *narrow = cvy_calloc((size_t)model->layers, sizeof *narrow);
    if (!narrow) {
        return CVY_ERR_MEMORY;
    }
    int stages = 1;
    cvy_status status = cvy_model_find_narrow(model, narrow);
    for (int i = 2; i < model->layers; i++) {
        stages += narrow[i - 1];
    }
    cvy_free(narrow);
    if (status == CVY_OK) {
        *stages_out = stages;
    }
    return status;
}

static bool set_mesh(cvy_variants *v, int64_t stages)
{
    int64_t size[CVY_AXES];
    memcpy(size, v->block->size, sizeof size);
    size[CVY_AXIS_STAGE] = stages;
    size[CVY_AXIS_SAMPLE] = v->ranks / v->block->ranks / stages;
    v->strategy.micro_batches = 1;
    v->strategy.pipeline = (cvy_pipeline_order)0;
    return size[CVY_AXIS_SAMPLE] <= v->batch && cvy_mesh_setup(size, NULL, &v->strategy.mesh) == CVY_OK;
}

void cvy_variants_begin(cvy_variants *v)
{
    v->strategy = (cvy_strategy){.channel_cut = v->block->cut};
}

/* Twice the micro-batches, as long as each rank has a sample for each. */
static bool double_micro_batches(cvy_variants *v)
{
    const int64_t *size = v->strategy.mesh.size;
    int64_t samples = v->batch / size[CVY_AXIS_SAMPLE], stages = size[CVY_AXIS_STAGE];
    int64_t most = least(samples, stages > 1 ? MICRO_BATCHES_A_STAGE * stages : CVY_MOST_ACCUMULATION);
    if (2 * v->strategy.micro_batches > most) {
        return false;
    }
    v->strategy.micro_batches *= 2;
    return true;
}

bool cvy_variants_next(cvy_variants *v)
{
    int64_t outer = v->ranks / v->block->ranks;
    int64_t stages = v->strategy.mesh.ranks ? v->strategy.mesh.size[CVY_AXIS_STAGE] : 0;
    if (stages > 1 && v->strategy.micro_batches > 1 && v->strategy.pipeline + 1 < CVY_PIPELINE_COUNT) {
        v->strategy.pipeline++;
        return true;
    }
    v->strategy.pipeline = (cvy_pipeline_order)0;
    if (stages && double_micro_batches(v)) {
        return true;
    }
    for (stages++; stages <= least(outer, v->max_stages); stages++) {
        if (outer % stages == 0 && set_mesh(v, stages)) {
            return true;
        }
    }
    return false;
}
