/*
 * A stream that can go on is in a stack. It is taken out and runs until a step of it has to wait, for another step or
 * for a join; it then hangs in a list there, and comes back into the stack when that is done. Times are sums and maxima
 * of times that are final, so the order in which streams are looked at does not matter, and each step is met at most
 * once for each of its dependencies. An iteration is finished before the next begins: none waits for a later one.
 */
#include "oracle/simulate.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

typedef struct stream_state {
    int end, next;  /* places in the order: behind its last step, and the one to run */
    int dependency; /* of the step to run: how many are done */
    int hanging;    /* the stream behind this one in the list that it hangs in; -1 */
    int cause;      /* of the step to run: what it starts behind so far; -1: nothing of this iteration */
    double time_s;  /* when it can start as far as is known */
    double free_s;  /* when the stream is */
    double saved_s; /* then; it grows until the next step */
} stream_state;

typedef struct join_state {
    int members, arrived;
    int hanging; /* streams that wait; -1 */
    int cause;
    double time_s;
} join_state;

struct cvy_simulator {
    size_t step_capacity, end_capacity, stream_capacity, join_capacity;
    int *order;   /* steps, stream by stream */
    int *hanging; /* of each step: streams that wait for it; -1 */
    int *cause;   /* of each step: what it started behind; -1: nothing of this iteration */
    double *start_s;
    double *end_s; /* a row for each iteration that may be looked back at; below 0: not done */
    stream_state *stream;
    int *ready;
    double *busy_s, *idle_s;
    join_state *join;
    const cvy_simulation *simulation;
    int readies, finished, rows, row; /* row: of the iteration that runs */
    int iteration;
};

cvy_status cvy_simulator_create(cvy_simulator **simulator_out)
{
    cvy_simulator *simulator = cvy_calloc(1, sizeof *simulator);
    if (!simulator) {
        return CVY_ERR_MEMORY;
    }
    *simulator_out = simulator;
    return CVY_OK;
}

void cvy_simulator_destroy(cvy_simulator **simulator)
{
    cvy_simulator *s = *simulator;
    if (s) {
        void *arrays[] = {s->order,  s->hanging, s->cause,  s->start_s, s->end_s,
                          s->stream, s->ready,   s->busy_s, s->idle_s,  s->join};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
            cvy_free(arrays[i]);
        }
        cvy_free(s);
        *simulator = NULL;
    }
}

/* Give an array room for more; false where memory is exhausted. What was in it is lost. */
static bool grow(void *array, size_t count, size_t size)
{
    void *larger = cvy_calloc(count, size);
    if (larger) {
        void *smaller;
        memcpy(&smaller, array, sizeof smaller);
        cvy_free(smaller);
        memcpy(array, &larger, sizeof larger);
    }
    return larger != NULL;
}

static cvy_status make_room(cvy_simulator *s, const cvy_simulation *simulation, int rows)
{
    size_t steps = (size_t)simulation->steps, streams = (size_t)simulation->streams, joins = (size_t)simulation->joins;
    bool fits = true;
    if (steps > s->step_capacity) {
        fits = grow(&s->order, steps, sizeof *s->order) && grow(&s->hanging, steps, sizeof *s->hanging) &&
               grow(&s->cause, steps, sizeof *s->cause) && grow(&s->start_s, steps, sizeof *s->start_s);
        s->step_capacity = fits ? steps : 0;
    }
    if (fits && steps * (size_t)rows > s->end_capacity) {
        fits = grow(&s->end_s, steps * (size_t)rows, sizeof *s->end_s);
        s->end_capacity = fits ? steps * (size_t)rows : s->end_capacity;
    }
    if (fits && streams > s->stream_capacity) {
        fits = grow(&s->stream, streams, sizeof *s->stream) && grow(&s->ready, streams, sizeof *s->ready) &&
               grow(&s->busy_s, streams, sizeof *s->busy_s) && grow(&s->idle_s, streams, sizeof *s->idle_s);
        s->stream_capacity = fits ? streams : 0;
    }
    if (fits && joins > s->join_capacity) {
        fits = grow(&s->join, joins, sizeof *s->join);
        s->join_capacity = fits ? joins : s->join_capacity;
    }
    return fits ? CVY_OK : CVY_ERR_MEMORY;
}

/* Whether all indices are in bounds; finds the largest distance. */
static cvy_status check(const cvy_simulation *simulation, int *distance_out)
{
    int distance = 0;
    CVY_REQUIRE(simulation->streams >= 1, CVY_ERR_ARG, "a simulation without streams");
    for (int i = 0; i < simulation->steps; i++) {
        const cvy_sim_step *step = &simulation->step[i];
        bool fits = step->stream >= 0 && step->stream < simulation->streams && step->join >= -1 &&
                    step->join < simulation->joins && step->first_dependency >= 0 && step->dependencies >= 0 &&
                    step->dependencies <= simulation->dependencies - step->first_dependency;
        CVY_REQUIRE(fits, CVY_ERR_ARG, "step %d of a simulation: a stream, join or dependency that there is not", i);
        CVY_REQUIRE(step->duration_s >= 0 && step->duration_s < INFINITY && step->burst_s >= 0, CVY_ERR_ARG,
                    "step %d of a simulation: %g seconds, expected 0 or more", i, step->duration_s);
    }
    for (int i = 0; i < simulation->dependencies; i++) {
        const cvy_dependency *dependency = &simulation->dependency[i];
        bool fits = dependency->step >= 0 && dependency->step < simulation->steps && dependency->distance >= 0 &&
                    dependency->distance <= CVY_SIM_MAX_DISTANCE;
        CVY_REQUIRE(fits, CVY_ERR_ARG, "dependency %d of a simulation: on step %d, %d iterations back", i,
                    dependency->step, dependency->distance);
        distance = dependency->distance > distance ? dependency->distance : distance;
    }
    *distance_out = distance;
    return CVY_OK;
}

