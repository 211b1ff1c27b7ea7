/* The zoo against published figures: parameter counts, torchvision's state_dict, shapes and multiply-adds. */
#include "model/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of SE-ResNet-50: c to c / 16 and back, with biases, in 3, 4, 6, 3 blocks of 256, 512, 1024, 2048 channels. */
static int64_t excitations(void)
{
    const int blocks[] = {3, 4, 6, 3};
    int64_t total = 0;
    for (int stage = 0; stage < 4; stage++) {
        int64_t c = 256 << stage;
        total += blocks[stage] * (2 * c * (c / 16) + c / 16 + c);
    }
    return total;
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
    assert_parameters("alexnet:hidden=64,classes=10", 2469696 + 9216 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10);
    assert_parameters("vgg11", 132863336);
    assert_parameters("vgg11:hidden=32,classes=10", 9220480 + 25088 * 32 + 32 + 32 * 32 + 32 + 32 * 10 + 10);
    assert_parameters("vgg13", 133047848);
    assert_parameters("vgg16", 138357544);
    /* 226 pixels: rounded down 113 56 28 14 7, rounded up 113 57 29 15 8. The first dense layer takes 512 of each. */
    assert_parameters("vgg16:size=226,adaptive-pool=no", 138357544);
    assert_parameters("vgg16:size=226,ceil-mode=yes", 138357544); /* pooled to 7x7 */
    assert_parameters("vgg16:size=226,ceil-mode=yes,adaptive-pool=no", 138357544 + 4096 * 512 * (8 * 8 - 7 * 7));
    assert_parameters("vgg16:size=226,ceil-mode=yes,adaptive-pool=no", 169814824);
    assert_parameters("vgg16:size=224,ceil-mode=yes,adaptive-pool=no", 138357544); /* 112 56 28 14 7 both ways */
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
    assert_parameters("inception-v3", 23834568);
    assert_parameters("inception-v3:size=[75,107],classes=10,dropout=0", 23834568 - 990 * 2049);
    assert_parameters("mobilenet-v2", 3504872);
    assert_parameters("mobilenet-v2:size=8,classes=10,dropout=0", 3504872 - 990 * 1281);
    assert_parameters("efficientnet-b0", 5288548);
    assert_parameters("efficientnet-b0:stochastic-depth=0,dropout=0", 5288548);
    assert_parameters("efficientnet-b4", 19341616);
    assert_parameters("se-resnet50", 25557032 + excitations());
    assert_parameters("se-resnet50", 28088024);
    assert_parameters("se-resnext101-32x4d", 48955416); /* as timm's seresnext101_32x4d */
    assert_parameters("densenet121", 7978856);
    assert_parameters("densenet121:size=32,classes=10", 7978856 - 990 * 1025);
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

/* torchvision's table at the sizes of the papers; resnet50's version 1 has 3.86 G. All layers together: the rest is
 * elementwise, below 1 %, and up to 6 % where convolutions are depthwise. */
static void test_flop_is_twice_the_published_multiply_adds(void **state)
{
    (void)state;
    const struct { const char *model; double published, rest; } rows[] = {
        {"resnet50", 4.09e9, 0.01},      {"resnet18", 1.81e9, 0.01},        {"resnet50:version=1", 3.86e9, 0.01},
        {"inception-v3", 5.71e9, 0.01},  {"mobilenet-v2", 0.301e9, 0.06},   {"efficientnet-b0", 0.386e9, 0.06},
        {"efficientnet-b4", 4.39e9, 0.06}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cvy_model *model = open_model(rows[i].model);
        double multiply_adds = count_multiply_adds(model);
        assert_true(fabs(multiply_adds / rows[i].published - 1) < 0.005);
        double flop = cvy_model_forward_flop(model);
        assert_true(flop > 2 * multiply_adds && flop < 2 * (1 + rows[i].rest) * multiply_adds);
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

/*
 * As the oracle paper's code lists ResNet-50 of 226 pixels: 113x113 are pooled to 56x56, 3 + 2 * 55 = 113. Of 224
 * pixels the last of 56 windows reaches beyond 112. Torchvision's padding gives (113 + 2 - 3) / 2 + 1 = 57.
 */
static void test_poolings_may_round_up_and_pad_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *model, *layer, *shape;
    } expected[] = {
        {"resnet50:size=226", "maxpool", "1x64x57x57"},
        {"resnet50:size=226,pool-padding=0", "maxpool", "1x64x56x56"},
        {"resnet50:size=224,pool-padding=0", "maxpool", "1x64x55x55"},
        {"resnet50:size=224,pool-padding=0,ceil-mode=yes", "maxpool", "1x64x56x56"},
        {"resnet152:size=226,version=1,pool-padding=0,ceil-mode=yes", "layer2.0.conv1", "1x128x28x28"},
        {"resnet152:size=226,version=1,pool-padding=0,ceil-mode=yes", "layer4.2.conv3", "1x2048x7x7"},
        {"vgg16:size=226,ceil-mode=yes", "features.4", "1x64x113x113"},
        {"vgg16:size=226,ceil-mode=yes", "features.30", "1x512x8x8"},
        {"vgg16:size=226", "features.30", "1x512x7x7"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cvy_model *model = open_model(expected[i].model);
        assert_layer_shape(model, expected[i].layer, expected[i].shape);
        cvy_model_destroy(&model);
    }
    assert_parameters("resnet50:size=226,pool-padding=0,ceil-mode=yes", 25557032);
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

/* As the comments of torchvision's inception.py and the tables of the papers have them. */
static void test_shapes_inside_the_deeper_models(void **state)
{
    (void)state;
    const struct { const char *model, *layer, *shape; } rows[] = {
        {"inception-v3", "maxpool2", "1x192x35x35"},          {"inception-v3", "Mixed_5d.concat", "1x288x35x35"},
        {"inception-v3", "Mixed_6e.concat", "1x768x17x17"},   {"inception-v3", "Mixed_7a.concat", "1x1280x8x8"},
        {"inception-v3", "Mixed_7c.concat", "1x2048x8x8"},    {"inception-v3:size=75", "Mixed_7c.concat", "1x2048x1x1"},
        {"mobilenet-v2", "features.1.conv.2", "1x16x112x112"}, {"mobilenet-v2", "features.18.2", "1x1280x7x7"},
        {"efficientnet-b0", "features.7.0.block.3.1", "1x320x7x7"},
        {"efficientnet-b4", "features.0.2", "1x48x190x190"},  {"efficientnet-b4", "features.8.2", "1x1792x12x12"},
        {"efficientnet-b4", "features.6.7.add", "1x272x12x12"},
        {"se-resnet50", "layer1.0.se.fc1", "1x16x1x1"},       {"se-resnet50", "layer4.2.se.multiply", "1x2048x7x7"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cvy_model *model = open_model(rows[i].model);
        assert_layer_shape(model, rows[i].layer, rows[i].shape);
        cvy_model_destroy(&model);
    }
}

static void assert_drops(const cvy_model *model, const char *layer, double expected)
{
    int index = cvy_model_find_layer(model, layer);
    assert_true(index >= 0);
    cvy_op op;
    const cvy_layer *l = &model->layer[index];
    l->kind->make_op(l, &l->output, CVY_PASS_FORWARD, &op);
    assert_true(fabs(op.params.dropout.probability - expected) < 1e-15);
}

/* Block k of 16 drops 0.2 k / 16 in B0, of 32 in B4; features.6.3 and 6.7 are blocks 14 and 29. 9 of B0's blocks and 25
 * of B4's keep their shape. */
static void test_stochastic_depth_rises_linearly(void **state)
{
    (void)state;
    const struct { const char *model, *first, *last; double drop_first, drop_last; int layers; } rows[] = {
        {"efficientnet-b0", "features.2.1.stochastic_depth", "features.6.3.stochastic_depth", 0.2 * 2 / 16,
         0.2 * 14 / 16, 9},
        {"efficientnet-b4", "features.1.1.stochastic_depth", "features.6.7.stochastic_depth", 0.2 * 1 / 32,
         0.2 * 29 / 32, 25},
        {"efficientnet-b0:stochastic-depth=0.8", "features.2.1.stochastic_depth", "features.6.3.stochastic_depth", 0.1,
         0.7, 9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cvy_model *model = open_model(rows[i].model);
        int layers = 0;
        for (int k = 0; k < model->layers; k++) {
            layers += strcmp(model->layer[k].kind->name, "stochastic-depth") == 0;
        }
        assert_int_equal(layers, rows[i].layers);
        assert_drops(model, rows[i].first, rows[i].drop_first);
        assert_drops(model, rows[i].last, rows[i].drop_last);
        cvy_model_destroy(&model);
    }
}

static void test_every_size_in_bounds_makes_a_model(void **state)
{
    (void)state;
    const struct { const char *model; int least; } rows[] = {{"lenet5", 16}, {"cifar10-quick", 8}, {"resnet18", 8},
                                                              {"resnet50", 8}, {"cosmoflow", 4},
                                                              {"inception-v3", 75}, {"mobilenet-v2", 8},
                                                              {"efficientnet-b0", 8}};
    char text[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
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

static double find_maximum(const cvy_zoo_entry *entry, const char *option)
{
    const cvy_field *field = entry->fields;
    while (strcmp(field->name, option) != 0) {
        field++;
    }
    return field->maximum;
}

/* The largest that each option allows must still be answered: shapes are numbers, not memory. */
static void test_largest_options_do_not_overflow(void **state)
{
    (void)state;
    const cvy_zoo_entry *entry;
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        char text[100];
        const char *last = strcmp(entry->name, "cosmoflow") == 0 ? "outputs" : "classes";
        snprintf(text, sizeof text, "%s:size=%.0f,channels=%.0f,%s=%.0f", entry->name, find_maximum(entry, "size"),
                 find_maximum(entry, "channels"), last, find_maximum(entry, last));
        cvy_model *model = open_model(text);
        assert_true(cvy_model_parameters(model) > 1000000 && cvy_model_forward_flop(model) > 1e12);
        cvy_model_destroy(&model);
    }
}

static void test_hash_is_of_what_is_computed(void **state)
{
    (void)state;
    const char *const different[] = {
        "resnet50", "resnet50:version=1", "resnet50:classes=10", "resnet50:size=226", "resnet18", "se-resnet50",
        "lenet5", "lenet5:channels=3", "cifar10-quick", "efficientnet-b0", "efficientnet-b0:stochastic-depth=0.1",
        "mobilenet-v2", "cosmoflow", "cosmoflow:dropout=0.5", "cosmoflow:dropout=0.4", "cosmoflow:size=256",
        "cosmoflow:size=256,layers=abci"};
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
        cmocka_unit_test(test_poolings_may_round_up_and_pad_nothing),
        cmocka_unit_test(test_resnet50_has_the_keys_and_shapes_of_torchvision),
        cmocka_unit_test(test_flop_is_twice_the_published_multiply_adds),
        cmocka_unit_test(test_flop_of_lenet5_by_hand),
        cmocka_unit_test(test_shapes_inside),
        cmocka_unit_test(test_versions_of_resnet50_halve_in_different_places),
        cmocka_unit_test(test_shapes_inside_the_deeper_models),
        cmocka_unit_test(test_stochastic_depth_rises_linearly),
        cmocka_unit_test(test_every_size_in_bounds_makes_a_model),
        cmocka_unit_test(test_nonsense_options_are_one_line),
        cmocka_unit_test(test_largest_options_do_not_overflow),
        cmocka_unit_test(test_hash_is_of_what_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
