/* What users write for a model, and that docs/models.md lists what there is, no more and no less. */
#include "model/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"

static void test_zoo_names_with_and_without_options(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet50:size=[226,230],classes=10");
    assert_string_equal(cvy_model_name(model), "resnet50:size=[226,230],classes=10");
    assert_shape(&model->layer[0].output, "1x3x226x230");
    assert_shape(&model->layer[cvy_model_output(model)].output, "1x10");
    cvy_model_destroy(&model);
    assert_null(model);
    cvy_model_destroy(&model);
    model = open_model("lenet5");
    assert_string_equal(cvy_model_name(model), "lenet5");
    cvy_model_destroy(&model);
}

static void test_a_path_is_told_from_a_name(void **state)
{
    (void)state;
    cvy_model *model = open_model(CVY_SOURCE_ROOT "/models/small-resnet.yaml");
    cvy_model_destroy(&model);
    assert_refused("lenet5.yaml", "lenet5.yaml: ");
    assert_refused("lenet5.yml", "lenet5.yml: ");
    assert_refused("./lenet5", "./lenet5: ");
    assert_refused("/", "/: ");
}

/*
 * By hand: the stem 16 * 9 + 32 = 176; a block of e channels, r squeezed, from 16 to o: 16 e + 2 e + 9 e + 2 e +
 * (e r + r) + (r e + e) + e o + 2 o, 3404 with 48, 12, 16 and 6096 with 64, 16, 32; the head 320 + 10.
 */
static void test_the_squeeze_excitation_example_is_read(void **state)
{
    (void)state;
    cvy_model *model = open_model(CVY_SOURCE_ROOT "/models/squeeze-excitation.yaml");
    assert_int_equal(cvy_model_parameters(model), 176 + 3404 + 6096 + 330);
    cvy_model_destroy(&model);
}

static void test_unknown_names_and_options(void **state)
{
    (void)state;
    assert_refused("resnet05", "no model 'resnet05' in the zoo; did you mean 'resnet50'?");
    assert_refused("lenet", "did you mean 'lenet5'?");
    assert_refused("banana", "no model 'banana' in the zoo (lenet5, ");
    assert_refused("", "no model ''");
    assert_refused(":", "no model ''");
    assert_refused("a\nb\033", "no model 'a?b?'");
    assert_refused("resnet50:", "resnet50: options '', expected key=value");
    assert_refused("resnet50:siz=3", "resnet50: unknown option 'siz'; did you mean 'size'?");
    assert_refused("resnet50:version=2", "resnet50: version: found '2', expected one of 1.5, 1");
    assert_refused("resnet18:version=1", "resnet18: unknown option 'version', expected size, channels, classes");
    assert_refused("resnet50:size=64,size=65", "resnet50: key 'size' is given twice");
    assert_refused("resnet50:size=[57,58,59]", "resnet50: size: found 3 entries, expected 1 or 2");
    assert_refused("cosmoflow:size=[57,58]", "cosmoflow: size: found 2 entries, expected 1 or 3");
}

/* Nothing but numbers, words and lists reaches the YAML reader, so an option cannot say more than an option. */
static void test_options_cannot_smuggle_yaml(void **state)
{
    (void)state;
    static const char *const bad[] = {"size", "size=64,", ",size=64", "size=64,,classes=1", "size==64", "size=6=4",
                                      "size=[64", "size=64]", "size=]64[", "size={a: 1}", "size=64\nclasses=10",
                                      "size: 64", "size=&a", "size=*a", "size=!!int", "size=\"64\"", "size='64'",
                                      "size=64 #x", "size=[[[64]]]", "=", "=64", "[]=64", "size=64}", "size=%n"};
    char text[100];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "lenet5:%s", bad[i]);
        assert_refused(text, "lenet5: ");
    }
    char *longest = cvy_calloc(1, 1 << 20);
    assert_non_null(longest);
    memset(longest, '[', (1 << 20) - 1);
    memcpy(longest, "lenet5:size=", 12);
    assert_refused(longest, "lenet5: options 'size=[[[");
    memset(longest, 'l', (1 << 20) - 1);
    assert_refused(longest, "no model 'lllll");
    cvy_free(longest);
}

static void assert_added(const char *text, const char *defaults, const char *expected)
{
    char *named = NULL;
    assert_int_equal(cvy_model_add_options(text, defaults, &named), CVY_OK);
    assert_string_equal(named, expected);
    cvy_free(named);
}

