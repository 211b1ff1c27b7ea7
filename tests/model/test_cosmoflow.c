/* CosmoFlow: stages by the size, and the list of layers that ran on ABCI, row by row. */
#include "model/support.h"

#include <stdio.h>
#include <stdlib.h>

/* log2(size) - 2 stages below 128, at least one, at most five: four positions an axis at powers of two. */
static void test_cosmoflow_stages_follow_the_size(void **state)
{
    (void)state;
    const struct { const char *model, *last, *shape; } rows[] = {
        {"cosmoflow:size=4", "pool1", "1x16x2x2x2"},        {"cosmoflow:size=16", "pool2", "1x32x4x4x4"},
        {"cosmoflow", "pool3", "1x64x4x4x4"},               {"cosmoflow:size=63", "pool3", "1x64x7x7x7"},
        {"cosmoflow:size=128", "pool5", "1x256x4x4x4"},     {"cosmoflow:size=512", "pool5", "1x256x16x16x16"},
        {"cosmoflow:size=[32,64,128]", "pool3", "1x64x4x8x16"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cvy_model *model = open_model(rows[i].model);
        int last = cvy_model_find_layer(model, rows[i].last);
        assert_layer_shape(model, rows[i].last, rows[i].shape);
        assert_string_equal(model->layer[last + 1].name, "flatten");
        assert_string_equal(model->layer[model->layers - 1].kind->name, "mean-squared-error");
        cvy_model_destroy(&model);
    }
    cvy_model *model = open_model("cosmoflow:dropout=0.5");
    assert_true(cvy_model_find_layer(model, "fc1-dropout") > 0 && cvy_model_find_layer(model, "fc2-dropout") > 0);
    cvy_model_destroy(&model);
}

/* "128x256x2x2x2": the extents, and how many there are. */
static int read_extents(const char *text, int64_t extent[5])
{
    int count = 0;
    for (char *end; count < 5 && *text; text = *end ? end + 1 : end) {
        extent[count++] = strtoll(text, &end, 10);
    }
    return count;
}

static int64_t multiply_extents(const char *text)
{
    int64_t extent[5], product = 1;
    int count = read_extents(text, extent);
    for (int i = 0; i < count; i++) {
        product *= extent[i];
    }
    return product;
}

/* One row of the list: layer, kind, input, weight, output. */
typedef struct list_row {
    char kind[16], input[40], weight[40], output[40];
} list_row;

static const char *find_kind(const char *kind)
{
    static const char *const names[][2] = {
        {"CONV", "conv"}, {"RELU", "relu"}, {"APOOL", "average-pool"}, {"FC", "dense"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], kind) == 0) {
            return names[i][1];
        }
    }
    fail_msg("a row of kind %s", kind);
    return NULL;
}

/* Elements of input, weights and output; of a dense layer's output the 1x1x1 that the list adds is left out. */
static int64_t judge_row(const cvy_model *model, int index, const list_row *row)
{
    const cvy_layer *layer = &model->layer[index];
    const cvy_shape *output = &layer->output;
    int64_t extent[5], weights = 0;
    int extents = read_extents(row->output, extent);
    assert_string_equal(layer->kind->name, find_kind(row->kind));
    assert_int_equal(extents, 4);
    for (int i = 0; i < extents; i++) {
        assert_int_equal(i + 1 < output->dims ? output->extent[i + 1] : 1, extent[i]);
    }
    assert_int_equal(cvy_shape_elements(&model->layer[layer->input[0]].output), multiply_extents(row->input));
    int parameter = cvy_model_find_role(model, index, CVY_ROLE_W);
    if (parameter >= 0) {
        weights = cvy_shape_elements(&model->parameter[parameter].spec.shape);
        assert_int_equal(weights, multiply_extents(row->weight));
    }
    return weights;
}

/* The file has no flatten, which comes before the first dense layer. */
static void test_the_list_of_abci_row_by_row(void **state)
{
    (void)state;
    cvy_model *model = open_model("cosmoflow:size=512,layers=abci");
    FILE *list = fopen(CVY_TEST_DATA "/models/layers_cosmoflow512.csv", "r");
    assert_non_null(list);
    char line[200];
    list_row row;
    int rows = 0, index = 1;
    int64_t weights = 0;
    assert_non_null(fgets(line, sizeof line, list)); /* names of the columns */
    while (fgets(line, sizeof line, list)) {
        assert_int_equal(sscanf(line, "%*[^,],%15[^,],%39[^,],%39[^,],%39s", row.kind, row.input, row.weight,
                                row.output), 4);
        index += strcmp(model->layer[index].kind->name, "flatten") == 0;
        weights += judge_row(model, index++, &row);
        rows++;
    }
    fclose(list);
    assert_int_equal(rows, 25);
    assert_int_equal(index, model->layers - 1); /* the loss is left */
    assert_int_equal(weights, 2128064);         /* as the published total */
    /* and a bias for each filter and output, which the list does not count */
    assert_int_equal(cvy_model_parameters(model), 2128064 + 16 + 32 + 64 + 128 + 256 + 256 + 128 + 2048 + 256 + 4);
    cvy_model_destroy(&model);
}

/* At 256 without the stride: 256 254 127 125 62 60 30 28 14 13 6 5 2 1. At 206 one position is left as well, and at 394
 * with the stride; just below, 393 391 195 193 96 94 47 45 22 21 10 9 4 3. */
static void test_the_list_of_abci_at_other_sizes(void **state)
{
    (void)state;
    const struct { const char *model, *third, *last; } rows[] = {
        {"cosmoflow:size=206,layers=abci", "1x64x48x48x48", "1x128x1x1x1"},
        {"cosmoflow:size=256,layers=abci", "1x64x60x60x60", "1x128x1x1x1"},
        {"cosmoflow:size=393,layers=abci", "1x64x94x94x94", "1x128x3x3x3"},
        {"cosmoflow:size=394,layers=abci", "1x64x48x48x48", "1x128x1x1x1"},
        {"cosmoflow:size=[256,512,512],layers=abci", "1x64x60x124x124", "1x128x1x5x5"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cvy_model *model = open_model(rows[i].model);
        assert_layer_shape(model, "conv3", rows[i].third);
        assert_layer_shape(model, "relu7", rows[i].last);
        cvy_model_destroy(&model);
    }
    assert_refused("cosmoflow:size=205,layers=abci", "cosmoflow: size: found 205, expected at least 206");
    assert_refused("cosmoflow:size=[512,128,512],layers=abci", "cosmoflow: size: found 128, expected at least 206");
    assert_refused("cosmoflow:layers=paper", "expected one of stages, abci");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cosmoflow_stages_follow_the_size),
        cmocka_unit_test(test_the_list_of_abci_row_by_row),
        cmocka_unit_test(test_the_list_of_abci_at_other_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
