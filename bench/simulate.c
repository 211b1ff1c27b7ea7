/*
 * How many steps a second the oracle simulates on one core: 5,000 schedules of 700 steps, each handed over anew as a
 * search does. Usage: simulate [SCHEDULES]. Prints a line a kind of schedule, the median of nine rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "oracle/simulate.h"

enum { STEPS = 700, ROUNDS = 9, STAGES = 7, MICRO_BATCHES = 50 };

typedef struct problem {
    cvy_simulation simulation;
    cvy_sim_step step[STEPS];
    cvy_dependency dependency[3 * STEPS];
} problem;

static int add_step(problem *p, int stream, double duration_s)
{
    p->step[p->simulation.steps] = (cvy_sim_step){
        .duration_s = duration_s, .stream = stream, .join = -1, .first_dependency = p->simulation.dependencies};
    return p->simulation.steps++;
}

static void add_dependency(problem *p, int on, int distance)
{
    p->dependency[p->simulation.dependencies++] = (cvy_dependency){on, distance};
    p->step[p->simulation.steps - 1].dependencies++;
}

/* Data parallel: 140 layers, each a forward, two backwards, an exchange of gradients beside them, an update. */
static void make_data(problem *p)
{
    enum { LAYERS = STEPS / 5 };
    int update[LAYERS], last = -1;
    p->simulation.streams = 2;
    for (int layer = 0; layer < LAYERS; layer++) {
        update[layer] = 4 * LAYERS + layer; /* in the order in which backward gets there, below */
        int forward = add_step(p, 0, 1e-3 * (1 + layer % 7));
        add_dependency(p, update[layer], 1);
        if (layer) {
            add_dependency(p, last, 0);
        }
        last = forward;
    }
    int exchange[LAYERS];
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        int data = add_step(p, 0, 1e-3 * (1 + layer % 5));
        add_dependency(p, last, 0);
        add_dependency(p, layer, 0);
        int weights = add_step(p, 0, 1e-3 * (1 + layer % 5));
        add_dependency(p, last, 0);
        exchange[layer] = add_step(p, 1, 2e-3 * (1 + layer % 3));
        add_dependency(p, weights, 0);
        last = data;
    }
    for (int layer = 0; layer < LAYERS; layer++) {
        add_step(p, 0, 1e-4);
        add_dependency(p, exchange[layer], 0);
    }
}

/* A pipeline of 7 stages and 50 micro-batches, forward then backward; each a step on the stream of its stage. */
static void make_pipeline(problem *p)
{
    p->simulation.streams = STAGES;
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < 2 * MICRO_BATCHES; i++) {
            int self = add_step(p, stage, i < MICRO_BATCHES ? 1e-3 : 2e-3);
            int neighbour = i < MICRO_BATCHES ? stage - 1 : stage + 1;
            if (neighbour >= 0 && neighbour < STAGES) {
                add_dependency(p, 2 * MICRO_BATCHES * neighbour + i, 0);
            }
            if (i >= MICRO_BATCHES) {
                add_dependency(p, self - MICRO_BATCHES, 0);
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const char *name, void (*make)(problem *), int schedules)
{
    static problem p;
    double rate[ROUNDS], sum_s = 0;
    cvy_simulator *simulator = NULL;
    cvy_simulated result;
    p.simulation = (cvy_simulation){.step = p.step, .dependency = p.dependency};
    make(&p);
    cvy_status status = cvy_simulator_create(&simulator);
    for (int round = 0; round < ROUNDS && status == CVY_OK; round++) {
        double begin_s = cvy_clock_s();
        for (int i = 0; i < schedules && status == CVY_OK; i++) {
            p.step[i % p.simulation.steps].duration_s += 1e-6; /* no schedule is the one before */
            status = cvy_simulator_run(simulator, &p.simulation, 1, &result);
            sum_s += status == CVY_OK ? result.makespan_s : 0;
        }
        rate[round] = schedules * (double)p.simulation.steps / (cvy_clock_s() - begin_s);
    }
    cvy_simulator_destroy(&simulator);
    if (status != CVY_OK) {
        fprintf(stderr, "%s: %s\n", name, cvy_error_message());
        return 1;
    }
    qsort(rate, ROUNDS, sizeof *rate, compare);
    printf("%-9s %d schedules of %d steps, %d dependencies: %.1f million steps/s (%.3f s mean makespan)\n", name,
           schedules, p.simulation.steps, p.simulation.dependencies, rate[ROUNDS / 2] * 1e-6,
           sum_s / ROUNDS / schedules);
    return 0;
}

int main(int count, char **words)
{
    int schedules = count > 1 ? atoi(words[1]) : 5000;
    if (schedules < 1) {
        fprintf(stderr, "simulate: '%s' schedules, expected a whole number of at least 1\n", words[1]);
        return 2;
    }
    return measure("data", make_data, schedules) | measure("pipeline", make_pipeline, schedules);
}
