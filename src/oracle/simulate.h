/*
 * Discrete-event simulation of steps: streams run theirs in order, a step starts when its stream is free and what it
 * waits for is done, and a join starts its members, on different streams, together. Streams of several classes of ranks
 * (the stages of a pipeline) lie side by side in one problem.
 */
#ifndef CVY_ORACLE_SIMULATE_H
#define CVY_ORACLE_SIMULATE_H

#include "plan/schedule.h"

/** A step with its seconds. */
typedef struct cvy_sim_step {
    double duration_s; /**< at least 0 */
    double burst_s;    /**< at least 0: of these, what a stream that has saved up as much spares */
    int stream;
    int join;          /**< starts when all members of this join can; -1: on its own */
    int first_dependency, dependencies;
} cvy_sim_step;

/**
 * What is simulated; borrowed. On a stream, steps run in the order in which they stand here; between streams the order
 * says nothing. Each stream and each iteration of it is a part of one endless run: an iteration begins on a stream when
 * the one before has ended there.
 */
typedef struct cvy_simulation {
    int steps, dependencies, streams, joins;
    const cvy_sim_step *step;
    const cvy_dependency *dependency; /**< distance: iterations back, at most CVY_SIM_MAX_DISTANCE */
    double bucket_s; /**< seconds that a stream saves up while it is idle, at most; a step spends them */
    double *saved_s; /**< of each stream: in, at the begin; out, at the end of the run; NULL: nothing saves up */
} cvy_simulation;

enum { CVY_SIM_MAX_DISTANCE = 64 };

/** What a run gave. Arrays are the simulator's, until its next run. */
typedef struct cvy_simulated {
    double makespan_s;             /**< from the first start to the last end, over all iterations */
    double period_s;               /**< seconds an iteration in the second half of the run: the steady state's, where
                                        it has come by then; the makespan where there is one iteration */
    const double *start_s, *end_s; /**< of each step in the last iteration */
    const double *busy_s;          /**< of each stream in one iteration */
    const double *idle_s;          /**< of each stream over the run: the makespan without what it is busy */
} cvy_simulated;

/** Memory for simulations; it grows with the largest and is then used again. */
typedef struct cvy_simulator cvy_simulator;

/** Make a simulator. @retval CVY_ERR_MEMORY */
cvy_status cvy_simulator_create(cvy_simulator **simulator_out);

/** Release; NULL is fine. */
void cvy_simulator_destroy(cvy_simulator **simulator);

/**
 * Simulate. Not collective. Takes time proportional to steps and dependencies, and no memory after larger simulations.
 *
 * @param[in]  simulation  of at least one stream; borrowed until the next run
 * @param[in]  iterations  at least 1, and 1 where streams save up; what an iteration before the first would have done
 *                         is done
 * @param[out] result_out  untouched on failure
 * @retval CVY_ERR_ARG     no stream or iteration, an index out of bounds, seconds below 0 or not finite
 * @retval CVY_ERR_INFEASIBLE  steps wait for each other; one that waits in vain is named
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_simulator_run(cvy_simulator *simulator, const cvy_simulation *simulation, int iterations,
                             cvy_simulated *result_out);

/**
 * The critical path through the last iteration of the last run, which must have succeeded: steps each of which started
 * when the one before it ended; the last is the one that ended last. Of a join, the member that came last counts.
 *
 * @param[out] path_out  room for as many steps as there are
 * @return steps of the path
 */
int cvy_simulator_critical_path(const cvy_simulator *simulator, int *path_out);

#endif
