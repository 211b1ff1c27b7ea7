/* Laws of the search: bounds are bounds, the pick is what it is said to be, and nothing is dropped in silence. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "bound_machine.h"
#include "oracle/search.h"

/* A search on a machine by hand, or on a shipped one. */
typedef struct asked {
    cvy_model *model;
    const cvy_machine *machine;
    cvy_oracle *oracle;
    cvy_search *search;
} asked;

static asked run(const char *model, const cvy_machine *machine, int64_t batch, cvy_search_options what)
{
    asked a = {.model = open_model(model), .machine = machine};
    cvy_oracle_options options = make_options(batch);
    cvy_status status = cvy_oracle_create(a.model, machine, &options, &a.oracle);
    status = status == CVY_OK ? cvy_search_create(a.oracle, &what, &a.search) : status;
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return a;
}

static void clear(asked *a)
{
    cvy_search_destroy(&a->search);
    cvy_oracle_destroy(&a->oracle);
    cvy_model_destroy(&a->model);
}

static const cvy_candidate *get_pick(const asked *a)
{
    assert_true(a->search->pick >= 0 && a->search->pick < a->search->count);
    return &a->search->candidate[a->search->pick];
}

static const char *const models[] = {"lenet5", "vgg16"};

enum { MODELS = sizeof models / sizeof *models };

/* Of everything that a search estimates, over models, cuts, pipelines and recomputations: to a thousandth, by which
 * shares that are rounded in bytes and stages that end in the middle of a buffer may differ. */
static void test_no_estimate_is_below_its_bound(void **state)
{
    (void)state;
    static const char *const nets[] = {"lenet5", "resnet18", "unet3d:size=32"};
    cvy_machine machine = make_bound_machine();
    int compared = 0;
    for (int i = 0; i < 3; i++) {
        for (int overlap = 0; overlap < 2; overlap++) {
            machine.execution.overlap = overlap;
            machine.execution.bucket_bytes = overlap ? 1000000 : 0;
            asked a = run(nets[i], &machine, 64, (cvy_search_options){.ranks = 16});
            for (int k = 0; k < a.search->count; k++) {
                const cvy_candidate *c = &a.search->candidate[k];
                char text[CVY_STRATEGY_TEXT];
                if (c->estimate.feasible && c->bound_s > c->estimate.iteration_s * 1.001) {
                    fail_msg("%s %s: bound %g s, estimate %g s", nets[i],
                             cvy_strategy_print(&c->estimate.strategy, text), c->bound_s, c->estimate.iteration_s);
                }
                compared += c->estimate.feasible;
            }
            clear(&a);
        }
    }
    assert_true(compared > 100);
}

static void test_the_mesh_has_all_ranks_and_every_kind_is_there(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    asked a = run("lenet5", &machine, 96, (cvy_search_options){.ranks = 12});
    unsigned axes_seen = 0;
    for (int k = 0; k < a.search->count; k++) {
        const cvy_strategy *s = &a.search->candidate[k].estimate.strategy;
        assert_int_equal(s->mesh.ranks, 12);
        for (int axis = 0; axis < CVY_AXES; axis++) {
            axes_seen |= s->mesh.size[axis] > 1 ? CVY_AXIS_BIT(axis) : 0;
        }
    }
    unsigned space = axes_seen & CVY_AXIS_SPACE;
    assert_true(space != 0);
    assert_int_equal(axes_seen & ~(unsigned)CVY_AXIS_SPACE,
                     CVY_AXIS_BIT(CVY_AXIS_STAGE) | CVY_AXIS_BIT(CVY_AXIS_SAMPLE) | CVY_AXIS_BIT(CVY_AXIS_CHANNEL));
    clear(&a);
}

/* Nor is anything that was left standing faster than the pick by more than errors allow. */
static void test_the_pick_is_no_slower_than_data_parallelism(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    for (int i = 0; i < MODELS; i++) {
        asked a = run(models[i], &machine, 64, (cvy_search_options){.ranks = 8, .mix = true});
        const cvy_candidate *pick = get_pick(&a);
        assert_true(a.search->data >= 0);
        const cvy_candidate *data = &a.search->candidate[a.search->data];
        assert_int_equal(data->estimate.strategy.mesh.size[CVY_AXIS_SAMPLE], 8);
        assert_true(pick->estimate.iteration_s <= data->estimate.iteration_s);
        const cvy_candidate *best = &a.search->candidate[0];
        double error = fmax(best->estimate.error_relative, data->estimate.error_relative);
        bool inside = best->estimate.iteration_s >= data->estimate.iteration_s * (1 - error);
        assert_ptr_equal(pick, inside ? data : best);
        clear(&a);
    }
}

static void test_the_same_search_gives_the_same_answer(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    cvy_search_options what = {.ranks = 24, .mix = true};
    asked a = run("lenet5", &machine, 96, what), b = run("lenet5", &machine, 96, what);
    assert_int_equal(a.search->count, b.search->count);
    assert_int_equal(a.search->pick, b.search->pick);
    for (int k = 0; k < a.search->count; k++) {
        char texts[2][CVY_STRATEGY_TEXT];
        const cvy_estimate *x = &a.search->candidate[k].estimate, *y = &b.search->candidate[k].estimate;
        assert_string_equal(cvy_strategy_print(&x->strategy, texts[0]), cvy_strategy_print(&y->strategy, texts[1]));
        assert_true(x->iteration_s == y->iteration_s && x->total_bytes == y->total_bytes);
    }
    clear(&a);
    clear(&b);
}

