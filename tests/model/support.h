/* What tests of models share. */
#ifndef CVY_TESTS_MODEL_SUPPORT_H
#define CVY_TESTS_MODEL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "model/model.h"

/* The last failure is one line that begins, or elsewhere speaks, as expected. */
static inline void assert_said(const char *words)
{
    const char *said = cvy_error_message();
    assert_null(strchr(said, '\n'));
    if (!strstr(said, words)) {
        assert_string_equal(said, words);
    }
}

static inline void assert_refused(const char *text, const char *words)
{
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open(text, &model), CVY_ERR_INPUT);
    assert_null(model);
    assert_said(words);
}

static inline cvy_model *open_model(const char *text)
{
    cvy_model *model = NULL;
    if (cvy_model_open(text, &model) != CVY_OK) {
        fail_msg("%s: %s", text, cvy_error_message());
    }
    return model;
}

static inline uint64_t hash_of(const char *text)
{
    cvy_model *model = open_model(text);
    uint64_t hash = cvy_model_hash(model);
    cvy_model_destroy(&model);
    return hash;
}

static inline void assert_shape(const cvy_shape *shape, const char *expected)
{
    char text[CVY_SHAPE_TEXT];
    assert_string_equal(cvy_shape_print(shape, text), expected);
}

static inline void assert_layer_shape(const cvy_model *model, const char *layer, const char *expected)
{
    int index = cvy_model_find_layer(model, layer);
    assert_true(index >= 0);
    assert_shape(&model->layer[index].output, expected);
}

static inline void assert_parameters(const char *text, int64_t expected)
{
    cvy_model *model = open_model(text);
    assert_int_equal(cvy_model_parameters(model), expected);
    cvy_model_destroy(&model);
}

/* A model of one input shape, to which layers are tried. */
static inline cvy_model *start_model(cvy_shape input)
{
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_create("test", &input, &model), CVY_OK);
    return model;
}

#endif
