/*
 * Plan files: all that was decided of a training over many ranks, in YAML for people and for whoever goes on from it.
 * The plan.yaml of a run is such a file without the machine, on one rank without layers. docs/plan.md has the format.
 */
#ifndef CVY_PLAN_PLAN_FILE_H
#define CVY_PLAN_PLAN_FILE_H

#include "machine/machine.h"
#include "plan/distribution.h"
#include "plan/plan.h"

/** What is decided. Texts and arrays are borrowed; of a file that was read, they are the file's. */
typedef struct cvy_plan_decisions {
    const char *model;               /**< as cvy_model_open() takes it */
    const char *machine;             /**< as cvy_machine_open() takes it; NULL: not said */
    cvy_strategy strategy;           /**< not automatic */
    int64_t batch;                   /**< samples of an iteration, all ranks */
    cvy_precision precision;
    cvy_optimizer optimizer;         /**< of its parameters those that change a schedule */
    cvy_recompute recompute;
    bool shard_optimizer;            /**< as in cvy_plan_parallel */
    unsigned norm_axes;              /**< as in cvy_plan_parallel */
    bool norms_given;                /**< `norm_axes` holds */
    int64_t bucket_bytes;            /**< as in cvy_plan_parallel; below 0: the machine's */
    const cvy_layer_choice *choices; /**< one for each layer; NULL: all as the strategy says */
    const int *stages;               /**< as in cvy_distribution_options; NULL: one stage, or balanced */
    const cvy_layer_formats *formats; /**< one for each layer; NULL: not decided */
    int block;                       /**< channels in a block of the formats: 8 or 16 */
} cvy_plan_decisions;

/** A file that was read. */
typedef struct cvy_plan_file {
    cvy_plan_decisions decisions;
    cvy_model *model;             /**< opened as the file says */
    char *model_text, *machine_text;
    cvy_layer_choice *choices;
    int *stages;
    cvy_layer_formats *formats;
} cvy_plan_file;

/**
 * Save what is decided, with the cut of each layer and why it is not cut further. Not collective.
 *
 * @param[in] distribution  of the decisions; its stages are saved
 * @retval CVY_ERR_IO       the file could not be written
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_plan_file_save(const cvy_plan_decisions *decisions, const cvy_distribution *distribution,
                              const char *path);

/**
 * Read a plan file, which may have been edited, cut off or be hostile, and open its model. Not collective.
 *
 * @param[in]  model      to open in place of the file's, such as a model file that has moved; NULL: the file's
 * @param[out] file_out   released with cvy_plan_file_clear(); untouched on failure
 * @retval CVY_ERR_INPUT  the file is no plan, or not of that model: file, line, found, expected
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_plan_file_load(const char *path, const char *model, cvy_plan_file *file_out);

/** Release what a file owns and empty it. */
void cvy_plan_file_clear(cvy_plan_file *file);

#endif
