/*
 * Random graphs through plan and executor. The plan shares memory and works in place; here every buffer gets memory of
 * its own, the same steps run over it, and both must give the same bits. Central differences judge the gradients, and
 * the fast backends in every layout are held against the reference in double.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/memory.h"
#include "runtime/random_problem.h"

enum { MAX_LAYERS = 64 };

/* ---- the same steps, every buffer in memory of its own ---- */

typedef struct separate {
    const engine *of;
    const cvy_schedule *s;
    void **memory; /* of each buffer; views have their source's */
} separate;

static bool *find_in_place(const cvy_schedule *s)
{
    bool *in_place = cvy_calloc((size_t)s->buffers + 1, sizeof *in_place);
    for (int i = 0; i < s->uses; i++) {
        in_place[s->use[i].buffer] |= s->use[i].in_place;
    }
    return in_place;
}

static separate open_separate(const engine *e, cvy_schedule_kind kind)
{
    separate made = {.of = e, .s = &e->plan->schedule[kind]};
    bool *in_place = find_in_place(made.s);
    made.memory = cvy_calloc((size_t)made.s->buffers, sizeof *made.memory);
    for (int i = 0; i < made.s->buffers; i++) {
        const cvy_buffer *b = &made.s->buffer[i];
        if (b->alias_of >= 0 && !in_place[i]) {
            made.memory[i] = made.memory[b->alias_of]; /* a view: made after its source */
            continue;
        }
        size_t bytes = (size_t)cvy_round_up(b->bytes, 64);
        made.memory[i] = aligned_alloc(64, bytes);
        memset(made.memory[i], 0xff, bytes);
        if (b->persistent) {
            memcpy(made.memory[i], cvy_executor_memory(e->executor, kind, i), (size_t)b->bytes);
        }
    }
    cvy_free(in_place);
    return made;
}

static void close_separate(separate *made)
{
    bool *in_place = find_in_place(made->s);
    for (int i = 0; i < made->s->buffers; i++) {
        if (made->s->buffer[i].alias_of < 0 || in_place[i]) {
            free(made->memory[i]);
        }
    }
    cvy_free(in_place);
    cvy_free(made->memory);
}

static void take_in(const separate *made)
{
    const cvy_schedule *s = made->s;
    const problem *p = made->of->of;
    const cvy_tensor *x = &s->buffer[s->input_buffer].tensor;
    const cvy_tensor *label = &s->buffer[s->label_buffer].tensor;
    cvy_tensor source = {.shape = x->shape, .dtype = CVY_F32};
    assert_int_equal(cvy_tensor_copy(&source, p->x, x, made->memory[s->input_buffer]), CVY_OK);
    if (label->dtype == CVY_I32) {
        memcpy(made->memory[s->label_buffer], p->label.class, (size_t)s->batch * sizeof(int32_t));
    } else {
        source.shape = label->shape;
        assert_int_equal(cvy_tensor_copy(&source, p->label.value, label, made->memory[s->label_buffer]), CVY_OK);
    }
}

/* The loss. */
static double run_separate(const separate *made, const cvy_run *how)
{
    const cvy_schedule *s = made->s;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        void *operand[CVY_MAX_OPERANDS], *scratch = NULL;
        cvy_kernel *kernel = NULL;
        if (step->op < 0) {
            if (step->phase == CVY_PHASE_IO) {
                take_in(made);
            }
            continue;
        }
        for (int k = 0; k < s->op[step->op].operands; k++) {
            operand[k] = made->memory[s->use[step->first_use + k].buffer];
        }
        if (step->uses > s->op[step->op].operands) {
            scratch = made->memory[s->use[step->first_use + step->uses - 1].buffer];
        }
        assert_int_equal(cvy_kernel_create(&made->of->plan->options.backends, &s->op[step->op], &kernel), CVY_OK);
        assert_int_equal(cvy_kernel_run(kernel, operand, scratch, how), CVY_OK);
        cvy_kernel_destroy(&kernel);
    }
    return ((const double *)made->memory[s->loss_buffer])[0];
}

