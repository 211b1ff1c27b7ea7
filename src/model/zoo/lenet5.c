/*
 * LeNet-5 as Caffe trains it (examples/mnist/lenet_train_test.prototxt), after LeCun et al., "Gradient-based learning
 * applied to document recognition", 1998. 431,080 parameters at 28x28 with one channel and ten classes.
 */
#include "model/zoo/zoo.h"

typedef struct lenet5_options {
    cvy_image_options image;
} lenet5_options;

/* 16 is the least that two 5x5 windows and two halvings leave something of: 16 12 6 2 1. */
static const cvy_field fields[] = {CVY_IMAGE_FIELDS(lenet5_options, 28, 16, 1, 10), {0}};

#define CAFFE_INIT "init: xavier, bias-init: zero"

static cvy_status add_layers(cvy_model *model, int64_t classes)
{
    int at = 0;
    CVY_TRY(cvy_model_append(model, "conv", "conv1", &at, "filters: 20, kernel: 5, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "max-pool", "pool1", &at, "kernel: 2"));
    CVY_TRY(cvy_model_append(model, "conv", "conv2", &at, "filters: 50, kernel: 5, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "max-pool", "pool2", &at, "kernel: 2"));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "ip1", &at, "outputs: 500, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "relu", "relu1", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "ip2", &at, "outputs: %lld, " CAFFE_INIT, (long long)classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const lenet5_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen->image.classes), model, model_out);
}

const cvy_zoo_entry cvy_zoo_lenet5 = {
    .name = "lenet5",
    .help = "LeNet-5, Caffe's: 431,080 parameters",
    .fields = fields,
    .options_bytes = sizeof(lenet5_options),
    .build = build,
};
