/* Convoy: models. A model is a graph of layers; see docs/models.md for the file format and the zoo. */
#ifndef CONVOY_MODEL_H
#define CONVOY_MODEL_H

#include <stdint.h>

#include "convoy/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A finished model: every shape known, every layer checked. Immutable, so it may be shared by threads. */
typedef struct cvy_model cvy_model;

/**
 * Make a model from what a user writes: a zoo name with options ("resnet50:size=226,classes=10"), or the path of a
 * YAML file (it holds a '/' or ends in .yaml or .yml).
 *
 * Not collective. Takes no tensor memory.
 *
 * @param[in]  text       the name or path
 * @param[out] model_out  released by the caller with cvy_model_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT  unknown name, file, layer, option or shape; the message names it and the nearest match
 * @retval CVY_ERR_MEMORY memory is exhausted
 */
cvy_status cvy_model_open(const char *text, cvy_model **model_out);

/** Release a model and set the pointer to NULL; NULL is fine. Not collective. */
void cvy_model_destroy(cvy_model **model);

/** The name of a model, as given; for files the `name` in it. Valid as long as the model. */
const char *cvy_model_name(const cvy_model *model);

/** Count of trainable numbers, as torchvision counts parameters (running statistics excluded). */
int64_t cvy_model_parameters(const cvy_model *model);

/** Floating point operations of one sample's forward pass; a multiply-add counts 2. */
double cvy_model_forward_flop(const cvy_model *model);

#ifdef __cplusplus
}
#endif
#endif
