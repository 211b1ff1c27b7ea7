/* Model files: what they mean, and what is said of wrong ones. */
#include "model/support.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "folder.h"

/* The text as a file of the test's folder. */
static const char *put(void **state, const char *text)
{
    const char *path = test_path(*state, "m.yaml");
    assert_true(put_test_file(path, text, strlen(text)));
    return path;
}

/* The text is refused as "…/m.yaml:LINE: WORDS…", on one line. */
static void assert_file_refused(void **state, const char *text, const char *words)
{
    assert_refused(put(state, text), words);
    assert_memory_equal(cvy_error_message(), *state, strlen(*state));
}

#define HEAD "name: m\ninput: [1, 8, 8]\nlayers:\n"
#define POOL "- {name: p, kind: max-pool, kernel: 2}\n"
#define TAIL "- {name: f, kind: flatten}\n- {name: loss, kind: softmax-cross-entropy}\n"

static cvy_status append_conv_norm(cvy_model *model, const char *block, int part, int *at, int filters, int stride)
{
    char name[64];
    snprintf(name, sizeof name, "%s.c%d", block, part);
    CVY_TRY(cvy_model_append(model, "conv", name, at, "filters: %d, kernel: %d, stride: %d, padding: %d, bias: no",
                             filters, part == 3 ? 1 : 3, stride, part != 3));
    snprintf(name, sizeof name, "%s.n%d", block, part);
    return cvy_model_append(model, "batch-norm", name, at, " ");
}

/* A residual block as in models/small-resnet.yaml, under other names. */
static cvy_status append_block(cvy_model *model, const char *block, int *at, int filters, int stride)
{
    char name[64];
    int shortcut = *at;
    CVY_TRY(append_conv_norm(model, block, 1, at, filters, stride));
    snprintf(name, sizeof name, "%s.r1", block);
    CVY_TRY(cvy_model_append(model, "relu", name, at, " "));
    CVY_TRY(append_conv_norm(model, block, 2, at, filters, 1));
    if (stride > 1) {
        CVY_TRY(append_conv_norm(model, block, 3, &shortcut, filters, stride));
    }
    snprintf(name, sizeof name, "%s.sum", block);
    CVY_TRY(cvy_model_append_add(model, name, *at, shortcut, at));
    snprintf(name, sizeof name, "%s.r2", block);
    return cvy_model_append(model, "relu", name, at, " ");
}

