/* The seconds of a bound, layer by layer: what a mix of cuts is chosen by. */
#include <math.h>

#include "oracle/bound_internal.h"

cvy_op_kind cvy_bound_get_kind(const cvy_bound *bound, int layer) { return bound->table.kind[layer]; }

const cvy_model *cvy_bound_get_model(const cvy_bound *bound) { return bound->model; }

/* Seconds for each byte of gradients that are summed over the same axes as a layer's. */
static double find_exchange_s(cvy_bound *bound, const cvy_strategy *strategy, unsigned axes)
{
    for (int i = 0; i < bound->gradients; i++) {
        const cvy_bound_gradients *what = &bound->gradient[i];
        if (what->axes == axes && what->items > 0.0 && cvy_mesh_group_size(&strategy->mesh, axes) > 1) {
            cvy_network_cost cost;
            cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes,
                                           .traffic = CVY_TRAFFIC_GRADIENTS,
                                           .bytes = what->items * bound->item_bytes,
                                           .tensors = what->tensors};
            cvy_network_estimate_collective(&bound->network, &request, &cost);
            return cost.seconds / request.bytes;
        }
    }
    return 0.0;
}

static void add_exchange(cvy_bound *bound, const cvy_strategy *strategy, double *layer_s)
{
    for (int i = 0; i < bound->model->parameters; i++) {
        const cvy_parameter *p = &bound->model->parameter[i];
        if (p->spec.trainable) {
            unsigned axes = cvy_bound_find_gradient_axes(bound, p->layer);
            double items = (double)cvy_shape_elements(&p->spec.shape) * cvy_bound_find_part(bound, i);
            layer_s[p->layer] += items * bound->item_bytes * find_exchange_s(bound, strategy, axes);
        }
    }
}

void cvy_bound_estimate_layers(cvy_bound *bound, const cvy_strategy *strategy, double *layer_s_out)
{
    cvy_bound_seconds seconds;
    double m = strategy->micro_batches > 1 ? (double)strategy->micro_batches : 1.0;
    int64_t samples = bound->options.batch / strategy->mesh.size[CVY_AXIS_SAMPLE] / (int64_t)m;
    bool fits = cvy_bound_lay_out(bound, strategy);
    cvy_bound_price(bound, samples > 1 ? samples : 1, &seconds);
    for (int i = 0; i < bound->model->layers; i++) {
        layer_s_out[i] = fits ? 0.0 : HUGE_VAL;
    }
    for (int i = 0; i < bound->table.pieces; i++) {
        const cvy_bound_piece *piece = &bound->table.piece[i];
        double times = piece->set == CVY_BOUND_UPDATE ? 1.0 : piece->set <= CVY_BOUND_BACKWARD ? m : 0.0;
        layer_s_out[piece->layer] += times * bound->kernel[bound->piece_kernel[i]].seconds;
    }
    for (int i = 0; i < bound->links; i++) {
        const cvy_bound_link *link = &bound->link[i];
        layer_s_out[link->layer] += m * link->times * bound->sending[link->sending].seconds;
    }
    if (fits && !bound->machine->execution.overlap) {
        add_exchange(bound, strategy, layer_s_out);
    }
}
