/* Tables of kernels from elsewhere: rows become the ops that plans ask about, and what is no op is told by its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/import.h"
#include "folder.h"
#include "oracle/compute_internal.h"
#include "plan/plan.h"

static cvy_status import(const char *folder, const char *text, cvy_kernel_survey *survey)
{
    const char *path = test_path(folder, "kernels.csv");
    assert_true(put_test_file(path, text, strlen(text)));
    *survey = (cvy_kernel_survey){0};
    return cvy_import_kernels(path, survey);
}

/* 2 n f c / g kh kw oh ow: 2 * 4 * 16 * 8 * 9 * 10 * 10 with padding; a pass of the same shape has the same number. */
static void test_rows_are_ops(void **state)
{
    cvy_kernel_survey s;
    const char *text = "kernel,pass,n,c,h,w,f,kh,kw,stride,pad,g,seconds,error\n"
                       "convolution,forward,4,8,10,10,16,3,3,1,1,,1e-3,0.1\n"
                       "convolution,backward-data,4,8,10,10,16,3,3,1,1,,2e-3,\n"
                       "depthwise-convolution,forward,4,8,10,10,8,3,3,2,1,8,1e-4,\n"
                       "dense,forward,32,100,,,10,,,,,,1e-5,\n"
                       "sgd,update,5000,,,,,,,,,,1e-6,\n"
                       "max-pool,forward,2,3,8,8,,2,2,2,0,,1e-6,\n"
                       "batch-norm,forward,2,3,8,8,,,,,,,1e-6,\n";
    assert_int_equal(import(*state, text, &s), CVY_OK);
    assert_int_equal(s.rows, 7);
    assert_true(cvy_op_flop(&s.row[0].op) == 2.0 * 4 * 16 * 8 * 9 * 100);
    assert_true(s.row[0].time.seconds == 1e-3 && s.row[0].time.error == 0.1 && s.row[1].time.error == 0.0);
    assert_int_equal(s.row[0].shape, s.row[1].shape);
    assert_int_not_equal(s.row[0].shape, s.row[2].shape);
    assert_int_equal(cvy_op_kernel(&s.row[2].op), CVY_KERNEL_DEPTHWISE_CONVOLUTION);
    assert_true(cvy_op_flop(&s.row[3].op) == 2.0 * 32 * 100 * 10);
    assert_int_equal(s.row[4].op.kind, CVY_OP_SGD);
    assert_true(s.row[4].family >= 0);
    cvy_kernel_survey_clear(&s);
}

/* The op of a plan with plain formats, as a GPU has them, is the op of the row. */
static void test_a_plan_finds_them(void **state)
{
    cvy_kernel_survey s;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 8, .dtype = CVY_F32, .training = true, .train_only = true, .unfused = true,
                                .layout = CVY_LAYOUT_PLAIN, .block = 8};
    assert_true(cvy_optimizer_find("momentum", 0.9, &options.optimizer));
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    assert_int_equal(cvy_plan_create(model, &options, &plan), CVY_OK);
    /* Its first convolution: 20 filters of 5x5 over 28x28. */
    const char *text = "kernel,pass,n,c,h,w,f,kh,kw,bias,seconds\n"
                       "convolution,forward,8,1,28,28,20,5,5,1,1e-3\n";
    assert_int_equal(import(*state, text, &s), CVY_OK);
    const cvy_schedule *schedule = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int found = 0;
    for (int i = 0; i < schedule->steps; i++) {
        const cvy_step *step = &schedule->step[i];
        found += step->op >= 0 && cvy_kernel_key(&schedule->op[step->op]) == cvy_kernel_key(&s.row[0].op);
    }
    assert_int_equal(found, 1);
    cvy_kernel_survey_clear(&s);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_what_is_no_op_is_told_by_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"kernel,pass\nrelu,forward\n", "no column 'seconds'"},
        {"kernel,pass,seconds\n", "no kernel in it"},
        {"kernel,pass,seconds\nconvoluted,forward,1\n", "kernels.csv:2: kernel: found 'convoluted'"},
        {"kernel,pass,seconds\nrelu,sideways,1\n", "kernels.csv:2: pass: found 'sideways'"},
        {"kernel,pass,seconds\nrelu,update,1\n", "kernels.csv:2: relu has no pass update"},
        {"kernel,pass,seconds\nrelu,forward,-1\n", "kernels.csv:2: seconds"},
        {"kernel,pass,n,c,seconds\nrelu,forward,0,1,1\n", "kernels.csv:2: n"},
        {"kernel,pass,n,c,h,w,f,kh,kw,seconds\nconvolution,forward,1,1,2,2,1,5,5,1\n", "kernels.csv:2: "},
        {"kernel,pass,n,c,h,w,f,g,seconds\nconvolution,forward,1,4,2,2,4,3,1\n", "kernels.csv:2: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cvy_kernel_survey s;
        assert_int_equal(import(*state, wrong[i].text, &s), CVY_ERR_INPUT);
        if (!strstr(cvy_error_message(), wrong[i].words)) {
            fail_msg("'%s' lacks '%s'", cvy_error_message(), wrong[i].words);
        }
        cvy_kernel_survey_clear(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_are_ops, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_plan_finds_them, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_what_is_no_op_is_told_by_its_line, create_test_folder,
                                        remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
