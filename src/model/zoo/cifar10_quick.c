/*
 * Caffe's quick network for CIFAR-10 (examples/cifar10/cifar10_quick_train_test.prototxt); its pooling rounds up: 32,
 * 16, 8, 4. 145,578 parameters. Caffe draws weights from fixed deviations that suit pixels from 0 to 255; here they are
 * Xavier's, which suit any scale.
 */
#include "model/zoo/zoo.h"

typedef struct quick_options {
    cvy_image_options image;
} quick_options;

/* Below 8 the last pooling would have less than its 3 elements to choose from in all but one corner. */
static const cvy_field fields[] = {CVY_IMAGE_FIELDS(quick_options, 32, 8, 3, 10), {0}};

#define CAFFE_INIT "init: xavier, bias-init: zero"
#define CAFFE_POOL "kernel: 3, stride: 2, ceil-mode: yes"

static cvy_status add_layers(cvy_model *model, int64_t classes)
{
    int at = 0;
    CVY_TRY(cvy_model_append(model, "conv", "conv1", &at, "filters: 32, kernel: 5, padding: 2, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "max-pool", "pool1", &at, CAFFE_POOL));
    CVY_TRY(cvy_model_append(model, "relu", "relu1", &at, " "));
    CVY_TRY(cvy_model_append(model, "conv", "conv2", &at, "filters: 32, kernel: 5, padding: 2, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "relu", "relu2", &at, " "));
    CVY_TRY(cvy_model_append(model, "average-pool", "pool2", &at, CAFFE_POOL));
    CVY_TRY(cvy_model_append(model, "conv", "conv3", &at, "filters: 64, kernel: 5, padding: 2, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "relu", "relu3", &at, " "));
    CVY_TRY(cvy_model_append(model, "average-pool", "pool3", &at, CAFFE_POOL));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "ip1", &at, "outputs: 64, " CAFFE_INIT));
    CVY_TRY(cvy_model_append(model, "dense", "ip2", &at, "outputs: %lld, " CAFFE_INIT, (long long)classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const quick_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen->image.classes), model, model_out);
}

const cvy_zoo_entry cvy_zoo_cifar10_quick = {
    .name = "cifar10-quick",
    .help = "Caffe's quick network for CIFAR-10: 145,578 parameters",
    .fields = fields,
    .options_bytes = sizeof(quick_options),
    .build = build,
};
