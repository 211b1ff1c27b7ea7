/* Scores of classes at one position: what the losses of classes have in common. */
#ifndef CVY_BACKEND_REF_SOFTMAX_H
#define CVY_BACKEND_REF_SOFTMAX_H

#include <math.h>

#include "backend/ref/ref.h"

/** Offset of class 0 at position d,h,w of sample n. */
static inline int64_t cvy_ref_scores(const cvy_ref_tensor *x, int64_t n, const int64_t position[3])
{
    return x->at[CVY_REF_N][n] + cvy_ref_point(x, CVY_REF_D, position);
}

/** The score of class @p c, at an offset that cvy_ref_scores() gave. */
static inline double cvy_ref_score(const cvy_ref_tensor *x, int64_t at, int64_t c)
{
    return cvy_ref_load(x, at + x->at[CVY_REF_C][c]);
}

/** The class of the largest score, the first of equals. */
static inline int64_t cvy_ref_find_winner(const cvy_ref_tensor *x, int64_t at)
{
    int64_t winner = 0;
    for (int64_t c = 1; c < x->extent[CVY_REF_C]; c++) {
        winner = cvy_ref_score(x, at, c) > cvy_ref_score(x, at, winner) ? c : winner;
    }
    return winner;
}

/** The sum over classes of exp(x - largest). */
static inline double cvy_ref_sum_powers(const cvy_ref_tensor *x, int64_t at, double largest)
{
    double sum = 0.0;
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        sum += exp(cvy_ref_score(x, at, c) - largest);
    }
    return sum;
}

/** Positions of a sample: 1 of x n,c. */
static inline int64_t cvy_ref_count_positions(const cvy_ref_tensor *x)
{
    return x->extent[CVY_REF_D] * x->extent[CVY_REF_H] * x->extent[CVY_REF_W];
}

/** Check the label of a valid sample. */
cvy_status cvy_ref_check_label(int32_t label, int64_t n, int64_t classes);

#endif
