/*
 * The likeness of a Gaussian process by its samples: what makes them likeliest, their functions integrated out
 * (Rasmussen and Williams, "Gaussian processes for machine learning", 2006, chapter 5). Where samples are few for as
 * many lengths, the likeliest ones follow chance; so each logarithm is also drawn towards where it begins, by a normal
 * distribution about it.
 */
#ifndef CVY_CALIBRATE_GAUSSIAN_TRAINER_H
#define CVY_CALIBRATE_GAUSSIAN_TRAINER_H

#include "oracle/compute.h"

/** Samples as a trainer takes them; borrowed. */
typedef struct cvy_gaussian_lesson {
    int samples, inputs;
    const double *x; /**< samples x inputs, of mean 0 and deviation 1 */
    const double *y; /**< of mean 0 */
} cvy_gaussian_lesson;

/** A trainer with room for a lesson. */
typedef struct cvy_gaussian_trainer cvy_gaussian_trainer;

/**
 * Prepare for a lesson.
 *
 * @param[out] trainer_out released with cvy_gaussian_trainer_destroy()
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_gaussian_trainer_create(const cvy_gaussian_lesson *lesson, cvy_gaussian_trainer **trainer_out);

/** Release and set to NULL; NULL is fine. */
void cvy_gaussian_trainer_destroy(cvy_gaussian_trainer **trainer);

/** Logarithms of a likeness: of the length of each input, and then of spread, noise and slope. */
enum { CVY_GAUSSIAN_SPREAD, CVY_GAUSSIAN_NOISE, CVY_GAUSSIAN_SLOPE, CVY_GAUSSIAN_OTHERS };
enum { CVY_GAUSSIAN_MAX_LOGARITHMS = CVY_PREDICTOR_MAX_INPUTS + CVY_GAUSSIAN_OTHERS };

/** Where training begins, and what it is drawn towards. @param[out] logarithm inputs + CVY_GAUSSIAN_OTHERS */
void cvy_gaussian_trainer_begin(const cvy_gaussian_trainer *trainer, double *logarithm);

/**
 * How unlikely the samples and the logarithms are: minus ln of their density, but for a constant.
 *
 * @param[out] gradient_out by each logarithm
 * @retval CVY_ERR_INFEASIBLE the covariance is not positive definite
 */
cvy_status cvy_gaussian_trainer_judge(cvy_gaussian_trainer *trainer, const double *logarithm, double *unlikely_out,
                                      double *gradient_out);

/** Train: the same lesson gives the same likeness. @retval CVY_ERR_INFEASIBLE as above */
cvy_status cvy_gaussian_trainer_run(cvy_gaussian_trainer *trainer, cvy_likeness *likeness_out);

#endif
