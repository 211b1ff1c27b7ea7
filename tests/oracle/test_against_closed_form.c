/*
 * The simulation against the paper's closed forms, on a machine where both can be right: rings on links of one class,
 * nothing overlaps, no launches, shares are equal. Closed forms take the seconds of each layer from a plan of one rank
 * with as many samples as a kernel gets. docs/closed-forms.md says where the two differ by right, and what is put into
 * the forms here for that.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "made_up.h"
#include "oracle/closed_form.h"
#include "oracle/estimate.h"

enum { MOST_LAYERS = 64 };
static const double tolerance = 0.01;

/* A model on a machine, priced both ways. */
typedef struct scene {
    cvy_model *model;
    cvy_machine *machine;
    int64_t batch;
    cvy_closed_layer layer[MOST_LAYERS]; /* of each layer of the model */
    cvy_closed_layer group[MOST_LAYERS]; /* a layer with weights and those behind it */
    int groups;
} scene;

/* Seconds of a rank that does all layers with so many samples at once, for each sample; the update for all. */
static void weigh_layers(scene *s, int64_t samples)
{
    cvy_plan *plan = NULL;
    cvy_compute *compute = NULL;
    cvy_plan_options options = {.batch = samples, .dtype = CVY_F32, .training = true, .unfused = true, .block = 8,
                                .layout = CVY_LAYOUT_PLAIN};
    assert_int_equal(cvy_plan_create(s->model, &options, &plan), CVY_OK);
    assert_int_equal(cvy_compute_create(s->machine, CVY_PRECISION_FP32, &compute), CVY_OK);
    const cvy_schedule *schedule = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < schedule->steps; i++) {
        const cvy_step *step = &schedule->step[i];
        if (step->op >= 0) {
            cvy_closed_layer *layer = &s->layer[step->layer > 0 ? step->layer : 0];
            double seconds = cvy_compute_estimate_op(compute, &schedule->op[step->op], 1.0, 0.0).seconds;
            double *sum = step->phase == CVY_PHASE_FORWARD    ? &layer->forward_s
                          : step->phase == CVY_PHASE_BACKWARD ? &layer->backward_s
                                                              : &layer->update_s;
            *sum += step->phase == CVY_PHASE_UPDATE ? seconds : seconds / (double)samples;
        }
    }
    cvy_compute_destroy(&compute);
    cvy_plan_destroy(&plan);
}

static bool has_weights(const scene *s, int layer) { return s->model->layer[layer].parameters > 0; }

static void open_scene(scene *s, const char *model, const char *execution, int64_t batch, int64_t samples)
{
    *s = (scene){.model = open_model(model), .batch = batch};
    s->machine = make_machine(MADE_UP_MACHINE "execution: {fuse: none%s}\n", 10.0, 2.0, execution);
    assert_true(s->model->layers <= MOST_LAYERS);
    for (int i = 1; i < s->model->layers; i++) {
        const cvy_layer *layer = &s->model->layer[i];
        s->layer[i].x_items = (double)cvy_shape_elements(&s->model->layer[layer->input[0]].output);
        s->layer[i].y_items = (double)cvy_shape_elements(&layer->output);
        for (int p = 0; p < layer->parameters; p++) {
            s->layer[i].w_items += (double)cvy_shape_elements(
                &s->model->parameter[layer->first_parameter + p].spec.shape);
        }
    }
    weigh_layers(s, samples);
}

static void close_scene(scene *s)
{
    cvy_machine_destroy(&s->machine);
    cvy_model_destroy(&s->model);
}

