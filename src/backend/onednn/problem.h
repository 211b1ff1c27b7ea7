/*
 * An op as a primitive descriptor of the library: which primitive, in which formats, which operand is which argument.
 */
#ifndef CVY_BACKEND_ONEDNN_PROBLEM_H
#define CVY_BACKEND_ONEDNN_PROBLEM_H

#include "backend/onednn/shim.h"
#include "op/op.h"

typedef struct cvy_onednn_problem {
    dnnl_primitive_desc_t description;
    cvy_op op;                      /**< as the library is told it: perhaps with more channels; see blocks.h */
    bool padded;                    /**< it is */
    int argument[CVY_MAX_OPERANDS]; /**< DNNL_ARG_… of each operand, in the op's order */
} cvy_onednn_problem;

/** For cvy_onednn_problem_create(): every operand lies as its format says. */
enum { CVY_ONEDNN_IMPOSED = -1 };

/**
 * Find the primitive of an op; where the library has none and the op's blocks are not full, that over whole blocks.
 *
 * @param[in]  free         index of the one operand whose format the library may choose, or CVY_ONEDNN_IMPOSED
 * @param[out] problem_out  released with cvy_onednn_problem_clear()
 * @retval CVY_ERR_UNSUPPORTED the library has none, or one that is left to the backends that follow (see problem.c)
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_onednn_problem_create(const cvy_op *op, int free, cvy_onednn_problem *problem_out);

/** Which dimensions of operand @p i the library counts the other way round, as in cvy_onednn_layout; 0: none. */
int cvy_onednn_find_swap(const cvy_op *op, int i);

/** Release what a problem owns. */
void cvy_onednn_problem_clear(cvy_onednn_problem *problem);

/** The library's name of the implementation ("jit:avx2"); valid while the problem is. */
const char *cvy_onednn_problem_implementation(const cvy_onednn_problem *problem);

#endif