static void test_a_set_up_adds_options_that_a_model_has_and_a_text_does_not_say(void **state)
{
    (void)state;
    char *named = NULL;
    assert_added("vgg16", NULL, "vgg16");
    assert_added("vgg16", "ceil-mode=yes", "vgg16:ceil-mode=yes");
    assert_added("vgg16:size=[226,230],classes=10", "ceil-mode=yes,adaptive-pool=no",
                 "vgg16:size=[226,230],classes=10,ceil-mode=yes,adaptive-pool=no");
    assert_added("vgg16:ceil-mode=no", "ceil-mode=yes,adaptive-pool=no", "vgg16:ceil-mode=no,adaptive-pool=no");
    assert_added("vgg16:adaptive-pool=yes,ceil-mode=no", "ceil-mode=yes,adaptive-pool=no",
                 "vgg16:adaptive-pool=yes,ceil-mode=no");
    assert_added("resnet50:size=64", "adaptive-pool=no,version=1", "resnet50:size=64,version=1");
    assert_added("models/vgg16.yaml", "ceil-mode=yes", "models/vgg16.yaml");
    assert_added("vgg17", "ceil-mode=yes", "vgg17"); /* cvy_model_open() words it */
    static const char *const wrong[] = {"ceilmode=yes", "ceil-mode", "", "ceil-mode=yes,", "=yes"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(cvy_model_add_options("vgg16", wrong[i], &named), CVY_ERR_INPUT);
        assert_non_null(strstr(cvy_error_message(), "expected key=value of an option of some model of the zoo"));
        assert_null(named);
    }
}

/* One row of an option table is "| `NAME` | …" between this heading and the next. */
static int count_rows(const char *from, const char *to)
{
    int rows = 0;
    for (const char *row = strstr(from, "\n| `"); row && row < to; row = strstr(row + 1, "\n| `")) {
        rows++;
    }
    return rows;
}

static void assert_documented(const char *manual, const char *section, const char *name, const cvy_field *fields)
{
    char heading[100], row[100];
    snprintf(heading, sizeof heading, "\n### %s\n", name);
    const char *from = strstr(strstr(manual, section), heading);
    if (!from) {
        fail_msg("docs/models.md has no heading for %s", name);
        return;
    }
    const char *to = strstr(from + 1, "\n##");
    to = to ? to : from + strlen(from);
    int count = 0;
    for (; fields && fields[count].name; count++) {
        snprintf(row, sizeof row, "\n| `%s` |", fields[count].name);
        const char *at = strstr(from, row);
        if (!at || at >= to) {
            fail_msg("docs/models.md: %s: option %s is missing", name, fields[count].name);
        }
    }
    if (count_rows(from, to) != count) {
        fail_msg("docs/models.md: %s: %d rows, but %d options", name, count_rows(from, to), count);
    }
}

static int count_headings(const char *from, const char *to)
{
    int headings = 0;
    for (const char *at = strstr(from, "\n### "); at && (!to || at < to); at = strstr(at + 1, "\n### ")) {
        headings++;
    }
    return headings;
}

static void test_the_manual_lists_every_kind_model_and_option(void **state)
{
    (void)state;
    char *manual;
    size_t bytes;
    int kinds = 0, models = 0;
    assert_int_equal(cvy_file_read(CVY_SOURCE_ROOT "/docs/models.md", 1 << 20, CVY_ERR_INPUT, &manual, &bytes), CVY_OK);
    for (const cvy_layer_kind *kind; (kind = cvy_layer_kind_get(kinds)); kinds++) {
        assert_documented(manual, "\n## Kinds of layers", kind->name, kind->fields);
    }
    for (const cvy_zoo_entry *entry; (entry = cvy_zoo_get(models)); models++) {
        assert_documented(manual, "\n## The zoo", entry->name, entry->fields);
    }
    const char *zoo = strstr(manual, "\n## The zoo");
    assert_int_equal(count_headings(strstr(manual, "\n## Kinds of layers"), zoo), kinds);
    assert_int_equal(count_headings(zoo, NULL), models);
    cvy_free(manual);
}

/* The small file in the manual is a model. */
static void test_the_example_in_the_manual_is_read(void **state)
{
    (void)state;
    char *manual;
    size_t bytes;
    assert_int_equal(cvy_file_read(CVY_SOURCE_ROOT "/docs/models.md", 1 << 20, CVY_ERR_INPUT, &manual, &bytes), CVY_OK);
    char *from = strstr(manual, "```yaml\n");
    assert_non_null(from);
    from += strlen("```yaml\n");
    char *to = strstr(from, "```");
    assert_non_null(to);
    char path[] = "/tmp/convoy-manual-XXXXXX.yaml";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    FILE *stream = fdopen(file, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(from, 1, (size_t)(to - from), stream), to - from);
    fclose(stream);
    cvy_model *model = NULL;
    cvy_status status = cvy_model_open(path, &model);
    remove(path);
    assert_int_equal(status, CVY_OK);
    assert_int_equal(cvy_model_parameters(model), 8 * 25 + 8 + 8 * 10 + 10);
    cvy_model_destroy(&model);
    cvy_free(manual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zoo_names_with_and_without_options),
        cmocka_unit_test(test_a_path_is_told_from_a_name),
        cmocka_unit_test(test_the_squeeze_excitation_example_is_read),
        cmocka_unit_test(test_unknown_names_and_options),
        cmocka_unit_test(test_options_cannot_smuggle_yaml),
        cmocka_unit_test(test_a_set_up_adds_options_that_a_model_has_and_a_text_does_not_say),
        cmocka_unit_test(test_the_manual_lists_every_kind_model_and_option),
        cmocka_unit_test(test_the_example_in_the_manual_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
