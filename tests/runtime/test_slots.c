/*
 * The law between plan and loader: what a rank's schedules say that it holds of a batch, handed to the loader as its
 * share, takes the very slots that the plan has laid out; and of all ranks together nothing of a batch is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "data/loader.h"
#include "plan/ranks.h"

enum { BATCH = 7, TAIL = 3, SLOTS = 2 };

/* The rows d,h,w that a rank holds of a tensor n,c,(d),h,w or, of labels, n,(d),h,w. */
static void find_rows(const cvy_buffer *buffer, int leading, cvy_interval rows[3])
{
    int dims = buffer->tensor.shape.dims;
    for (int dim = leading; dim < dims; dim++) {
        rows[3 - dims + dim] = buffer->local[dim];
    }
}

static cvy_loader_options make_share(const cvy_plan *plan, cvy_target target)
{
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_loader_options options = {.split = CVY_SPLIT_TRAIN, .batch = BATCH, .slots = SLOTS, .shared = true,
                                  .share = s->samples, .tail_share = plan->schedule[CVY_SCHEDULE_TRAIN_TAIL].samples,
                                  .no_images = s->input_buffer < 0, .no_labels = s->label_buffer < 0};
    if (!options.no_images) {
        find_rows(&s->buffer[s->input_buffer], 2, options.rows);
    }
    if (!options.no_labels && target == CVY_TARGET_MAP) {
        find_rows(&s->buffer[s->label_buffer], 1, options.label_rows);
    }
    return options;
}

static cvy_data *open_noise(const cvy_model *model, cvy_target target, const cvy_shape *map)
{
    const cvy_shape *input = &model->layer[0].output;
    cvy_data *data = NULL;
    cvy_data_options options = {.source = "random", .target = target, .map = *map, .train_count = 2 * BATCH + TAIL,
                                .classes = model->layer[cvy_model_output(model)].output.extent[1]};
    options.sample.dims = input->dims - 1;
    memcpy(options.sample.extent, input->extent + 1, sizeof(int64_t) * (size_t)options.sample.dims);
    if (cvy_data_open(&options, &data) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return data;
}

/* Bytes of the images of a batch that a rank's slots hold; rounding apart. */
static int64_t count_image_bytes(const cvy_plan *plan, const cvy_loader_options *options)
{
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int64_t samples = options->share.end - options->share.begin;
    if (options->no_images) {
        return 0;
    }
    return samples * 4 * cvy_shape_elements(&s->buffer[s->input_buffer].tensor.shape) / s->batch;
}

typedef struct net {
    const char *model;
    cvy_target target;
    cvy_shape map;
} net;

static void hold(const net *n, const char *strategy)
{
    ranks one, r;
    cvy_plan_options options = {.batch = BATCH, .tail_batch = TAIL, .dtype = CVY_F32, .training = true, .block = 8,
                                .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}}, .data_slots = SLOTS};
    assert_true(open_ranks(n->model, "sample=1", &options, NULL, &one));
    cvy_data *data = open_noise(one.model, n->target, &n->map);
    options.label_bytes = cvy_data_label_bytes(data);
    int64_t images = 0;
    assert_true(open_ranks(n->model, strategy, &options, NULL, &r));
    for (int rank = 0; rank < r.count; rank++) {
        cvy_loader_options share = make_share(r.plan[rank], n->target);
        int64_t planned = r.plan[rank]->schedule[CVY_SCHEDULE_TRAIN].memory.by_role[CVY_BUFFER_DATA];
        if (SLOTS * cvy_loader_slot_bytes(data, &share) != planned) {
            fail_msg("%s %s, rank %d: slots of %lld bytes planned, %lld taken", n->model, strategy, rank,
                     (long long)planned / SLOTS, (long long)cvy_loader_slot_bytes(data, &share));
        }
        images += count_image_bytes(r.plan[rank], &share);
    }
    int64_t copies = r.strategy.mesh.size[CVY_AXIS_CHANNEL]; /* each of them takes all images */
    assert_int_equal(images, copies * BATCH * cvy_data_sample_bytes(data));
    cvy_data_close(&data);
    close_ranks(&r);
    close_ranks(&one);
}

static void test_slots_of_the_plan_are_those_of_the_loader(void **state)
{
    (void)state;
    static const char *const strategies[] = {"sample=1", "sample=2", "sample=5", "height=2", "sample=2,height=2",
                                             "height=2,width=2", "channel=2", "sample=2,channel=2", "stage=2",
                                             "sample=2,stage=2", "sample=2,height=2,channel=2"};
    static const char *const deep[] = {"depth=2", "sample=3,depth=2", "depth=2,height=2,width=2"};
    static const net nets[] = {{"lenet5", CVY_TARGET_CLASS, {0}},
                               {"cosmoflow:size=32", CVY_TARGET_VALUES, {0}},
                               {"unet3d:size=16,width=8", CVY_TARGET_MAP, {3, {16, 16, 16}}}};
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
            hold(&nets[i], strategies[k]);
        }
        for (size_t k = 0; i > 0 && k < sizeof deep / sizeof deep[0]; k++) {
            hold(&nets[i], deep[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_of_the_plan_are_those_of_the_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
