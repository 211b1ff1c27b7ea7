/*
 * Laws of formats: what was measured once holds, who waits for a measurement is told, what a run decided holds for its
 * resume, what is damaged is not believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/formats.h"

typedef struct setting {
    cvy_model *model;
    cvy_train_options options;
    cvy_plan_options wanted;
    int *told; /* counts announcements; NULL: nobody listens */
} setting;

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static setting make_setting(const char *model)
{
    setting s = {.options = CVY_TRAIN_OPTIONS_INIT,
                 .wanted = {.batch = 4, .dtype = CVY_F32, .training = true, .block = 8}};
    require(cvy_model_open(model, &s.model));
    require(cvy_backend_chain_find(NULL, &s.wanted.backends));
    return s;
}

static void count_setup(void *context, const char *line)
{
    int *told = context;
    assert_non_null(strstr(line, "measuring layouts"));
    (*told)++;
}

static cvy_plan *make_plan(const setting *s)
{
    cvy_plan *plan = NULL;
    const cvy_train_observer observer = {.context = s->told, .setup = s->told ? count_setup : NULL};
    require(cvy_formats_plan(s->model, &s->options, &observer, &s->wanted, 1, &plan));
    assert_null(plan->options.layouts);
    assert_null(plan->options.formats);
    return plan;
}

static bool equal_formats(const cvy_plan *a, const cvy_plan *b)
{
    return memcmp(a->formats, b->formats, (size_t)a->model->layers * sizeof *a->formats) == 0;
}

/* The one file in the folder. */
static void find_remembered(const char *folder, char path[160])
{
    char command[160];
    snprintf(command, sizeof command, "ls %s/cache/plan-*.yaml", folder);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    assert_non_null(fgets(path, 160, list));
    path[strcspn(path, "\n")] = '\0';
    assert_null(fgets(command, sizeof command, list));
    pclose(list);
}

static cvy_plan *make_fixed(const setting *s, cvy_layout_choice layout)
{
    setting fixed = *s;
    fixed.wanted.layout = layout;
    return make_plan(&fixed);
}

/* Measured, which is announced, remembered, and from then on what the file says, whatever a clock would say now. */
static void test_what_was_measured_holds(void **state)
{
    const char *folder = *state;
    char cache[96], path[160];
    int told = 0;
    setting s = make_setting("resnet18:size=32,classes=10");
    s.told = &told;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    s.options.cache = cache;
    cvy_plan *first = make_plan(&s);
    cvy_plan *again = make_plan(&s);
    assert_true(equal_formats(first, again));
    find_remembered(folder, path);
    cvy_plan *other = make_fixed(&s, CVY_LAYOUT_PLAIN); /* whatever was measured, one of two is not that */
    if (equal_formats(first, other)) {
        cvy_plan_destroy(&other);
        other = make_fixed(&s, CVY_LAYOUT_CHANNELS_LAST);
    }
    assert_false(equal_formats(first, other));
    require(cvy_plan_save(other, path));
    cvy_plan *kept = make_plan(&s);
    assert_true(equal_formats(kept, other));
    assert_int_equal(told, 1);
    cvy_plan_destroy(&kept);
    s.options.layout = "measure";
    kept = make_plan(&s); /* anew: the file is replaced */
    s.options.layout = "auto";
    cvy_plan *after = make_plan(&s);
    assert_true(equal_formats(kept, after));
    assert_int_equal(told, 2);
    cvy_plan_destroy(&first);
    cvy_plan_destroy(&again);
    cvy_plan_destroy(&other);
    cvy_plan_destroy(&kept);
    cvy_plan_destroy(&after);
    cvy_model_destroy(&s.model);
}

/* What is damaged is measured again, once. */
static void test_damaged_memory_gives_way(void **state)
{
    const char *folder = *state;
    char cache[96], path[160];
    int told = 0;
    setting s = make_setting("lenet5");
    snprintf(cache, sizeof cache, "%s/cache", folder);
    s.options.cache = cache;
    s.told = &told;
    for (int i = 0; i < 3; i++) {
        cvy_plan *plan = make_plan(&s);
        cvy_plan_destroy(&plan);
        assert_int_equal(told, i == 0 ? 1 : 2);
        if (i == 0) {
            find_remembered(folder, path);
            require(cvy_file_write(path, "schema: 1\n", 10, CVY_ERR_IO));
        }
    }
    cvy_model_destroy(&s.model);
}

/* No folder, one that cannot be made, or in which nothing can be: by rule, and the same each time. */
static void test_without_memory_the_rule_decides(void **state)
{
    (void)state;
    int told = 0;
    setting s = make_setting("lenet5");
    s.told = &told;
    cvy_plan *rule = NULL;
    require(cvy_plan_create(s.model, &s.wanted, &rule));
    static const char *const folders[] = {NULL, "/dev/null/cache", "/proc/self"};
    for (int i = 0; i < 3; i++) {
        s.options.cache = folders[i];
        cvy_plan *plan = make_plan(&s);
        assert_true(equal_formats(plan, rule));
        assert_true(told == 0 || i == 2); /* root only sees that nothing was kept */
        cvy_plan_destroy(&plan);
    }
    cvy_plan_destroy(&rule);
    cvy_model_destroy(&s.model);
}

