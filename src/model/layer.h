/*
 * Layer kinds. A kind is one file in model/layers and one line in its table: a table of option fields, shapes,
 * parameters, and the ops of its passes. The plan binds the operands of those ops to buffers by role, so a kind knows
 * nothing of buffers, ranks or backends.
 */
#ifndef CVY_MODEL_LAYER_H
#define CVY_MODEL_LAYER_H

#include "base/yaml.h"
#include "op/op.h"

enum { CVY_MAX_INPUTS = 4, CVY_MAX_LAYER_PARAMETERS = 4, CVY_MAX_LAYER_PASSES = 3 };

/** Type of an option of a layer. */
typedef enum cvy_field_type {
    CVY_FIELD_INT,    /**< int64_t */
    CVY_FIELD_REAL,   /**< double */
    CVY_FIELD_BOOL,   /**< bool */
    CVY_FIELD_AXES,   /**< cvy_axes: k, [kh, kw] or [kd, kh, kw] */
    CVY_FIELD_PADS,   /**< cvy_pads: p, [ph, pw], [pd, ph, pw], or pairs [low, high] in place of numbers */
    CVY_FIELD_SHAPE,  /**< cvy_shape: [c, h, w] or [c, d, h, w] or [c]; stored with a leading n = 1 */
    CVY_FIELD_CHOICE, /**< int: index into choices */
} cvy_field_type;

/** One number for all spatial axes (count 1), or one an axis in h,w / d,h,w order. */
typedef struct cvy_axes {
    int count;
    int64_t value[3];
} cvy_axes;

/** Padding at the low and the high end; counted as cvy_axes. */
typedef struct cvy_pads {
    int count;
    int64_t before[3];
    int64_t after[3];
} cvy_pads;

/** An option that a layer kind takes, by the name that YAML and the zoo use. */
typedef struct cvy_field {
    const char *name;
    cvy_field_type type;
    size_t offset;              /**< in the kind's options struct */
    bool required;
    double minimum, maximum;    /**< numbers, inclusive, every component */
    double value;               /**< default: number, bool, every axis, index of the choice; bounds do not bind it */
    const char *const *choices; /**< NULL-terminated */
    const char *help;           /**< one line, with unit */
} cvy_field;

/** How a parameter is born. Numbers come from Philox by (seed, parameter, element). */
typedef enum cvy_init_kind {
    CVY_INIT_ZERO,
    CVY_INIT_ONE,
    CVY_INIT_KAIMING, /**< normal, variance 2 / fan_out */
    CVY_INIT_XAVIER,  /**< uniform in +-sqrt(6 / (fan_in + fan_out)) */
    CVY_INIT_UNIFORM, /**< uniform in +-1 / sqrt(fan_in): PyTorch's default for dense layers and biases */
    CVY_INIT_NORMAL,  /**< normal, standard deviation `scale` */
} cvy_init_kind;

typedef struct cvy_init {
    cvy_init_kind kind;
    double fan_in, fan_out;
    double scale;
} cvy_init;

/** What a layer says of one parameter or persistent statistic. */
typedef struct cvy_parameter_spec {
    const char *suffix;  /**< "weight", "bias", "running_mean", "running_var": state_dict's */
    cvy_role role;       /**< W, B, RUNNING_MEAN, RUNNING_VARIANCE */
    cvy_shape shape;     /**< as in a state_dict: o,i/g,(d),h,w; [out,in]; [c] */
    int64_t groups;      /**< above 1, ops see it as g,o/g,i/g,… (the same elements in the same order) */
    bool trainable;
    cvy_init init;
} cvy_parameter_spec;

/** What becomes of a layer's tensors. */
typedef enum cvy_flow {
    CVY_FLOW_OPS,    /**< ops make y from x, and dx from dy */
    CVY_FLOW_SUM,    /**< ops make y; the gradient of every input is dy itself */
    CVY_FLOW_VIEW,   /**< y is x in another shape, plain order (flatten); so is the gradient */
    CVY_FLOW_SOURCE, /**< y is the batch */
    CVY_FLOW_LOSS,   /**< ops make the loss from x and the labels, and dx from them */
    CVY_FLOW_CONCAT, /**< ops make y; the gradient of every input is its channels of dy */
} cvy_flow;

