/*
 * AlexNet in one column (Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
 * arXiv:1404.5997), with torchvision's module paths and initialisation. 61,100,840 parameters.
 */
#include "model/zoo/zoo.h"

typedef struct alexnet_options {
    cvy_image_options image;
    double dropout;
    int64_t hidden;
} alexnet_options;

/* 63 is the least of which three poolings leave something: 63 15 7 3 1. */
static const cvy_field fields[] = {
    CVY_IMAGE_FIELDS(alexnet_options, 224, 63, 3, 1000),
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(alexnet_options, dropout), .value = 0.5,
     .minimum = 0, .maximum = 0.99, .help = "share that the dropouts before the dense layers drop"},
    {.name = "hidden", .type = CVY_FIELD_INT, .offset = offsetof(alexnet_options, hidden), .value = 4096, .minimum = 1,
     .maximum = CVY_MAX_CHANNELS, .help = "outputs of the two dense layers before the last"},
    {0},
};

#define CONV "init: uniform, "

static cvy_status add_features(cvy_model *model, int *at)
{
    CVY_TRY(cvy_model_append(model, "conv", "features.0", at, CONV "filters: 64, kernel: 11, stride: 4, padding: 2"));
    CVY_TRY(cvy_model_append(model, "relu", "features.1", at, " "));
    CVY_TRY(cvy_model_append(model, "max-pool", "features.2", at, "kernel: 3, stride: 2"));
    CVY_TRY(cvy_model_append(model, "conv", "features.3", at, CONV "filters: 192, kernel: 5, padding: 2"));
    CVY_TRY(cvy_model_append(model, "relu", "features.4", at, " "));
    CVY_TRY(cvy_model_append(model, "max-pool", "features.5", at, "kernel: 3, stride: 2"));
    CVY_TRY(cvy_model_append(model, "conv", "features.6", at, CONV "filters: 384, kernel: 3, padding: 1"));
    CVY_TRY(cvy_model_append(model, "relu", "features.7", at, " "));
    CVY_TRY(cvy_model_append(model, "conv", "features.8", at, CONV "filters: 256, kernel: 3, padding: 1"));
    CVY_TRY(cvy_model_append(model, "relu", "features.9", at, " "));
    CVY_TRY(cvy_model_append(model, "conv", "features.10", at, CONV "filters: 256, kernel: 3, padding: 1"));
    CVY_TRY(cvy_model_append(model, "relu", "features.11", at, " "));
    return cvy_model_append(model, "max-pool", "features.12", at, "kernel: 3, stride: 2");
}

static cvy_status add_classifier(cvy_model *model, const alexnet_options *options, int *at)
{
    long long hidden = options->hidden;
    CVY_TRY(cvy_model_append(model, "adaptive-pool", "avgpool", at, "output: 6"));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", at, " "));
    CVY_TRY(cvy_model_append(model, "dropout", "classifier.0", at, "probability: %g", options->dropout));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.1", at, "outputs: %lld", hidden));
    CVY_TRY(cvy_model_append(model, "relu", "classifier.2", at, " "));
    CVY_TRY(cvy_model_append(model, "dropout", "classifier.3", at, "probability: %g", options->dropout));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.4", at, "outputs: %lld", hidden));
    CVY_TRY(cvy_model_append(model, "relu", "classifier.5", at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.6", at, "outputs: %lld", (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const alexnet_options *chosen = options;
    cvy_model *model = NULL;
    int at = 0;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    cvy_status status = add_features(model, &at);
    return cvy_zoo_end(status == CVY_OK ? add_classifier(model, chosen, &at) : status, model, model_out);
}

const cvy_zoo_entry cvy_zoo_alexnet = {
    .name = "alexnet",
    .help = "AlexNet in one column, torchvision's: 61,100,840 parameters",
    .fields = fields,
    .options_bytes = sizeof(alexnet_options),
    .build = build,
};