static cvy_trace *trace(const scene *s, const char *strategy, int64_t ranks)
{
    cvy_oracle *oracle = NULL;
    cvy_trace *trace = NULL;
    cvy_oracle_options options = {.batch = s->batch, .precision = CVY_PRECISION_FP32, .bucket_bytes = 0};
    cvy_estimate_question question = {.strategy = parse_strategy(s->model, strategy, ranks)};
    if (cvy_oracle_create(s->model, s->machine, &options, &oracle) != CVY_OK ||
        cvy_oracle_trace(oracle, &question, &trace) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    if (!trace->estimate.feasible) {
        fail_msg("%s: %s", strategy, trace->estimate.why_not);
    }
    cvy_oracle_destroy(&oracle);
    return trace;
}

static cvy_estimate estimate(const scene *s, const char *strategy, int64_t ranks)
{
    cvy_trace *kept = trace(s, strategy, ranks);
    cvy_estimate result = kept->estimate;
    cvy_trace_destroy(&kept);
    return result;
}

/* Closed forms over the model's layers but its input; lines are those of the machine. */
static cvy_closed_case make_case(const scene *s, int ranks)
{
    cvy_line line = {s->machine->level[0].latency_s, s->machine->level[0].bandwidth_Bps};
    return (cvy_closed_case){.layer = s->layer, .layers = s->model->layers, .batch = (double)s->batch, .ranks = ranks,
                             .item_bytes = 4.0, .inner = line, .outer = line, .halo = line, .gather = line};
}

static double sum_phases(const cvy_closed_form *form)
{
    return cvy_closed_form_compute_s(form) + cvy_closed_form_communication_s(form);
}

static void assert_agree(const cvy_estimate *e, const char *strategy, const cvy_closed_case *what)
{
    cvy_closed_form form;
    assert_int_equal(cvy_closed_form_estimate(cvy_closed_form_find(strategy), what, &form), CVY_OK);
    double expected_s = sum_phases(&form);
    if (!(fabs(e->iteration_s - expected_s) <= tolerance * expected_s)) {
        for (int i = 0; i < CVY_TIME_PARTS; i++) {
            print_message("%s: simulated %.6g s, closed form %.6g s\n", cvy_time_part_name(i), e->part_s[i],
                          i < CVY_PHASE_COUNT ? form.phase_s[i] : i == CVY_TIME_BUBBLE ? form.bubble_s : 0.0);
        }
        fail_msg("%s: simulated %.6g s, closed form %.6g s", strategy, e->iteration_s, expected_s);
    }
}

/* ---- strategies ---- */

/* 256 samples, 32 a rank. */
static void test_data_agrees(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "vgg16", "", 256, 32);
    cvy_closed_case what = make_case(&s, 8);
    cvy_estimate e = estimate(&s, "data", 8);
    assert_agree(&e, "data", &what);
    close_scene(&s);
}

/*
 * Rows of 256, 128, … 8 pixels in 4 shares. A halo is of x in forward, of C channels, and of dy in backward, of F: the
 * mean of both, and of the first layer x alone. Dense layers are whole: all ranks find the same gradients.
 */
static void test_spatial_agrees(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "vgg16:size=256", "", 64, 64);
    bool first = true;
    for (int i = 1; i < s.model->layers; i++) {
        const cvy_shape *x = &s.model->layer[s.model->layer[i].input[0]].output, *y = &s.model->layer[i].output;
        cvy_closed_layer *layer = &s.layer[i];
        layer->cut_space = i < cvy_model_find_layer(s.model, "avgpool");
        layer->positions = x->extent[2];
        if (!layer->cut_space) {
            layer->w_items = 0.0;
        } else if (has_weights(&s, i)) {
            double channels = (double)x->extent[1] + (first ? 0.0 : (double)y->extent[1]);
            layer->halo_items = cvy_closed_halo_items(3, channels / 2.0 * (double)x->extent[3]);
            first = false;
        }
    }
    cvy_closed_case what = make_case(&s, 4);
    what.halo.latency_s /= 2.0;       /* messages to both sides start at once */
    what.gather.latency_s /= 2.0;     /* whole layers leave the whole gradient on every rank: */
    what.gather.bandwidth_Bps *= 2.0; /* there is a gather forward, and nothing backward */
    cvy_estimate e = estimate(&s, "height=4", 4);
    assert_agree(&e, "spatial", &what);
    close_scene(&s);
}

/* The layer with weights that takes what this one leaves; 0 where none does. */
static int find_next(const scene *s, int layer)
{
    for (int i = layer + 1; i < s->model->layers; i++) {
        if (has_weights(s, i)) {
            return i;
        }
    }
    return 0;
}

/*
 * As the authors' programs: outputs are made whole behind each layer, and what follows is done by every rank. Forward
 * gathers y, backward sums dx of the layer behind: [TR] has |y| for both, but pooling lies between. Of channels it is
 * the other way round, and the first layer, of three channels, is whole.
 */
