/*
 * What a calibration measures: families of ops, of which shapes are drawn at random over the sizes that nets have, thin
 * slices as strategies make them among them. A drawing is a function of (seed, family, index) alone.
 */
#ifndef CVY_CALIBRATE_SHAPES_H
#define CVY_CALIBRATE_SHAPES_H

#include "calibrate/dice.h"
#include "op/op.h"

/** How much an op may need. */
typedef struct cvy_shape_limits {
    int block;                       /**< channels in a block of formats: 8 or 16 */
    double least_bytes, most_bytes;  /**< of all its operands together */
    double most_flop;                /**< convolutions, where most of the time goes, four times as many */
} cvy_shape_limits;

/** A shape, from which the ops of all passes of a family are made. */
typedef struct cvy_drawn_shape {
    cvy_op op;            /**< kind and parameters */
    cvy_shape x;          /**< input; parameter of an optimizer */
    int64_t filters;      /**< outputs of a convolution or dense layer; channels of a concat, or of what is sliced */
    bool biased, relu;    /**< with a bias; passes that may be a relu's too are */
    cvy_format input, output; /**< of activations, where they have channels and space */
} cvy_drawn_shape;

/** Ops that are drawn alike. */
typedef struct cvy_shape_family {
    const char *name;
    cvy_op_kind kind;
    unsigned passes; /**< 1u << CVY_PASS_… */
    int shapes;      /**< that a round has of it: more of those which nets spend their time in */
    void (*draw)(cvy_dice *dice, cvy_drawn_shape *shape);
} cvy_shape_family;

/** The i-th family; NULL past the last. */
const cvy_shape_family *cvy_shape_family_get(int i);

/** How many there are. */
int cvy_shape_families(void);

/**
 * Draw a shape of a family whose ops of all passes keep the limits.
 *
 * @param[in]  index      from 0: the how-many-eth
 * @param[out] shape_out  formats as a plan chooses them by rule
 * @retval CVY_ERR_INFEASIBLE no shape of a thousand keeps them; the message names the family
 */
cvy_status cvy_shape_draw(uint64_t seed, int family, int index, const cvy_shape_limits *limits,
                          cvy_drawn_shape *shape_out);

/**
 * Make the op of a pass of a drawn shape, with formats as a plan by rule has them.
 *
 * @param[out] op_out  checked
 * @retval CVY_ERR_INPUT, CVY_ERR_ARG the shape has no such op
 */
cvy_status cvy_shape_make_op(const cvy_drawn_shape *shape, cvy_op_pass pass, int block, cvy_op *op_out);

/** Bytes of all operands as they lie in memory, those of which an op takes a part (PICK, SLICE) whole. */
double cvy_shape_op_memory(const cvy_op *op);

#endif
