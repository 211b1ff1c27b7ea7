/* The zoo: one line each. */
#include "model/model.h"

#define FOR_EACH_MODEL(MODEL) \
    MODEL(lenet5)             \
    MODEL(cifar10_quick)      \
    MODEL(alexnet)            \
    MODEL(vgg11)              \
    MODEL(vgg13)              \
    MODEL(vgg16)              \
    MODEL(vgg19)              \
    MODEL(resnet18)           \
    MODEL(resnet34)           \
    MODEL(resnet50)           \
    MODEL(resnet101)          \
    MODEL(resnet152)          \
    MODEL(resnext50_32x4d)    \
    MODEL(resnext101_32x4d)   \
    MODEL(cosmoflow)          \
    MODEL(googlenet)          \
    MODEL(densenet121)        \
    MODEL(inception_v3)       \
    MODEL(se_resnet50)        \
    MODEL(se_resnext101_32x4d) \
    MODEL(mobilenet_v2)       \
    MODEL(efficientnet_b0)    \
    MODEL(efficientnet_b4)    \
    MODEL(unet3d)

#define DECLARE(model) extern const cvy_zoo_entry cvy_zoo_##model;
#define LIST(model) &cvy_zoo_##model,

FOR_EACH_MODEL(DECLARE)
static const cvy_zoo_entry *const models[] = {FOR_EACH_MODEL(LIST)};
enum { MODELS = sizeof models / sizeof models[0] };

const cvy_zoo_entry *cvy_zoo_get(int i) { return i >= 0 && i < MODELS ? models[i] : NULL; }