/* Put the steps of each stream one behind the other: a sort by counting. */
static void order_steps(cvy_simulator *s, const cvy_simulation *simulation)
{
    memset(s->stream, 0, (size_t)simulation->streams * sizeof *s->stream);
    memset(s->busy_s, 0, (size_t)simulation->streams * sizeof *s->busy_s);
    for (int i = 0; i < simulation->joins; i++) {
        s->join[i] = (join_state){.hanging = -1};
    }
    for (int i = 0; i < simulation->steps; i++) {
        const cvy_sim_step *step = &simulation->step[i];
        s->stream[step->stream].end++;
        s->busy_s[step->stream] += step->duration_s;
        s->hanging[i] = -1;
        if (step->join >= 0) {
            s->join[step->join].members++;
        }
    }
    int place = 0;
    for (int i = 0; i < simulation->streams; i++) {
        int steps = s->stream[i].end;
        s->stream[i].end = place; /* grows to what it says */
        place += steps;
    }
    for (int i = 0; i < simulation->steps; i++) {
        s->order[s->stream[simulation->step[i].stream].end++] = i;
    }
}

/* What a step that begins now takes; what its stream saved up while it was idle (a token bucket) it takes less. */
static double find_duration(const cvy_simulator *s, const cvy_sim_step *step, stream_state *stream, double start_s)
{
    if (!s->simulation->saved_s) {
        return step->duration_s;
    }
    double saved_s = fmin(s->simulation->bucket_s, stream->saved_s + (start_s - stream->free_s));
    double spent_s = fmin(saved_s, step->burst_s);
    stream->saved_s = saved_s - spent_s;
    s->busy_s[step->stream] -= spent_s;
    return fmax(step->duration_s - spent_s, 0.0);
}

/* A step's times are known: note them, and let those who wait for it go on. */
static void finish(cvy_simulator *s, int index, double start_s, int cause)
{
    const cvy_sim_step *step = &s->simulation->step[index];
    stream_state *stream = &s->stream[step->stream];
    double end_s = start_s + find_duration(s, step, stream, start_s);
    s->start_s[index] = start_s;
    s->end_s[(size_t)s->row * (size_t)s->simulation->steps + (size_t)index] = end_s;
    s->cause[index] = cause;
    s->finished++;
    stream->free_s = stream->time_s = end_s;
    stream->cause = index;
    stream->next++;
    stream->dependency = 0;
    for (int i = s->hanging[index]; i >= 0; i = s->stream[i].hanging) {
        s->ready[s->readies++] = i;
    }
    s->hanging[index] = -1;
}

/* Raise the start of a stream's next step to the ends of what it waits for; false: one is not done, and it hangs. */
static bool await_dependencies(cvy_simulator *s, int index, stream_state *stream)
{
    const cvy_simulation *simulation = s->simulation;
    const cvy_sim_step *step = &simulation->step[index];
    size_t steps = (size_t)simulation->steps;
    for (; stream->dependency < step->dependencies; stream->dependency++) {
        const cvy_dependency *dependency = &simulation->dependency[step->first_dependency + stream->dependency];
        int row = s->row - dependency->distance;
        if (dependency->distance > s->iteration) {
            continue; /* before the first */
        }
        double end_s = s->end_s[(size_t)(row < 0 ? row + s->rows : row) * steps + (size_t)dependency->step];
        if (end_s < 0) {
            stream->hanging = s->hanging[dependency->step];
            s->hanging[dependency->step] = (int)(stream - s->stream);
            return false;
        }
        if (end_s > stream->time_s) {
            stream->time_s = end_s;
            stream->cause = dependency->distance ? -1 : dependency->step;
        }
    }
    return true;
}

/* A member has come to a join: the last one lets all of them start; true then, and its stream goes on. */
static bool arrive(cvy_simulator *s, join_state *join, stream_state *stream)
{
    if (!join->arrived++ || stream->time_s > join->time_s) {
        join->time_s = stream->time_s;
        join->cause = stream->cause;
    }
    if (join->arrived < join->members) {
        stream->hanging = join->hanging;
        join->hanging = (int)(stream - s->stream);
        return false;
    }
    for (int i = join->hanging, next; i >= 0; i = next) {
        next = s->stream[i].hanging;
        finish(s, s->order[s->stream[i].next], join->time_s, join->cause);
        s->ready[s->readies++] = i;
    }
    finish(s, s->order[stream->next], join->time_s, join->cause);
    join->arrived = 0;
    join->hanging = -1;
    return true;
}

