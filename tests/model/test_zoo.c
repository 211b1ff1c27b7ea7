/* The zoo against published figures: parameter counts, torchvision's state_dict, shapes and multiply-adds. */
#include "model/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void assert_parameters(const char *text, int64_t expected)
{
    cvy_model *model = open_model(text);
    assert_int_equal(cvy_model_parameters(model), expected);
    cvy_model_destroy(&model);
}

static void assert_layer_shape(const cvy_model *model, const char *layer, const char *expected)
{
    int index = cvy_model_find_layer(model, layer);
    assert_true(index >= 0);
    assert_shape(&model->layer[index].output, expected);
}

/* Published counts; cosmoflow by hand: 1,744 + 13,856 + 55,360 convolutions, 524,416 + 8,256 + 260 dense. */
static void test_parameter_counts_are_canonical(void **state)
{
    (void)state;
    assert_parameters("lenet5", 431080);
    assert_parameters("cifar10-quick", 145578);
    assert_parameters("resnet18", 11689512);
    assert_parameters("resnet50", 25557032);
    assert_parameters("alexnet", 61100840);
    assert_parameters("alexnet:size=65,dropout=0", 61100840); /* pooled to 6x6, whatever the size */
    assert_parameters("vgg11", 132863336);
    assert_parameters("vgg13", 133047848);
    assert_parameters("vgg16", 138357544);
    assert_parameters("vgg19", 143667240);
    assert_parameters("resnet34", 21797672);
    assert_parameters("resnet101", 44549160);
    assert_parameters("resnet152", 60192808);
    assert_parameters("resnext50-32x4d", 25028904);
    assert_parameters("resnext101-32x4d", 44177704);
    assert_parameters("resnet50:version=1", 25557032);
    assert_parameters("resnet50:size=[57,61]", 25557032); /* pooled over space: the size does not matter */
    assert_parameters("resnet50:classes=10", 25557032 - 990 * 2049);
    assert_parameters("resnet18:channels=1", 11689512 - 2 * 64 * 49);
    assert_parameters("cosmoflow", 603892);
    assert_parameters("googlenet", 6624904);
    assert_parameters("googlenet:size=16,classes=10,dropout=0", 6624904 - 990 * 1025);
    assert_parameters("densenet121", 7978856);
    assert_parameters("densenet121:size=32,classes=10", 7978856 - 990 * 1025);
}

/*
 * The paper's 19,069,955 for 3 channels and 3 classes, by hand: 27 (3*32 + 32*64 + 64*64 + 64*128 + 128*128 + 128*256 +
 * 256*256 + 256*512) down, 8 (512*512 + 256*256 + 128*128) and 27 (768*256 + 256*256 + 384*128 + 128*128 + 192*64 +
 * 64*64) up, 64*3 + 3 at the end, and a bias for each filter of 3x3x3: 1,440 down and 896 up. These are not here; scale
 * and shift of the norms are, which the paper leaves out: 2 (1,440 + 896).
 */
static void test_parameters_of_unet3d_by_hand(void **state)
{
    (void)state;
    const int64_t filters = 1440 + 896, published = 19069955;
    const int64_t down = 27 * (3 * 32 + 32 * 64 + 64 * 64 + 64 * 128 + 128 * 128 + 128 * 256 + 256 * 256 + 256 * 512);
    const int64_t doubling = 8 * (512 * 512 + 256 * 256 + 128 * 128);
    const int64_t up = 27 * (768 * 256 + 256 * 256 + 384 * 128 + 128 * 128 + 192 * 64 + 64 * 64);
    assert_int_equal(down + doubling + up + 64 * 3 + 3 + filters, published);
    assert_parameters("unet3d:channels=3", published - filters + 2 * filters);
    assert_parameters("unet3d", 19070563); /* one channel: 27 * 2 * 32 less */
    assert_parameters("unet3d:classes=7,size=[16,8,24],loss=dice", 19070563 + 4 * 65);
    /* A width of 8 divides the kernels of 3 between filters by 16; the first and the last have a side that stays. */
    assert_parameters("unet3d:width=8", (down - 27 * 3 * 32 + doubling + up) / 16 + 27 * 8 + 16 * 3 + 3 + filters / 2);
}