/* Loss and every persistent tensor: to the bit. */
static void compare_bits(const engine *e, cvy_schedule_kind kind)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    cvy_run how = make_run(e, kind, 0.5);
    reset(e, kind);
    separate made = open_separate(e, kind);
    double expected = run_separate(&made, &how), found = run(e, kind, &how).loss;
    if (memcmp(&expected, &found, sizeof found) != 0) {
        fail_msg("graph %u: loss %.17g, with separate memory %.17g", e->of->seed, found, expected);
    }
    for (int i = 0; i < e->plan->persistent_buffers; i++) {
        if (memcmp(made.memory[i], cvy_executor_memory(e->executor, kind, i), (size_t)s->buffer[i].bytes) != 0) {
            fail_msg("graph %u: %s differs from that with separate memory", e->of->seed,
                     e->of->model->parameter[s->buffer[i].parameter].name);
        }
    }
    close_separate(&made);
}

static void compare_all_schedules(const problem *p, const char *backend, cvy_dtype dtype, cvy_layout_choice layout)
{
    engine e;
    open_engine(&e, p, backend, dtype, layout);
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        compare_bits(&e, (cvy_schedule_kind)kind);
    }
    close_engine(&e);
}

static void test_shared_memory_changes_no_bit(void **state)
{
    (void)state;
    static const cvy_layout_choice layouts[] = {CVY_LAYOUT_AUTO, CVY_LAYOUT_PLAIN, CVY_LAYOUT_CHANNELS_LAST,
                                                CVY_LAYOUT_BLOCKED};
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        open_problem(&p, seed);
        compare_all_schedules(&p, "ref", CVY_F64, CVY_LAYOUT_AUTO);
        compare_all_schedules(&p, NULL, CVY_F32, layouts[seed % 4]);
        close_problem(&p);
    }
}

/* ---- gradients ---- */

/* The training loss with one number moved, nothing learned. */
static double probe(const engine *e, int parameter, int64_t element, double by)
{
    double *value = &e->of->parameter[parameter][element];
    double kept = *value;
    cvy_run how = make_run(e, CVY_SCHEDULE_TRAIN, 0.0);
    *value = kept + by;
    reset(e, CVY_SCHEDULE_TRAIN);
    *value = kept;
    return run(e, CVY_SCHEDULE_TRAIN, &how).loss;
}

/* The smallest distance over three step sizes, in parts of the larger: a kink may lie within the widest of them. */
static double measure_difference(const engine *e, int parameter, int64_t element, double gradient)
{
    double best = HUGE_VAL;
    for (double by = 1e-4; by > 5e-7; by *= 0.1) {
        double slope = (probe(e, parameter, element, by) - probe(e, parameter, element, -by)) / (2.0 * by);
        best = fmin(best, fabs(slope - gradient) / fmax(fmax(fabs(slope), fabs(gradient)), 1e-3));
    }
    return best;
}

static void check_slopes(const engine *e)
{
    dice d = {.seed = e->of->seed + 1000};
    cvy_run how = make_run(e, CVY_SCHEDULE_TRAIN, 1.0);
    for (int checked = 0; checked < 3; checked++) {
        int parameter = throw(&d, e->of->model->parameters);
        const cvy_parameter *of = &e->of->model->parameter[parameter];
        int64_t element = throw(&d, (int)cvy_shape_elements(&of->spec.shape));
        if (!of->spec.trainable) {
            continue;
        }
        reset(e, CVY_SCHEDULE_TRAIN);
        (void)run(e, CVY_SCHEDULE_TRAIN, &how);
        double *gradient = read_gradient(e, parameter);
        double difference = measure_difference(e, parameter, element, gradient[element]);
        if (difference > 1e-6) {
            fail_msg("graph %u: gradient %g of element %lld of %s is %g off the slope", e->of->seed, gradient[element],
                     (long long)element, of->name, difference);
        }
        cvy_free(gradient);
    }
}

static void test_gradients_are_slopes(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        engine e;
        open_problem(&p, seed);
        open_engine(&e, &p, "ref", CVY_F64, CVY_LAYOUT_AUTO);
        check_slopes(&e);
        close_engine(&e);
        close_problem(&p);
    }
}

/* ---- fast backends ---- */

