/* A predictor in memory: private to the oracle's compute_predictor*.c and to its kinds. */
#ifndef CVY_ORACLE_COMPUTE_PREDICTOR_H
#define CVY_ORACLE_COMPUTE_PREDICTOR_H

#include "base/yaml.h"
#include "oracle/compute_internal.h"

/** Bounds of any number in a file: all are floats; what overflows in sums is bounded behind them. */
#define CVY_PREDICTOR_MOST 1e9

/** What a kernel is asked by. */
typedef struct cvy_predictor_question {
    const double *feature;
    const float *input; /**< what the predictor makes of the features: (feature - mean) / deviation */
    double flop, bytes;
    bool with_error; /**< it costs as much again, of some kinds */
} cvy_predictor_question;

/** A kind of predictor. */
typedef struct cvy_predictor_kind {
    const char *key; /**< of the file: what those of the kind have, and what the reader gets the value of */
    const char *is;  /**< what that is */

    /** Read the body; of a failure the predictor holds what cvy_predictor_destroy() releases. */
    cvy_status (*read)(const cvy_yaml_node *node, cvy_predictor *predictor);

    /** Make the body of the same numbers. */
    cvy_status (*make)(const cvy_predictor_spec *spec, cvy_predictor *predictor);

    /** Seconds, and the error where it is asked for. */
    void (*run)(const cvy_predictor *predictor, const cvy_predictor_question *question, cvy_prediction *said);

    /** Write the body, its key first. */
    void (*print)(const cvy_predictor_spec *spec, cvy_text *text);

    /** Release the body; it may be read in part, or not at all. */
    void (*clear)(cvy_predictor *predictor);
} cvy_predictor_kind;

extern const cvy_predictor_kind cvy_predictor_mlp, cvy_predictor_gaussian;

enum { CVY_MLP_MAX_WIDTH = 256, CVY_MLP_MAX_LAYERS = 8, CVY_MLP_MAX_NETS = 9 };

typedef struct cvy_mlp_layer {
    int inputs, outputs;
    float *weight; /**< owned: inputs x outputs, column by column of the file's */
    float *bias;   /**< behind the weights */
} cvy_mlp_layer;

typedef struct cvy_mlp_net {
    int layers;
    cvy_mlp_layer layer[CVY_MLP_MAX_LAYERS];
} cvy_mlp_net;

/** An ensemble. */
typedef struct cvy_mlp {
    int nets;
    cvy_mlp_net net[CVY_MLP_MAX_NETS];
} cvy_mlp;

struct cvy_predictor {
    int kernel;
    cvy_op_pass pass;
    cvy_precision precision;
    double error;
    cvy_roof roof;
    int inputs;
    int input[CVY_PREDICTOR_MAX_INPUTS]; /**< features */
    double mean[CVY_PREDICTOR_MAX_INPUTS], deviation[CVY_PREDICTOR_MAX_INPUTS]; /**< of the features */
    double low[CVY_PREDICTOR_MAX_INPUTS], high[CVY_PREDICTOR_MAX_INPUTS];       /**< that it was fitted to */
    const cvy_predictor_kind *kind;
    cvy_mlp mlp;
    struct cvy_gaussian *gaussian; /**< owned */
};

/** The value of a key. @retval CVY_ERR_INPUT it is missing; @p expected says what it is */
cvy_status cvy_predictor_find_key(const cvy_yaml_node *mapping, const char *key, const char *expected,
                                  const cvy_yaml_node **node_out);

/** Read a name out of @p count that @p name gives. @retval CVY_ERR_INPUT found, and all of them */
cvy_status cvy_predictor_read_word(const cvy_yaml_node *node, const char *what, const char *(*name)(int value),
                                   int count, int *value_out);

/** Read the numbers of a key, a list or a text. */
cvy_status cvy_predictor_read_numbers(const cvy_yaml_node *mapping, const char *key, int count, double minimum,
                                      double *value_out);

/** Write a key with a list of numbers, or of names. */
void cvy_predictor_print_row(const char *key, const double *number, int count, cvy_text *text);
void cvy_predictor_print_names(const char *key, const int *value, const char *(*name)(int value), int count,
                               cvy_text *text);

/** Write a line of a text of numbers, so far in. */
void cvy_predictor_print_line(int indent, const double *number, int count, cvy_text *text);

#endif