/* 64 32 16 8 and back; filters double before a pooling; what was made at a size stands before what comes from below. */
static void test_unet3d_goes_down_and_up(void **state)
{
    (void)state;
    cvy_model *model = open_model("unet3d:size=[64,32,48]");
    assert_layer_shape(model, "down1.conv1", "1x32x64x32x48");
    assert_layer_shape(model, "down3.relu2", "1x256x16x8x12");
    assert_layer_shape(model, "down4.relu2", "1x512x8x4x6");
    assert_layer_shape(model, "up3.up", "1x512x16x8x12");
    assert_layer_shape(model, "up3.concat", "1x768x16x8x12");
    assert_layer_shape(model, "up1.relu2", "1x64x64x32x48");
    assert_layer_shape(model, "head", "1x3x64x32x48");
    const cvy_layer *concat = &model->layer[cvy_model_find_layer(model, "up3.concat")];
    assert_int_equal(concat->input[0], cvy_model_find_layer(model, "down3.relu2"));
    assert_int_equal(concat->input[1], cvy_model_find_layer(model, "up3.up"));
    assert_string_equal(model->layer[model->layers - 1].kind->name, "softmax-cross-entropy");
    cvy_model_destroy(&model);
    model = open_model("unet3d:loss=dice");
    assert_string_equal(model->layer[model->layers - 1].kind->name, "soft-dice");
    cvy_model_destroy(&model);
    assert_refused("unet3d:size=28", "unet3d: size: found 28, expected a multiple of 8");
    assert_refused("unet3d:size=[16,16]", "unet3d: size: found 2 entries, expected 1 or 3");
    assert_refused("unet3d:loss=mse", "unet3d: loss: found 'mse', expected one of cross-entropy, dice");
}

/* Key, shape and order of every tensor of torchvision's resnet50().state_dict(), from a list. */
static void test_resnet50_has_the_keys_and_shapes_of_torchvision(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet50");
    FILE *list = fopen(CVY_TEST_DATA "/models/resnet50_state_dict.txt", "r");
    assert_non_null(list);
    char line[200], key[100], shape[60];
    int count = 0;
    while (fgets(line, sizeof line, list)) {
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%99s %59s", key, shape), 2);
        assert_true(count < model->parameters);
        assert_string_equal(model->parameter[count].name, key);
        assert_shape(&model->parameter[count].spec.shape, shape);
        assert_int_equal(cvy_model_find_parameter(model, key), count);
        count++;
    }
    fclose(list);
    assert_int_equal(count, model->parameters);
    assert_int_equal(count, 320 - 53); /* torchvision's 320 less the counters of 53 norms */
    cvy_model_destroy(&model);
}

/* Convolutions and dense layers alone: |w| |y| / filters multiply-adds each. */
static double count_multiply_adds(const cvy_model *model)
{
    double total = 0;
    for (int i = 0; i < model->parameters; i++) {
        const cvy_parameter_spec *spec = &model->parameter[i].spec;
        if (spec->role == CVY_ROLE_W && spec->shape.dims > 1) {
            double positions = 1;
            const cvy_shape *output = &model->layer[model->parameter[i].layer].output;
            for (int k = 2; k < output->dims; k++) {
                positions *= (double)output->extent[k];
            }
            total += (double)cvy_shape_elements(&spec->shape) * positions;
        }
    }
    return total;
}

/* 4.09 G multiply-adds at 224 (version 1: 3.86 G), 1.81 G for resnet18: torchvision's table. All layers together: the
 * rest is elementwise, below 1 %. */
static void test_flop_is_twice_the_published_multiply_adds(void **state)
{
    (void)state;
    const struct { const char *model; double published; } rows[] = {
        {"resnet50", 4.09e9}, {"resnet18", 1.81e9}, {"resnet50:version=1", 3.86e9}};
    for (int i = 0; i < 3; i++) {
        cvy_model *model = open_model(rows[i].model);
        double multiply_adds = count_multiply_adds(model);
        assert_true(fabs(multiply_adds / rows[i].published - 1) < 0.005);
        double flop = cvy_model_forward_flop(model);
        assert_true(flop > 2 * multiply_adds && flop < 2.02 * multiply_adds);
        cvy_model_destroy(&model);
    }
}

/* Products 2 (20*25*576 + 50*500*64 + 800*500 + 500*10), biases 11520 + 3200 + 500 + 10, pooling 4 (2880 + 800), relu
 * 500, softmax 4 a class. */
static void test_flop_of_lenet5_by_hand(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    double products = 2.0 * (20 * 25 * 576 + 50 * 500 * 64 + 800 * 500 + 500 * 10);
    double rest = 11520 + 3200 + 500 + 10 + 4 * (2880 + 800) + 500 + 40;
    assert_true(cvy_model_forward_flop(model) == products + rest);
    cvy_model_destroy(&model);
}

static void test_shapes_inside(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    assert_layer_shape(model, "conv1", "1x20x24x24");
    assert_layer_shape(model, "pool2", "1x50x4x4");
    assert_int_equal(cvy_model_output(model), cvy_model_find_layer(model, "ip2"));
    cvy_model_destroy(&model);
    model = open_model("cifar10-quick"); /* Caffe rounds up: 32 16 8 4 */
    assert_layer_shape(model, "pool1", "1x32x16x16");
    assert_layer_shape(model, "pool2", "1x32x8x8");
    assert_layer_shape(model, "pool3", "1x64x4x4");
    cvy_model_destroy(&model);
    model = open_model("resnet50:size=[57,61]"); /* 57 29 15 8 4 2; 61 31 16 8 4 2 */
    assert_layer_shape(model, "conv1", "1x64x29x31");
    assert_layer_shape(model, "maxpool", "1x64x15x16");
    assert_layer_shape(model, "layer2.0.relu", "1x512x8x8");
    assert_layer_shape(model, "layer4.2.relu", "1x2048x2x2");
    cvy_model_destroy(&model);
}

