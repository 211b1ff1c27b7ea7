/*
 * Where a graph is narrow. Layers stand after their inputs, so it is enough to know how far anything that was made
 * before a layer is still asked for: no further than the layer itself, and all that follows goes through it.
 */
#include "base/memory.h"
#include "model/model.h"

cvy_status cvy_model_find_narrow(const cvy_model *model, bool *narrow_out)
{
    int *last = cvy_calloc((size_t)model->layers, sizeof *last); /* the last layer that takes each one's output */
    if (!last) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 1; i < model->layers; i++) {
        for (int k = 0; k < model->layer[i].inputs; k++) {
            last[model->layer[i].input[k]] = i;
        }
    }
    int reach = 0; /* over all layers before the one looked at */
    for (int i = 0; i < model->layers; i++) {
        narrow_out[i] = reach <= i;
        reach = last[i] > reach ? last[i] : reach;
    }
    cvy_free(last);
    return CVY_OK;
}