struct cvy_layer;

/** A kind of layer. Functions may assume what cvy_model_add() has checked: number of inputs, fields within bounds. */
typedef struct cvy_layer_kind {
    const char *name;
    const char *help;            /**< one line */
    const cvy_field *fields;     /**< ends with a NULL name; NULL where there are none */
    size_t options_bytes;
    int min_inputs, max_inputs;
    cvy_flow flow;
    bool any_format;             /**< takes x in whatever format and gives y in the same */
    bool cheap;                  /**< moves bytes rather than computes: recomputation makes its output again first */
    /** Output of one sample (n = 1) from inputs of one sample; words what does not fit (without the layer's name). */
    cvy_status (*infer)(const struct cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out);
    /** Optional. Fills at most CVY_MAX_LAYER_PARAMETERS; default: none. */
    cvy_status (*parameters)(const struct cvy_layer *layer, const cvy_shape *input, cvy_parameter_spec *spec_out,
                             int *count_out);
    /** Kind, pass and parameters of an op (no operands), for a first input of shape @p x, n included; NULL with VIEW,
     * SOURCE. */
    void (*make_op)(const struct cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out);
    /** Passes in the order in which they run. No forward or inference pass (dropout's inference): y is x. */
    int forward_passes, inference_passes, backward_passes;
    cvy_op_pass forward[CVY_MAX_LAYER_PASSES];
    cvy_op_pass inference[CVY_MAX_LAYER_PASSES];
    cvy_op_pass backward[CVY_MAX_LAYER_PASSES];
} cvy_layer_kind;

/** A layer of a model. Its output is the tensor that carries its name. */
typedef struct cvy_layer {
    const cvy_layer_kind *kind;
    char *name;
    int index;                  /**< in the model */
    int line;                   /**< in the model file; 0 from the zoo */
    int inputs;
    int input[CVY_MAX_INPUTS];  /**< indices of layers before this one */
    void *options;              /**< the kind's struct */
    cvy_shape output;           /**< of one sample, n = 1; of a loss its two numbers, whatever n */
    int parameters;
    int first_parameter;        /**< in the model's list */
} cvy_layer;

/** Find a kind by its name; NULL if absent. */
const cvy_layer_kind *cvy_layer_kind_find(const char *name);

/** The i-th kind; NULL past the last. */
const cvy_layer_kind *cvy_layer_kind_get(int i);

/** Whether a kind commits statistics of the batch that it saw (batch norm): then parts of a batch are not the whole. */
bool cvy_layer_kind_commits(const cvy_layer_kind *kind);

/**
 * Fill @p options (zeroed, of the kind's size) from a mapping, defaults included.
 *
 * @param[in] mapping  NULL where all defaults hold
 * @param[in] owner    whose options they are, for messages ("layer conv1"); NULL where the file says enough
 * @param[in] skip     keys that belong to the caller, NULL-terminated; may be NULL
 * @retval CVY_ERR_INPUT unknown key (the nearest is named), missing one, wrong type, out of bounds: with file and line
 */
cvy_status cvy_fields_parse(const cvy_field *fields, const cvy_yaml_node *mapping, const char *owner,
                            const char *const *skip, void *options);

/**
 * Bring window options to d,h,w order for a tensor of @p spatial axes (2 or 3), d neutral in 2-D.
 *
 * @param[in] dilation  NULL where there is none
 * @retval CVY_ERR_INPUT a list has neither one nor @p spatial entries
 */
cvy_status cvy_window_resolve(const cvy_axes *kernel, const cvy_axes *stride, const cvy_axes *dilation,
                              const cvy_pads *padding, int spatial, cvy_window *window_out);

#endif