static void compare_with_reference(const engine *fast, const engine *reference)
{
    cvy_run how = make_run(reference, CVY_SCHEDULE_TRAIN, 1.0);
    reset(reference, CVY_SCHEDULE_TRAIN);
    reset(fast, CVY_SCHEDULE_TRAIN);
    double expected = run(reference, CVY_SCHEDULE_TRAIN, &how).loss, found = run(fast, CVY_SCHEDULE_TRAIN, &how).loss;
    if (!(fabs(found - expected) <= 1e-5 * fmax(1.0, fabs(expected)))) {
        fail_msg("graph %u: loss %.9g, expected %.9g", fast->of->seed, found, expected);
    }
    for (int i = 0; i < fast->of->model->parameters; i++) {
        const cvy_parameter *parameter = &fast->of->model->parameter[i];
        double *a = read_gradient(fast, i), *b = read_gradient(reference, i);
        double difference = relate(a, b, cvy_shape_elements(&parameter->spec.shape));
        if (!(difference <= 1e-3)) {
            fail_msg("graph %u: the change of %s is %g off, expected at most 1e-3", fast->of->seed, parameter->name,
                     difference);
        }
        cvy_free(a);
        cvy_free(b);
    }
}

static void test_layouts_agree_with_the_reference(void **state)
{
    (void)state;
    static const cvy_layout_choice layouts[] = {CVY_LAYOUT_AUTO, CVY_LAYOUT_PLAIN, CVY_LAYOUT_CHANNELS_LAST,
                                                CVY_LAYOUT_BLOCKED};
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        engine fast, reference;
        open_problem(&p, seed);
        open_engine(&reference, &p, "ref", CVY_F64, CVY_LAYOUT_AUTO);
        for (int i = 0; i < 4; i++) {
            open_engine(&fast, &p, NULL, CVY_F32, layouts[i]);
            compare_with_reference(&fast, &reference);
            close_engine(&fast);
        }
        close_engine(&reference);
        close_problem(&p);
    }
}

/* ---- evaluation ---- */

/* An incomplete batch counts its own samples alone: its loss is the sum over samples evaluated one by one. */
static void test_an_incomplete_batch_counts_its_samples(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        engine e;
        double sum = 0;
        open_problem(&p, seed);
        open_engine(&e, &p, "ref", CVY_F64, CVY_LAYOUT_AUTO);
        int64_t size = cvy_shape_elements(&p.model->layer[0].output);
        int64_t outputs = is_classification(p.model) ? 1 : p.model->layer[cvy_model_output(p.model)].output.extent[1];
        cvy_run how = {.seed = 5, .samples = 1, .loss_scale = 1.0};
        for (int i = 0; i < BATCH - 1; i++) {
            cvy_executor_batch one = {.x = p.x + i * size, .label = &p.label.class[i * outputs], .samples = 1};
            cvy_executor_result result;
            reset(&e, CVY_SCHEDULE_EVALUATE);
            assert_int_equal(cvy_executor_run(e.executor, CVY_SCHEDULE_EVALUATE, &one, &how, &result), CVY_OK);
            sum += result.loss;
        }
        how.samples = BATCH - 1;
        reset(&e, CVY_SCHEDULE_EVALUATE);
        double found = run(&e, CVY_SCHEDULE_EVALUATE, &how).loss;
        assert_true(fabs(found - sum) <= 1e-12 * fmax(1.0, fabs(sum)));
        close_engine(&e);
        close_problem(&p);
    }
}

/* Whether anything trainable lies at or before each layer: that is where gradients go. */
static void find_trained(const cvy_model *model, bool *trained)
{
    for (int i = 0; i < model->layers; i++) {
        trained[i] = model->layer[i].parameters > 0;
        for (int k = 0; k < model->layer[i].inputs; k++) {
            trained[i] = trained[i] || trained[model->layer[i].input[k]];
        }
    }
}

/* The graphs above hold what is rare: a layer times itself, factors that want no gradient, values that want none. */
static void test_graphs_hold_every_kind_of_product(void **state)
{
    (void)state;
    int itself = 0, only_first = 0, only_second = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        bool trained[MAX_LAYERS];
        open_problem(&p, seed);
        assert_true(p.model->layers <= MAX_LAYERS);
        find_trained(p.model, trained);
        for (int i = 0; i < p.model->layers; i++) {
            const cvy_layer *layer = &p.model->layer[i];
            if (strcmp(layer->kind->name, "multiply") == 0) {
                bool first = trained[layer->input[0]], second = trained[layer->input[1]];
                itself += layer->input[0] == layer->input[1];
                only_first += first && !second;
                only_second += second && !first;
            }
        }
        close_problem(&p);
    }
    assert_true(itself > 0 && only_first > 0 && only_second > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_memory_changes_no_bit),
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_layouts_agree_with_the_reference),
        cmocka_unit_test(test_an_incomplete_batch_counts_its_samples),
        cmocka_unit_test(test_graphs_hold_every_kind_of_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