/* Where a bottleneck halves: the 1x1 still sees 56 rows in version 1.5, but gives 28 in version 1. */
static void test_versions_of_resnet50_halve_in_different_places(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet50");
    assert_layer_shape(model, "layer2.0.conv1", "1x128x56x56");
    assert_layer_shape(model, "layer2.0.conv2", "1x128x28x28");
    cvy_model_destroy(&model);
    model = open_model("resnet50:version=1");
    assert_layer_shape(model, "layer2.0.conv1", "1x128x28x28");
    assert_layer_shape(model, "layer2.0.conv2", "1x128x28x28");
    cvy_model_destroy(&model);
}

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

static void test_every_size_in_bounds_makes_a_model(void **state)
{
    (void)state;
    const struct { const char *model; int least; } rows[] = {{"lenet5", 16}, {"cifar10-quick", 8}, {"resnet18", 8},
                                                              {"resnet50", 8}, {"cosmoflow", 4}};
    char text[64];
    for (int i = 0; i < 5; i++) {
        for (int size = rows[i].least; size < rows[i].least + 40; size++) {
            snprintf(text, sizeof text, "%s:size=%d", rows[i].model, size);
            cvy_model *model = open_model(text);
            assert_string_equal(cvy_model_name(model), text);
            cvy_model_destroy(&model);
        }
        snprintf(text, sizeof text, "%s:size=%d", rows[i].model, rows[i].least - 1);
        assert_refused(text, rows[i].model);
    }
}

static void test_nonsense_options_are_one_line(void **state)
{
    (void)state;
    const char *const options[] = {"size=1", "size=-3", "size=0", "size=1e3", "size=[28]x", "size=[64,0]",
                                   "size=99999999999999999999", "size=9999999", "size=nan", "size=", "size=[]",
                                   "channels=0", "channels=-1", "channels=999999999999", "siz=28", "size"};
    char text[128];
    const cvy_zoo_entry *entry;
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
            snprintf(text, sizeof text, "%s:%s", entry->name, options[k]);
            assert_refused(text, entry->name);
        }
        bool classes = strcmp(entry->name, "cosmoflow") != 0;
        snprintf(text, sizeof text, "%s:%s=0", entry->name, classes ? "classes" : "outputs");
        assert_refused(text, classes ? "classes: found '0'" : "outputs: found '0'");
    }
}

/* The largest that each option allows must still be answered: shapes are numbers, not memory. */
static void test_largest_options_do_not_overflow(void **state)
{
    (void)state;
    const char *const texts[] = {"lenet5:size=65536,channels=65536,classes=10000000",
                                 "resnet50:size=65536,channels=65536,classes=10000000",
                                 "cifar10-quick:size=65536,channels=65536,classes=10000000",
                                 "cosmoflow:size=512,channels=65536,outputs=10000000"};
    for (int i = 0; i < 4; i++) {
        cvy_model *model = open_model(texts[i]);
        assert_true(cvy_model_parameters(model) > 1000000 && cvy_model_forward_flop(model) > 1e12);
        cvy_model_destroy(&model);
    }
}

static void test_hash_is_of_what_is_computed(void **state)
{
    (void)state;
    const char *const different[] = {"resnet50",         "resnet50:version=1",   "resnet50:classes=10", "resnet18",
                                     "resnet50:size=226", "lenet5",              "cifar10-quick",       "cosmoflow",
                                     "cosmoflow:dropout=0.5", "cosmoflow:dropout=0.4", "lenet5:channels=3"};
    enum { COUNT = sizeof different / sizeof different[0] };
    uint64_t hash[COUNT];
    for (int i = 0; i < COUNT; i++) {
        hash[i] = hash_of(different[i]);
        for (int k = 0; k < i; k++) {
            assert_true(hash[i] != hash[k]);
        }
    }
    assert_true(hash_of("resnet50:version=1.5,size=[224,224]") == hash[0]);
    assert_true(hash_of("lenet5:channels=1,size=28") == hash_of("lenet5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_counts_are_canonical),
        cmocka_unit_test(test_parameters_of_unet3d_by_hand),
        cmocka_unit_test(test_unet3d_goes_down_and_up),
        cmocka_unit_test(test_resnet50_has_the_keys_and_shapes_of_torchvision),
        cmocka_unit_test(test_flop_is_twice_the_published_multiply_adds),
        cmocka_unit_test(test_flop_of_lenet5_by_hand),
        cmocka_unit_test(test_shapes_inside),
        cmocka_unit_test(test_versions_of_resnet50_halve_in_different_places),
        cmocka_unit_test(test_cosmoflow_stages_follow_the_size),
        cmocka_unit_test(test_every_size_in_bounds_makes_a_model),
        cmocka_unit_test(test_nonsense_options_are_one_line),
        cmocka_unit_test(test_largest_options_do_not_overflow),
        cmocka_unit_test(test_hash_is_of_what_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
