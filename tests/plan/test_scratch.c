/* Scratch memory of kernels in plans that make none: of convolutions that would go by Winograd's algorithm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "sleeper.h"

/* The sleeper has nothing but 3x3 windows of stride 1 by Winograd's algorithm, and wants some MiB by the pass. */
static bool is_taken(const cvy_op *op)
{
    const cvy_window *window = &op->params.window.window;
    return op->kind == CVY_OP_CONVOLUTION && window->kernel[1] == 3 && window->kernel[2] == 3 &&
           window->stride[1] == 1 && window->stride[2] == 1;
}

static int64_t want(const cvy_op *op) { return (int64_t)(1 + op->pass) << 20; }

static cvy_quality judge(const cvy_op *op)
{
    return is_taken(op) && cvy_op_by_winograd(op) ? CVY_QUALITY_FAST : CVY_QUALITY_NONE;
}

static const cvy_backend_chain tilers = {.count = 1, .backend = {&sleeper}};

static int set_up(void **state)
{
    (void)state;
    sleeper_state.quality = judge;
    sleeper_state.scratch_bytes = want;
    return 0;
}

static cvy_plan *plan_by_rule(const cvy_model *model, cvy_scratch_book *book)
{
    const cvy_plan_options options = {.batch = 2, .dtype = CVY_F32, .training = true, .train_only = true, .block = 8,
                                      .scratch = book};
    cvy_plan *plan = NULL;
    if (cvy_plan_create(model, &options, &plan) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return plan;
}

/* Bytes of the buffer behind the operands of a step that is a kernel; 0 where there is none. */
static int64_t get_scratch(const cvy_schedule *s, const cvy_step *step)
{
    const cvy_op *op = &s->op[step->op];
    if (step->uses == op->operands) {
        return 0;
    }
    const cvy_buffer *buffer = &s->buffer[s->use[step->first_use + op->operands].buffer];
    assert_int_equal(step->uses, op->operands + 1);
    assert_int_equal(buffer->role, CVY_BUFFER_WORKSPACE);
    assert_int_equal(buffer->first_step, buffer->last_step);
    return buffer->bytes;
}

/* ResNet-18 has 13 such layers of three passes, beside strided ones, 7x7 and 1x1; nothing else gets any. */
static void test_convolutions_have_what_their_kernels_want(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_scratch_book *book = NULL;
    assert_int_equal(cvy_model_open("resnet18:size=64", &model), CVY_OK);
    assert_int_equal(cvy_scratch_book_create(&tilers, &book), CVY_OK);
    cvy_plan *without = plan_by_rule(model, NULL), *with = plan_by_rule(model, book);
    const cvy_schedule *bare = &without->schedule[CVY_SCHEDULE_TRAIN], *s = &with->schedule[CVY_SCHEDULE_TRAIN];
    int found = 0;
    assert_int_equal(s->steps, bare->steps);
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->op >= 0) {
            bool taken = is_taken(&s->op[step->op]);
            assert_int_equal(get_scratch(bare, &bare->step[i]), 0);
            assert_int_equal(get_scratch(s, step), taken ? want(&s->op[step->op]) : 0);
            assert_false(cvy_op_by_winograd(&s->op[step->op])); /* what is priced is direct, as measured kernels are */
            found += taken;
        }
    }
    assert_int_equal(found, 3 * 13);
    assert_true(s->memory.live_bytes > bare->memory.live_bytes);
    assert_true(s->memory.live_bytes <= bare->memory.live_bytes + ((int64_t)CVY_PASS_COUNT << 20));
    cvy_plan_destroy(&without);
    cvy_plan_destroy(&with);
    cvy_scratch_book_destroy(&book);
    cvy_model_destroy(&model);
}

static void test_each_kernel_is_asked_once(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_scratch_book *book = NULL;
    assert_int_equal(cvy_model_open("resnet18:size=64", &model), CVY_OK);
    assert_int_equal(cvy_scratch_book_create(&tilers, &book), CVY_OK);
    sleeper_state.kernels = 0;
    cvy_plan *plan = plan_by_rule(model, book);
    cvy_plan_destroy(&plan);
    int first = sleeper_state.kernels;
    assert_in_range(first, 4, 3 * 13 - 1); /* layers of a stage are alike */
    plan = plan_by_rule(model, book);
    cvy_plan_destroy(&plan);
    assert_int_equal(sleeper_state.kernels, first);
    cvy_scratch_book_destroy(&book);
    cvy_model_destroy(&model);
}

static void test_exhausted_memory_is_told(void **state)
{
    (void)state;
    cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = CVY_PASS_FORWARD,
                 .params.window = {.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}, .groups = 1,
                                   .winograd = true}};
    const cvy_tensor x = {.shape = CVY_SHAPE(1, 8, 4, 4), .dtype = CVY_F32};
    const cvy_tensor w = {.shape = CVY_SHAPE(8, 8, 3, 3), .dtype = CVY_F32};
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_W, &w), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &x), CVY_OK);
    int failures = 0;
    for (cvy_status status = CVY_ERR_MEMORY; status != CVY_OK; failures++) {
        cvy_scratch_book *book = NULL;
        cvy_memory_fail_after(failures);
        status = cvy_scratch_book_create(&tilers, &book);
        int64_t bytes = 0;
        status = status == CVY_OK ? cvy_scratch_book_find(book, &op, &bytes) : status;
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK ? bytes == 1 << 20 : status == CVY_ERR_MEMORY);
        cvy_scratch_book_destroy(&book);
    }
    assert_int_equal(failures, 4); /* the book, its entries, the kernel, and none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions_have_what_their_kernels_want),
        cmocka_unit_test(test_each_kernel_is_asked_once),
        cmocka_unit_test(test_exhausted_memory_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