static void test_example_equals_the_same_net_from_calls(void **state)
{
    (void)state;
    cvy_model *file = open_model(CVY_SOURCE_ROOT "/models/small-resnet.yaml");
    cvy_model *built = start_model(CVY_SHAPE(1, 28, 28));
    int at = 0;
    assert_int_equal(append_conv_norm(built, "stem", 1, &at, 16, 1), CVY_OK);
    assert_int_equal(cvy_model_append(built, "relu", "stem.r", &at, " "), CVY_OK);
    assert_int_equal(append_block(built, "a", &at, 16, 1), CVY_OK);
    assert_int_equal(append_block(built, "b", &at, 32, 2), CVY_OK);
    assert_int_equal(append_block(built, "c", &at, 64, 2), CVY_OK);
    assert_int_equal(cvy_model_append(built, "global-pool", "p", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(built, "flatten", "v", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(built, "dense", "d", &at, "outputs: 10"), CVY_OK);
    assert_int_equal(cvy_model_append(built, "softmax-cross-entropy", "l", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(built), CVY_OK);
    assert_true(cvy_model_hash(file) == cvy_model_hash(built));
    assert_string_equal(cvy_model_name(file), "small-resnet");
    /* 144 + 32, 2 (2304 + 32), 4608 + 9216 + 512 + 3 * 64, 18432 + 36864 + 2048 + 3 * 128, 650; the file says so too */
    assert_int_equal(cvy_model_parameters(file), 77754);
    cvy_model_destroy(&file);
    cvy_model_destroy(&built);
}

/* Styles of YAML, defaults written out, lists in place of one number: the same model. Any change of it: another. */
static void test_hash_of_a_file_is_of_its_meaning(void **state)
{
    const char *const base = HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n" POOL TAIL;
    const char *const same =
        "layers:\n- kind: conv\n  name: first\n  input: input\n  filters: 2\n  kernel: [3, 3]\n  stride: [1, 1]\n"
        "  dilation: 1\n  padding: [[0, 0], 0]\n  groups: 1\n  bias: true\n  init: kaiming\n"
        "- {kind: max-pool, name: second, kernel: [2, 2], stride: 2, input: [first]}\n" TAIL
        "input: [1, 8, 8]\nname: other\n";
    const char *const others[] = {
        HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n- {name: p, kind: average-pool, kernel: 2}\n" TAIL,
        HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n- {name: p, kind: max-pool, kernel: 2, stride: 1}\n" TAIL,
        HEAD "- {name: c, kind: conv, filters: 2, kernel: 3, bias: no}\n" POOL TAIL,
        HEAD "- {name: c, kind: conv, filters: 2, kernel: 3, init: xavier}\n" POOL TAIL,
        HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n- {name: r, kind: relu}\n" POOL TAIL};
    uint64_t hash = hash_of(put(state, base));
    assert_true(hash_of(put(state, same)) == hash);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_true(hash_of(put(state, others[i])) != hash);
    }
}

/* Which of two equal tensors a layer takes is part of the meaning. */
static void test_hash_sees_the_graph(void **state)
{
    const char *const one = HEAD "- {name: a, kind: relu}\n- {name: b, kind: relu}\n"
                                 "- {name: s, kind: add, input: [a, b]}\n" TAIL;
    const char *const two = HEAD "- {name: a, kind: relu}\n- {name: b, kind: relu, input: input}\n"
                                 "- {name: s, kind: add, input: [a, b]}\n" TAIL;
    uint64_t hash = hash_of(put(state, one));
    assert_true(hash_of(put(state, two)) != hash);
}

static void test_unknown_words_name_the_nearest(void **state)
{
    assert_file_refused(state, HEAD "- {name: c, kind: cov, filters: 2, kernel: 3}\n" TAIL,
                        "m.yaml:4: layer c: unknown kind 'cov'; did you mean 'conv'?");
    assert_file_refused(state, HEAD "- name: c\n  kind: conv\n  filter: 2\n  kernel: 3\n" TAIL,
                        "m.yaml:6: layer c: unknown option 'filter'; did you mean 'filters'?");
    assert_file_refused(state, HEAD "- {name: first, kind: relu}\n- {name: b, kind: relu, input: frist}\n" TAIL,
                        "m.yaml:5: layer b: no layer 'frist' to take as input; did you mean 'first'?");
    assert_file_refused(state, "name: m\ninputs: [1, 8, 8]\n",
                        "m.yaml:2: unknown option 'inputs'; did you mean 'input'?");
    assert_file_refused(state, HEAD "- {nam: c, kind: relu}\n", "m.yaml:4: name: missing");
}

static void test_graphs_that_are_none(void **state)
{
    assert_file_refused(state,
                        HEAD "- {name: a, kind: add, input: [input, b]}\n- {name: b, kind: relu, input: a}\n" TAIL,
                        "m.yaml:4: layer a: input 'b' stands on line 5: layers stand after their inputs");
    assert_file_refused(state, HEAD "- {name: a, kind: relu, input: a}\n" TAIL,
                        "m.yaml:4: layer a: input 'a' stands on line 4");
    assert_file_refused(state, HEAD "- {name: a, kind: relu, input: zzz}\n" TAIL,
                        "m.yaml:4: layer a: no layer 'zzz' to take as input");
    assert_file_refused(state, HEAD "- {name: a, kind: relu}\n- {name: a, kind: relu}\n" TAIL,
                        "m.yaml:5: layer 'a': the name is taken");
    assert_file_refused(state, HEAD "- {name: a, kind: relu}\n- {name: b, kind: relu, input: input}\n" TAIL,
                        "m.yaml:4: layer a: no layer takes its output");
    assert_file_refused(state, HEAD "- {name: a, kind: relu}\n", "m.yaml:4: layer a: the model ends here");
    assert_file_refused(state, HEAD TAIL "- {name: a, kind: relu, input: f}\n",
                        "m.yaml:6: layer a: the model ends here");
    assert_file_refused(state, HEAD TAIL "- {name: a, kind: relu}\n", "m.yaml:6: layer a: takes the loss layer loss");
    assert_file_refused(state, HEAD "- {name: a, kind: add}\n" TAIL, "m.yaml:4: layer a: found 1 inputs");
    assert_file_refused(state, HEAD "- {name: a, kind: relu, input: [input, input]}\n" TAIL,
                        "m.yaml:4: layer a: found 2 inputs, expected at most 1");
    assert_file_refused(state, HEAD "- {name: a, kind: add, input: [input, input, input]}\n" TAIL,
                        "m.yaml:4: layer a: found 3 inputs, expected at most 2");
    assert_file_refused(state, HEAD "- {name: a, kind: concat, input: [input, input, input, input, input]}\n" TAIL,
                        "m.yaml:4: layer a: input: found 5 names, expected 1 to 4");
    assert_file_refused(state, HEAD "- {name: a, kind: relu, input: []}\n" TAIL, "m.yaml:4: layer a: input: found 0");
    assert_file_refused(state, HEAD "- {name: a, kind: relu, input: {b: c}}\n" TAIL, "m.yaml:4: layer a: input:");
    assert_file_refused(state, HEAD "- {name: a, kind: input, shape: [1]}\n" TAIL, "m.yaml:4: layer a:");
}

static void test_files_that_are_no_models(void **state)
{
    assert_file_refused(state, "[1, 2]\n", "m.yaml:1: expected a mapping");
    assert_file_refused(state, "just words\n", "m.yaml:1: expected a mapping");
    assert_file_refused(state, "name: m\n", "m.yaml:1: input: missing");
    assert_file_refused(state, "input: [1]\nlayers: [a]\n", "m.yaml:1: name: missing");
    assert_file_refused(state, "name: [m]\ninput: [1]\nlayers: [a]\n", "m.yaml:1: name: expected");
    assert_file_refused(state, "name: m\ninput: [1]\n", "m.yaml:1: layers: expected a list");
    assert_file_refused(state, "name: m\ninput: [1]\nlayers:\n", "m.yaml:3: layers: expected a list");
    assert_file_refused(state, "name: m\ninput: [1]\nlayers: []\n", "m.yaml:3: layers: expected a list");
    assert_file_refused(state, "name: m\ninput: [1]\nlayers: {a: b}\n", "m.yaml:3: layers: expected a list");
    assert_file_refused(state, "name: m\ninput: [1]\nlayers: [a]\n", "m.yaml:3: layers: expected a mapping");
    assert_file_refused(state, "name: m\ninput: 28\nlayers: [a]\n", "m.yaml:2: input: expected [c], [c, h, w]");
    assert_file_refused(state, "name: m\ninput: [1, 2]\nlayers: [a]\n", "m.yaml:2: input: expected [c], [c, h, w]");
    assert_file_refused(state, "name: m\ninput: [1, 0, 8]\nlayers: [a]\n", "m.yaml:2: input: found '0'");
    assert_file_refused(state, HEAD "- {name: a\n", "m.yaml:5: not YAML");
    assert_file_refused(state, HEAD "- &a {name: a, kind: relu}\n- *a\n", "m.yaml:4: anchors and aliases");
    assert_file_refused(state, HEAD "- {name: \"a\\nb\", kind: relu}\n", "m.yaml:4: layer 'a?b': expected 1 to 200");
    assert_file_refused(state, HEAD "- {name: a, kind: \"re\\nlu\"}\n", "m.yaml:4: layer a: unknown kind 're?lu'");
    assert_file_refused(state, HEAD "- {name: a, kind: [relu]}\n", "m.yaml:4: kind: expected");
}

/*
 * 10^9 an axis: 10^27 elements. A dense layer of 10^9 x 10^9 weights: 8 10^18 bytes in double; 2^62 is 4.6 10^18. Some
 * layers of 250,000 x 500,000 x 250,000 = 3.1 10^16 numbers fit one by one, but not six: the end is at 2^57 numbers.
 */
static void test_shapes_beyond_64_bits_are_refused(void **state)
{
    assert_file_refused(state, "name: m\ninput: [1000000000, 1000000000, 1000000000]\nlayers: [a]\n",
                        "m.yaml:2: layer input: output: shape 1x1000000000x1000000000x1000000000 is beyond 2^62 bytes");
    assert_file_refused(state, "name: m\ninput: [1000000000, 1000000000000, 1]\nlayers: [a]\n",
                        "m.yaml:2: input: found");
    assert_file_refused(state, "name: m\ninput: [1000000000]\nlayers:\n- {name: d, kind: dense, outputs: 1000000000}\n",
                        "m.yaml:4: layer d: weight: shape 1000000000x1000000000 is beyond 2^62 bytes");
    assert_file_refused(state, HEAD "- {name: c, kind: conv, filters: 1000000000, kernel: 1000000000, "
                                    "padding: 1000000000, dilation: 1000000000}\n", "m.yaml:4: layer c: a window");
    assert_file_refused(state, HEAD "- {name: c, kind: conv, filters: 1000000000, kernel: 1, padding: 1000000000}\n",
                        "m.yaml:4: layer c: output: shape");
    assert_file_refused(state, HEAD "- {name: p, kind: max-pool, kernel: 1000000000, stride: 1000000000, "
                                    "ceil-mode: yes, padding: 1000000000}\n", "m.yaml:4: layer p:");
    cvy_text text = {0};
    cvy_text_add(&text, "name: m\ninput: [1, 500000, 250000]\nlayers:\n");
    for (int i = 0; i < 6; i++) {
        cvy_text_add(&text, "- {name: c%d, kind: conv, filters: 250000, kernel: 1}\n", i);
    }
    cvy_text_add(&text, TAIL);
    char *many = cvy_text_take(&text);
    assert_non_null(many);
    assert_file_refused(state, many, "more activations than 64 bits can count the bytes of");
    cvy_free(many);
}

static char *write_chain(int layers)
{
    cvy_text text = {0};
    cvy_text_add(&text, "name: chain\ninput: [4]\nlayers:\n");
    for (int i = 0; i < layers - 1; i++) {
        cvy_text_add(&text, "- {name: r%d, kind: batch-norm}\n", i);
    }
    cvy_text_add(&text, "- {name: loss, kind: mean-squared-error}\n");
    return cvy_text_take(&text);
}

static void test_the_limit_of_layers_holds_and_is_reached(void **state)
{
    char *text = write_chain(CVY_MAX_LAYERS);
    assert_non_null(text);
    cvy_model *model = open_model(put(state, text));
    assert_int_equal(model->layers, CVY_MAX_LAYERS + 1); /* and the input */
    assert_int_equal(cvy_model_find_layer(model, "r19998"), 19999);
    assert_int_equal(cvy_model_find_parameter(model, "r19998.bias"), 4 * 19998 + 1);
    assert_int_equal(cvy_model_parameters(model), 8 * (CVY_MAX_LAYERS - 1));
    cvy_model_destroy(&model);
    cvy_free(text);
    text = write_chain(CVY_MAX_LAYERS + 1);
    assert_file_refused(state, text, "m.yaml:3: layers: found 20001, expected at most 20000");
    cvy_free(text);
    text = write_chain(100000);
    assert_file_refused(state, text, "m.yaml:3: layers: found 100000, expected at most 20000");
    cvy_free(text);
}

/* Each prefix of a file is refused in one line, or is a shorter model; nothing leaks. */
static void test_truncated_files_are_refused(void **state)
{
    const char *const whole = HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n" TAIL;
    char text[400];
    int whole_models = 0;
    for (size_t bytes = 0; bytes <= strlen(whole); bytes++) {
        cvy_model *model = NULL;
        snprintf(text, bytes + 1, "%s", whole);
        cvy_status status = cvy_model_open(put(state, text), &model);
        assert_true(status == CVY_OK || status == CVY_ERR_INPUT);
        assert_true(status == CVY_OK || !strchr(cvy_error_message(), '\n'));
        whole_models += status == CVY_OK;
        cvy_model_destroy(&model);
    }
    assert_int_equal(whole_models, 2); /* with and without the last newline */
}

static void test_exhausted_memory_is_told(void **state)
{
    const char *path = put(state, HEAD "- {name: c, kind: conv, filters: 2, kernel: 3}\n"
                                       "- {name: n, kind: batch-norm}\n" TAIL);
    cvy_status status = CVY_ERR_MEMORY;
    int failures = 0;
    for (; status != CVY_OK; failures++) {
        cvy_model *model = NULL;
        cvy_memory_fail_after(failures);
        status = cvy_model_open(path, &model);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        assert_true((status == CVY_OK) == (model != NULL));
        cvy_model_destroy(&model);
    }
    assert_true(failures > 20);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_equals_the_same_net_from_calls),
        WITH_FOLDER(test_hash_of_a_file_is_of_its_meaning),
        WITH_FOLDER(test_hash_sees_the_graph),
        WITH_FOLDER(test_unknown_words_name_the_nearest),
        WITH_FOLDER(test_graphs_that_are_none),
        WITH_FOLDER(test_files_that_are_no_models),
        WITH_FOLDER(test_shapes_beyond_64_bits_are_refused),
        WITH_FOLDER(test_the_limit_of_layers_holds_and_is_reached),
        WITH_FOLDER(test_truncated_files_are_refused),
        WITH_FOLDER(test_exhausted_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