static void run_stream(cvy_simulator *s, stream_state *stream)
{
    while (stream->next < stream->end) {
        int index = s->order[stream->next];
        if (!await_dependencies(s, index, stream)) {
            return;
        }
        int join = s->simulation->step[index].join;
        if (join < 0) {
            finish(s, index, stream->time_s, stream->cause);
        } else if (!arrive(s, &s->join[join], stream)) {
            return;
        }
    }
}

static cvy_status run_iteration(cvy_simulator *s)
{
    const cvy_simulation *simulation = s->simulation;
    double *end_s = s->end_s + (size_t)s->row * (size_t)simulation->steps;
    s->finished = s->readies = 0;
    for (int i = 0; i < simulation->steps; i++) {
        end_s[i] = -1;
    }
    for (int i = 0; i < simulation->streams; i++) {
        s->stream[i].next = i ? s->stream[i - 1].end : 0;
        s->stream[i].dependency = 0;
        s->stream[i].cause = -1;
        s->ready[s->readies++] = i;
    }
    while (s->readies) {
        run_stream(s, &s->stream[s->ready[--s->readies]]);
    }
    for (int i = 0; s->finished < simulation->steps && i < simulation->streams; i++) {
        const stream_state *stream = &s->stream[i];
        CVY_REQUIRE(stream->next == stream->end, CVY_ERR_INFEASIBLE,
                    "step %d of a simulation, on stream %d, waits for steps that wait for it", s->order[stream->next],
                    i);
    }
    return CVY_OK;
}

/* What streams have saved up: at the begin from who asks, at the end for them. */
static void take_saved(cvy_simulator *s)
{
    for (int i = 0; s->simulation->saved_s && i < s->simulation->streams; i++) {
        s->stream[i].saved_s = s->simulation->saved_s[i];
    }
}

static void give_saved(const cvy_simulator *s, double end_s)
{
    for (int i = 0; s->simulation->saved_s && i < s->simulation->streams; i++) {
        double saved_s = s->stream[i].saved_s + (end_s - s->stream[i].free_s);
        s->simulation->saved_s[i] = fmin(s->simulation->bucket_s, saved_s);
    }
}

static double find_last_end(const cvy_simulator *s)
{
    double last_s = 0;
    for (int i = 0; i < s->simulation->streams; i++) {
        last_s = fmax(last_s, s->stream[i].free_s);
    }
    return last_s;
}

cvy_status cvy_simulator_run(cvy_simulator *simulator, const cvy_simulation *simulation, int iterations,
                             cvy_simulated *result_out)
{
    int distance, last = iterations - 1, middle = last / 2;
    double middle_s = 0;
    CVY_REQUIRE(iterations >= 1 && (iterations == 1 || !simulation->saved_s), CVY_ERR_ARG,
                "a simulation of %d iterations, expected %s", iterations,
                iterations < 1 ? "at least 1" : "1 where streams save up");
    CVY_TRY(check(simulation, &distance));
    simulator->rows = (distance < last ? distance : last) + 1;
    CVY_TRY(make_room(simulator, simulation, simulator->rows));
    order_steps(simulator, simulation);
    simulator->simulation = simulation;
    take_saved(simulator);
    for (int iteration = 0; iteration < iterations; iteration++) {
        simulator->iteration = iteration;
        simulator->row = iteration % simulator->rows;
        CVY_TRY(run_iteration(simulator));
        if (iteration == middle) {
            middle_s = find_last_end(simulator);
        }
    }
    double makespan_s = find_last_end(simulator);
    give_saved(simulator, makespan_s);
    for (int i = 0; i < simulation->streams; i++) {
        simulator->idle_s[i] = makespan_s - iterations * simulator->busy_s[i];
    }
    *result_out = (cvy_simulated){
        .makespan_s = makespan_s,
        .period_s = last > middle ? (makespan_s - middle_s) / (last - middle) : makespan_s,
        .start_s = simulator->start_s,
        .end_s = simulator->end_s + (size_t)simulator->row * (size_t)simulation->steps,
        .busy_s = simulator->busy_s,
        .idle_s = simulator->idle_s,
    };
    return CVY_OK;
}

int cvy_simulator_critical_path(const cvy_simulator *simulator, int *path_out)
{
    int step = -1, count = 0;
    double last_s = -1;
    for (int i = 0; i < simulator->simulation->streams; i++) {
        const stream_state *stream = &simulator->stream[i];
        bool has_steps = stream->end > (i ? simulator->stream[i - 1].end : 0);
        if (has_steps && stream->free_s > last_s) {
            last_s = stream->free_s;
            step = simulator->order[stream->end - 1];
        }
    }
    for (; step >= 0; step = simulator->cause[step]) {
        path_out[count++] = step;
    }
    for (int i = 0; i < count / 2; i++) {
        int other = path_out[i];
        path_out[i] = path_out[count - 1 - i];
        path_out[count - 1 - i] = other;
    }
    return count;
}