/* A run goes on with the formats of its plan; a layout that is named, or a plan for other vectors, gives others. */
static void test_a_resumed_run_keeps_its_formats(void **state)
{
    const char *folder = *state;
    char path[160];
    setting s = make_setting("lenet5");
    cvy_plan *plain = make_fixed(&s, CVY_LAYOUT_PLAIN);
    snprintf(path, sizeof path, "%s/plan.yaml", folder);
    require(cvy_plan_save(plain, path));
    s.options.resume = folder;
    cvy_plan *resumed = make_plan(&s);
    assert_true(equal_formats(resumed, plain));
    cvy_plan_destroy(&resumed);
    s.options.layout = "measure"; /* as the run began: it was measured then */
    resumed = make_plan(&s);
    assert_true(equal_formats(resumed, plain));
    cvy_plan_destroy(&resumed);
    s.options.layout = NULL;
    cvy_plan *changed = make_fixed(&s, CVY_LAYOUT_CHANNELS_LAST);
    assert_false(equal_formats(changed, plain));
    cvy_plan_destroy(&changed);
    s.wanted.block = 16;
    cvy_plan *elsewhere = make_plan(&s);
    assert_false(equal_formats(elsewhere, plain));
    cvy_plan_destroy(&elsewhere);
    cvy_plan_destroy(&plain);
    cvy_model_destroy(&s.model);
}

/* Cut off anywhere or with any byte changed a plan file gives its formats, others that fit, or an error; never more. */
static void test_damaged_plans_are_refused(void **state)
{
    const char *folder = *state;
    char path[160];
    char *text = NULL;
    size_t bytes;
    setting s = make_setting("lenet5");
    cvy_plan *plan = make_plan(&s);
    cvy_layer_formats *formats = cvy_calloc((size_t)s.model->layers, sizeof *formats);
    snprintf(path, sizeof path, "%s/damaged.yaml", folder);
    require(cvy_plan_save(plan, path));
    require(cvy_file_read(path, 1 << 20, CVY_ERR_IO, &text, &bytes));
    require(cvy_plan_load_formats(path, s.model, 8, formats));
    assert_memory_equal(formats, plan->formats, (size_t)s.model->layers * sizeof *formats);
    for (size_t cut = 0; cut + 1 < bytes; cut += 7) { /* without its last newline it is whole */
        require(cvy_file_write(path, text, cut, CVY_ERR_IO));
        assert_int_equal(cvy_plan_load_formats(path, s.model, 8, formats), CVY_ERR_INPUT);
        assert_non_null(strstr(cvy_error_message(), path));
    }
    for (size_t i = 0; i < bytes; i += 3) {
        text[i] ^= 1;
        require(cvy_file_write(path, text, bytes, CVY_ERR_IO));
        cvy_status status = cvy_plan_load_formats(path, s.model, 8, formats);
        assert_true(status == CVY_OK || status == CVY_ERR_INPUT);
        text[i] ^= 1;
    }
    cvy_free(text);
    cvy_free(formats);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&s.model);
}

/* Each layer gets a layout, those of one region the same; nothing is kept of the memory. */
static void test_layouts_are_measured_by_region(void **state)
{
    (void)state;
    setting s = make_setting("resnet18:size=32,classes=10");
    bool *narrow = cvy_calloc((size_t)s.model->layers, sizeof *narrow);
    cvy_layout_choice *layouts = cvy_calloc((size_t)s.model->layers, sizeof *layouts);
    uint32_t *winograd = cvy_calloc((size_t)s.model->layers, sizeof *winograd);
    int64_t before = cvy_memory_tensor_bytes();
    require(cvy_model_find_narrow(s.model, narrow));
    require(cvy_layout_measure(s.model, &s.wanted, 1, layouts, winograd));
    assert_int_equal(cvy_memory_tensor_bytes(), before);
    for (int i = 2; i < s.model->layers; i++) {
        assert_true(layouts[i] == CVY_LAYOUT_PLAIN || layouts[i] == CVY_LAYOUT_CHANNELS_LAST ||
                    layouts[i] == CVY_LAYOUT_BLOCKED || layouts[i] == CVY_LAYOUT_BLOCKED_INPUT);
        assert_true(narrow[i - 1] || layouts[i] == layouts[i - 1]);
    }
    cvy_free(narrow);
    cvy_free(layouts);
    cvy_free(winograd);
    cvy_model_destroy(&s.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_measured_holds, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_damaged_memory_gives_way, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_without_memory_the_rule_decides, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_resumed_run_keeps_its_formats, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_damaged_plans_are_refused, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_layouts_are_measured_by_region, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