static void test_filter_and_channel_agree_where_outputs_are_made_whole(void **state)
{
    (void)state;
    for (int by_channel = 0; by_channel < 2; by_channel++) {
        scene s;
        open_scene(&s, "vgg16", ", whole-channels: yes", 64, 64);
        for (int i = 1; i < s.model->layers; i++) {
            cvy_closed_layer *layer = &s.layer[i];
            const cvy_shape *x = &s.model->layer[s.model->layer[i].input[0]].output;
            int next = find_next(&s, i);
            layer->cut_channels = has_weights(&s, i) && !(by_channel && x->extent[1] < 4);
            layer->channels = (int)x->extent[1];
            layer->filters = (int)s.model->layer[i].output.extent[1];
            layer->y_items = by_channel ? (2.0 * layer->y_items + layer->x_items) / 3.0
                                        : (layer->y_items + (next ? 2.0 * s.layer[next].x_items : 0.0)) / 3.0;
        }
        cvy_closed_case what = make_case(&s, 4);
        what.layerwise_rounds = 3;
        cvy_estimate e = estimate(&s, by_channel ? "channel" : "filter", 4);
        assert_agree(&e, by_channel ? "channel" : "filter", &what);
        close_scene(&s);
    }
}

/* A layer with weights and those behind it, which go by its shares, as one. */
static void group_layers(scene *s)
{
    for (int i = 1; i < s->model->layers; i++) {
        if (has_weights(s, i)) {
            s->group[s->groups++] = s->layer[i];
        } else {
            cvy_closed_layer *group = &s->group[s->groups - 1];
            group->forward_s += s->layer[i].forward_s;
            group->backward_s += s->layer[i].backward_s;
        }
    }
}

/*
 * Shares stay shares until somebody needs the whole. Filters: what the next layer takes is gathered in front of it, and
 * the sum of its dx is scattered: twice its |x|. Channels: the sum of y is scattered, dy is gathered: twice |y|, but
 * not of the first layer, whose shares are those that the second one takes.
 */
static void test_filter_and_channel_agree_with_reduce_scatter(void **state)
{
    (void)state;
    for (int by_channel = 0; by_channel < 2; by_channel++) {
        scene s;
        open_scene(&s, "vgg16", "", 64, 64);
        group_layers(&s);
        for (int i = 0; i < s.groups; i++) {
            s.group[i].cut_channels = true;
            s.group[i].channels = s.group[i].filters = 64;
            if (!by_channel && i + 1 < s.groups) {
                s.group[i].y_items = s.group[i + 1].x_items;
            } else if (by_channel && i == 0) {
                s.group[i].y_items = 0.0; /* by its filters: three channels are too few */
            }
        }
        cvy_closed_case what = make_case(&s, 4);
        what.layer = s.group;
        what.layers = s.groups;
        what.layerwise_rounds = 2;
        cvy_estimate e = estimate(&s, by_channel ? "channel" : "filter", 4);
        assert_agree(&e, by_channel ? "channel" : "filter", &what);
        close_scene(&s);
    }
}

/*
 * Two stages, 64 micro-batches of 64, beside which adding their gradients up is little (half a percent): a stage that
 * is shorter than the other saves next to nothing. What passes between stages does so beside computation, where [TR]
 * stops for it.
 */
static void test_pipeline_agrees(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "vgg16", "", 4096, 64);
    cvy_trace *kept = trace(&s, "pipeline,pipeline=gpipe,micro-batches=64", 2);
    for (int i = 1; i < s.model->layers; i++) {
        s.layer[i].stage = kept->distribution->layer[i].stage;
    }
    cvy_closed_case what = make_case(&s, 2);
    what.micro_batches = 64;
    what.inner = (cvy_line){0.0, INFINITY};
    assert_agree(&kept->estimate, "pipeline", &what);
    cvy_trace_destroy(&kept);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_agrees),
        cmocka_unit_test(test_spatial_agrees),
        cmocka_unit_test(test_filter_and_channel_agree_where_outputs_are_made_whole),
        cmocka_unit_test(test_filter_and_channel_agree_with_reduce_scatter),
        cmocka_unit_test(test_pipeline_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
