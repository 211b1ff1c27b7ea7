/*
 * What layers hand to each other. A layer's output lies as its op left it, then as others find it; a consumer may want
 * another share of it, rows from other ranks, another format. What was made for one consumer serves all that want the
 * same, on every rank: it is the placements that are compared, not what this rank happens to have of them.
 */
#include "base/memory.h"
#include "plan/builder.h"

static cvy_status note_variant(cvy_builder *b, int source, const cvy_variant *variant)
{
    CVY_TRY(cvy_array_reserve(&b->variant, b->variants, &b->variant_capacity, sizeof *b->variant));
    b->variant[b->variants] = *variant;
    b->variant[b->variants].next = b->layer[source].variant;
    b->layer[source].variant = b->variants++;
    return CVY_OK;
}

/* A variant that serves input @p i of a layer; in any format where @p format is CVY_FORMAT_COUNT. -1: none. */
static int find_variant(const cvy_builder *b, int layer, int i, bool halo, cvy_format format)
{
    int source = b->model->layer[layer].input[i];
    for (int k = b->layer[source].variant; k >= 0; k = b->variant[k].next) {
        const cvy_variant *known = &b->variant[k];
        cvy_format has = b->schedule->buffer[known->buffer].tensor.format;
        if (known->halo == halo && (format == CVY_FORMAT_COUNT || has == format) &&
            cvy_spread_same(&b->seat, (cvy_spread_name){CVY_SPREAD_INPUT, layer, i},
                            (cvy_spread_name){CVY_SPREAD_INPUT, known->consumer, known->input}) &&
            (!halo || cvy_halo_serves(b, layer, known->consumer))) {
            return known->buffer;
        }
    }
    return -1;
}

/* The share that the layer takes, without a halo yet, in whatever format it is at hand. */
static cvy_status find_share(cvy_builder *b, int layer, int i, int *buffer)
{
    int source = b->model->layer[layer].input[i];
    cvy_spread spread[2];
    int known = find_variant(b, layer, i, false, CVY_FORMAT_COUNT);
    if (known >= 0) {
        *buffer = known;
        return CVY_OK;
    }
    cvy_spread_find(&b->seat, CVY_SPREAD_OUTPUT, source, 0, &spread[0]);
    cvy_spread_find(&b->seat, CVY_SPREAD_INPUT, layer, i, &spread[1]);
    CVY_TRY(cvy_build_redistribution(b, source, &b->model->layer[source].output, b->formats[layer].input, spread,
                                     buffer));
    b->schedule->buffer[*buffer].content = CVY_CONTENT_COPY;
    return note_variant(b, source, &(cvy_variant){.buffer = *buffer, .consumer = layer, .input = i});
}

cvy_status cvy_build_input(cvy_builder *b, int layer, int i, cvy_phase phase, int *out)
{
    int source = b->model->layer[layer].input[i];
    CVY_TRY(cvy_recompute_restore(b, source));
    cvy_format wanted = b->formats[layer].input;
    bool halo = cvy_halo_is_needed(b, layer, i);
    bool stays = cvy_spread_same(&b->seat, (cvy_spread_name){CVY_SPREAD_INPUT, layer, i},
                                 (cvy_spread_name){CVY_SPREAD_OUTPUT, source, 0});
    int buffer = b->layer[source].output;
    if (stays && !halo && b->schedule->buffer[buffer].tensor.format == wanted) {
        *out = buffer;
        return CVY_OK;
    }
    *out = find_variant(b, layer, i, halo, wanted);
    if (*out >= 0) {
        return CVY_OK;
    }
    CVY_TRY(stays ? CVY_OK : find_share(b, layer, i, &buffer));
    int share = buffer;
    CVY_TRY(cvy_build_halo(b, layer, i, wanted, &buffer));
    if (b->schedule->buffer[buffer].tensor.format != wanted) {
        cvy_step_spec spec = {CVY_STEP_LOCAL, phase, source};
        CVY_TRY(cvy_builder_add_reorder(b, &spec, buffer, wanted, &buffer));
    }
    *out = buffer;
    return buffer == share && !stays && !halo
               ? CVY_OK /* it was noted as a share */
               : note_variant(b, source, &(cvy_variant){buffer, layer, i, halo, -1});
}

cvy_status cvy_build_output(cvy_builder *b, int layer, int raw)
{
    cvy_spread spread[2];
    b->layer[layer].output = raw;
    if (b->seat.axes == 0) {
        return CVY_OK;
    }
    cvy_spread_find(&b->seat, CVY_SPREAD_RAW, layer, 0, &spread[0]);
    cvy_spread_find(&b->seat, CVY_SPREAD_OUTPUT, layer, 0, &spread[1]);
    CVY_TRY(cvy_build_redistribution(b, layer, &b->model->layer[layer].output, b->formats[layer].output, spread,
                                     &b->layer[layer].output));
    if (b->layer[layer].output != raw) {
        b->schedule->buffer[raw].content = CVY_CONTENT_COPY;
    }
    return CVY_OK;
}
