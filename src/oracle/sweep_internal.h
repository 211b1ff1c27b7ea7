/* What the files of the sweep share. */
#ifndef CVY_ORACLE_SWEEP_INTERNAL_H
#define CVY_ORACLE_SWEEP_INTERNAL_H

#include "oracle/estimate_internal.h"
#include "oracle/sweep.h"

/** A setting ready to be priced: a point's, or one beside the machine's own values for an elasticity. */
typedef struct cvy_sweep_scene {
    cvy_machine machine;        /**< a copy; its texts are the other one's */
    cvy_oracle_options options;
    cvy_oracle *oracle;
    double batch;               /**< as the batch is given; 0: as `probe` says */
    int probe;                  /**< of the batch: one step less, -1, or more, 1 */
} cvy_sweep_scene;

/** A strategy on a number of ranks. */
typedef struct cvy_sweep_choice {
    cvy_strategy strategy;
    bool given;                 /**< else the search looks at it */
    char why_not[CVY_WHY_TEXT]; /**< not empty: it is none on so many ranks */
    cvy_kept_plans kept;
    cvy_estimate own;           /**< at the machine's own values */
} cvy_sweep_choice;

enum { CVY_SWEEP_MOST_CHOICES = 64 };

typedef struct cvy_sweeping {
    const cvy_model *model;
    const cvy_machine *machine;
    cvy_sweep *sweep;
    cvy_sweep_scene *scene;     /**< of settings; then two for each parameter that has an elasticity, less and more */
    int scenes;
    cvy_sweep_choice *choice;   /**< on the number of ranks at hand */
    int choices;
} cvy_sweeping;

/** How much less and more of a rate is taken for an elasticity. */
#define CVY_SWEEP_PROBE 1.05

/** Parameters that have an elasticity: the first ones. */
enum { CVY_SWEEP_PROBED = CVY_VARIED_MEMORY };

/** List the settings of the options. @retval CVY_ERR_INPUT too many points */
cvy_status cvy_sweep_list_settings(cvy_sweeping *s);

/** Make the scenes of all settings, and those for elasticities. */
cvy_status cvy_sweep_set_scenes(cvy_sweeping *s);

/** Samples of a scene over all ranks. @retval CVY_ERR_INPUT less than one, or too many */
cvy_status cvy_sweep_find_batch(const cvy_sweeping *s, const cvy_sweep_scene *scene, int64_t ranks, int64_t *batch_out);

/** List the strategies to look at on a number of ranks: those given, and those of the search. */
cvy_status cvy_sweep_list_choices(cvy_sweeping *s, int64_t ranks);

/** Of those of the search, keep the most promising, by their estimates at the machine's own values. */
void cvy_sweep_shorten_choices(cvy_sweeping *s);

/** Release what choices keep. */
void cvy_sweep_clear_choices(cvy_sweeping *s);

/** Elasticities from images/s with less and more of each parameter, and what they name. */
double cvy_sweep_divide(double less, double more, double ratio);
void cvy_sweep_name_bottlenecks(cvy_sweep *sweep);

#endif