static void test_more_bandwidth_never_makes_the_best_slower(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        cvy_machine machine = make_bound_machine();
        double best_s = INFINITY;
        for (int times = 1; times <= 4; times *= 2) {
            asked a = run(models[i], &machine, 64, (cvy_search_options){.ranks = 8});
            assert_true(a.search->candidate[0].estimate.iteration_s <= best_s * (1 + 1e-12));
            best_s = a.search->candidate[0].estimate.iteration_s;
            clear(&a);
            for (int level = 0; level < machine.levels; level++) {
                machine.level[level].bandwidth_Bps *= 2;
            }
        }
    }
}

static void test_asked_for_memory_it_takes_no_more(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    for (int i = 0; i < MODELS; i++) {
        asked time = run(models[i], &machine, 64, (cvy_search_options){.ranks = 8});
        asked memory = run(models[i], &machine, 64,
                           (cvy_search_options){.ranks = 8, .objective = CVY_OBJECTIVE_MEMORY});
        assert_true(get_pick(&memory)->estimate.total_bytes <= get_pick(&time)->estimate.total_bytes);
        clear(&time);
        clear(&memory);
    }
}

/* Half of what data parallelism takes: the pick is something else, or recomputes, and keeps to it. */
static void test_the_pick_keeps_to_the_memory(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    asked free = run("vgg16", &machine, 256, (cvy_search_options){.ranks = 4});
    int64_t most = free.search->candidate[free.search->data].estimate.total_bytes / 2;
    asked tight = run("vgg16", &machine, 256, (cvy_search_options){.ranks = 4, .max_memory_bytes = most});
    const cvy_candidate *pick = get_pick(&tight);
    assert_true(pick->fits && pick->estimate.total_bytes <= most);
    asked none = run("vgg16", &machine, 256, (cvy_search_options){.ranks = 4, .max_memory_bytes = 1000});
    assert_int_equal(none.search->pick, -1);
    assert_true(none.search->count > 5); /* they are listed all the same */
    clear(&free);
    clear(&tight);
    clear(&none);
}

/* In the list nothing behind beats what the front has, and the front is beaten by nothing. */
static void test_the_front_is_beaten_by_nothing(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    asked a = run("lenet5", &machine, 64, (cvy_search_options){.ranks = 8});
    int front = 0;
    for (int i = 0; i < a.search->count; i++) {
        const cvy_candidate *c = &a.search->candidate[i];
        bool beaten = !c->fits;
        for (int k = 0; k < a.search->count; k++) {
            const cvy_candidate *o = &a.search->candidate[k];
            beaten |= o->fits && o->estimate.iteration_s <= c->estimate.iteration_s &&
                      o->estimate.total_bytes <= c->estimate.total_bytes &&
                      (o->estimate.iteration_s < c->estimate.iteration_s ||
                       o->estimate.total_bytes < c->estimate.total_bytes);
        }
        assert_int_equal(c->front, !beaten);
        front += c->front;
    }
    assert_true(front >= 1);
    clear(&a);
}

/* 1024 ranks: filter parallelism alone is wider than any layer of lenet5, and a pipeline longer than it is deep. */
static void test_what_cannot_be_is_listed_with_its_reason(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    asked a = run("lenet5", &machine, 2048, (cvy_search_options){.ranks = 1024});
    bool channel = false, stage = false;
    for (int k = 0; k < a.search->count; k++) {
        const cvy_estimate *e = &a.search->candidate[k].estimate;
        if (!e->feasible) {
            assert_true(strlen(e->why_not) > 0);
            channel |= e->strategy.mesh.size[CVY_AXIS_CHANNEL] == 1024;
            stage |= e->strategy.mesh.size[CVY_AXIS_STAGE] == 1024;
        }
    }
    assert_true(channel && stage);
    clear(&a);
}

static void test_more_ranks_than_devices_are_refused(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    cvy_model *model = open_model("lenet5");
    cvy_oracle_options options = make_options(4096);
    cvy_oracle *oracle = NULL;
    cvy_search *search = NULL;
    assert_int_equal(cvy_oracle_create(model, &machine, &options, &oracle), CVY_OK);
    assert_int_equal(cvy_search_create(oracle, &(cvy_search_options){.ranks = 2048}, &search), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "1024 devices"));
    assert_null(search);
    cvy_oracle_destroy(&oracle);
    cvy_model_destroy(&model);
}

/* At every fourth place or so, later ones farther apart. */
static void test_running_out_of_memory_is_told(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    cvy_model *model = open_model("lenet5");
    cvy_oracle_options options = make_options(16);
    cvy_oracle *oracle = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    assert_int_equal(cvy_oracle_create(model, &machine, &options, &oracle), CVY_OK);
    for (int64_t i = 0; status != CVY_OK; i += 4 + i / 4) {
        cvy_search *search = NULL;
        cvy_memory_fail_after(i);
        status = cvy_search_create(oracle, &(cvy_search_options){.ranks = 4, .mix = true}, &search);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        assert_true((status == CVY_OK) == (search != NULL));
        cvy_search_destroy(&search);
    }
    cvy_oracle_destroy(&oracle);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_estimate_is_below_its_bound),
        cmocka_unit_test(test_the_mesh_has_all_ranks_and_every_kind_is_there),
        cmocka_unit_test(test_the_pick_is_no_slower_than_data_parallelism),
        cmocka_unit_test(test_the_same_search_gives_the_same_answer),
        cmocka_unit_test(test_more_bandwidth_never_makes_the_best_slower),
        cmocka_unit_test(test_asked_for_memory_it_takes_no_more),
        cmocka_unit_test(test_the_pick_keeps_to_the_memory),
        cmocka_unit_test(test_the_front_is_beaten_by_nothing),
        cmocka_unit_test(test_what_cannot_be_is_listed_with_its_reason),
        cmocka_unit_test(test_more_ranks_than_devices_are_refused),
        cmocka_unit_test(test_running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
