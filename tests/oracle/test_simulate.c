/* Simulations by hand, pipelines against the formula of their bubble, random graphs against a naive longest path. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "oracle/simulate.h"

enum { CASES = 4000, MAX_STEPS = 1200, MAX_DEPENDENCIES = 4000, MAX_STREAMS = 8, MAX_JOINS = MAX_STEPS };

static int64_t draw(uint32_t seed, uint32_t place, int64_t low, int64_t high)
{
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, place);
    return low + (int64_t)(words.v[0] % (uint64_t)(high - low + 1));
}

/* A problem that grows step by step. */
typedef struct problem {
    cvy_simulation simulation;
    cvy_sim_step step[MAX_STEPS];
    cvy_dependency dependency[MAX_DEPENDENCIES];
} problem;

static problem shared;

static problem *begin(int streams)
{
    shared.simulation = (cvy_simulation){.streams = streams, .step = shared.step, .dependency = shared.dependency};
    return &shared;
}

static int add_step(problem *p, int stream, double duration_s)
{
    p->step[p->simulation.steps] = (cvy_sim_step){
        .duration_s = duration_s, .stream = stream, .join = -1, .first_dependency = p->simulation.dependencies};
    return p->simulation.steps++;
}

/* Of the step that was added last. */
static void add_dependency(problem *p, int on, int distance)
{
    p->dependency[p->simulation.dependencies++] = (cvy_dependency){on, distance};
    p->step[p->simulation.steps - 1].dependencies++;
}

static cvy_simulator *simulator;

static cvy_simulated run(const problem *p, int iterations)
{
    cvy_simulated result;
    cvy_status status = cvy_simulator_run(simulator, &p->simulation, iterations, &result);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return result;
}

/*
 * Backward of three layers, 2 s each, 0-6; the exchange of each takes 3 s on a stream of its own: 2-5, 5-8, 8-11. So
 * computing is idle for 5 s, the network for 2, and the path is the first backward, then the exchanges.
 */
static void test_exchanges_overlap_the_rest_of_backward(void **state)
{
    (void)state;
    problem *p = begin(2);
    for (int layer = 0; layer < 3; layer++) {
        int backward = add_step(p, 0, 2);
        add_step(p, 1, 3);
        add_dependency(p, backward, 0);
    }
    cvy_simulated result = run(p, 1);
    static const double start_s[] = {0, 2, 2, 5, 4, 8};
    assert_memory_equal(result.start_s, start_s, sizeof start_s);
    assert_true(result.makespan_s == 11 && result.period_s == 11 && result.end_s[5] == 11);
    assert_true(result.idle_s[0] == 5 && result.idle_s[1] == 2 && result.busy_s[0] == 6 && result.busy_s[1] == 9);
    int path[6];
    assert_int_equal(cvy_simulator_critical_path(simulator, path), 4);
    assert_memory_equal(path, ((int[]){0, 1, 3, 5}), 4 * sizeof *path);
}

/*
 * Computing for 3, 1 and 3 s; behind the first two a message of 2 s and one of 4. The link saves up to 2.5 s while it
 * is idle: 3 s give 2.5, of which the first spends 2 and takes no time, 3-3; half a second and that from 3 to 4 are
 * 1.5, but of the second's 4 s only 1 may be spared: 4-7. Then 0.5 and 0, at 7, are left.
 */
static void test_a_link_that_is_idle_saves_up(void **state)
{
    (void)state;
    problem *p = begin(2);
    double saved_s[2] = {0.0, 0.0};
    p->simulation.bucket_s = 2.5;
    p->simulation.saved_s = saved_s;
    int first = add_step(p, 0, 3);
    p->step[add_step(p, 1, 2)].burst_s = 2;
    add_dependency(p, first, 0);
    int second = add_step(p, 0, 1);
    p->step[add_step(p, 1, 4)].burst_s = 1;
    add_dependency(p, second, 0);
    add_step(p, 0, 3);
    cvy_simulated result = run(p, 1);
    static const double start_s[] = {0, 3, 3, 4, 4}, end_s[] = {3, 3, 4, 7, 7};
    assert_memory_equal(result.start_s, start_s, sizeof start_s);
    assert_memory_equal(result.end_s, end_s, sizeof end_s);
    assert_true(result.makespan_s == 7 && result.busy_s[1] == 3 && result.idle_s[1] == 4);
    assert_true(saved_s[1] == 0.5);
    saved_s[1] = 0.0; /* without a pause 0-2 and 2-6; with what was saved up before 0-0 and 1-4 */
    p->step[first].duration_s = 0;
    assert_true(run(p, 1).makespan_s == 6);
    saved_s[1] = 2;
    assert_true(run(p, 1).makespan_s == 4);
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 2, &result), CVY_ERR_ARG);
}

/*
 * Two classes of ranks meet in a collective of 4 s: one comes after 1 s, the other after 6, so both run it 6-10. The
 * path is the late one's.
 */
static void test_a_join_waits_for_its_last_member(void **state)
{
    (void)state;
    problem *p = begin(2);
    p->simulation.joins = 1;
    for (int stream = 0; stream < 2; stream++) {
        add_step(p, stream, stream ? 6 : 1);
        p->step[add_step(p, stream, 4)].join = 0;
    }
    add_step(p, 0, 2);
    cvy_simulated result = run(p, 1);
    static const double start_s[] = {0, 6, 0, 6, 10};
    assert_memory_equal(result.start_s, start_s, sizeof start_s);
    int path[5];
    assert_int_equal(cvy_simulator_critical_path(simulator, path), 3);
    assert_memory_equal(path, ((int[]){2, 1, 4}), 3 * sizeof *path);
}

enum { MAX_STAGES = 8, MAX_MICRO_BATCHES = 16 };

/* The n-th thing that a stage does: micro-batches forward first, or one forward, one backward when it is filled. */
static void make_pipeline(problem *p, int stages, int micro_batches, bool one_f_one_b, const double seconds[2])
{
    static int forward[MAX_STAGES][MAX_MICRO_BATCHES], backward[MAX_STAGES][MAX_MICRO_BATCHES];
    for (int stage = 0; stage < stages; stage++) { /* numbers first: steps wait for steps of later stages */
        int filled = one_f_one_b && stages - stage < micro_batches ? stages - stage : micro_batches;
        int place = 2 * micro_batches * stage;
        for (int f = 0, b = 0; b < micro_batches;) {
            if (f < micro_batches && f - b < filled) {
                forward[stage][f++] = place++;
            } else {
                backward[stage][b++] = place++;
            }
        }
    }
    for (int stage = 0; stage < stages; stage++) {
        for (int n = 0, f = 0, b = 0; n < 2 * micro_batches; n++) {
            int place = 2 * micro_batches * stage + n;
            bool is_forward = f < micro_batches && forward[stage][f] == place;
            assert_int_equal(add_step(p, stage, seconds[!is_forward]), place);
            if (is_forward && stage > 0) {
                add_dependency(p, forward[stage - 1][f], 0);
            } else if (!is_forward) {
                add_dependency(p, stage + 1 < stages ? backward[stage + 1][b] : forward[stage][b], 0);
            }
            f += is_forward;
            b += !is_forward;
        }
    }
}

/*
 * m micro-batches over p equal stages, a unit each way: (m + p - 1) units instead of m, so each stage is idle for a
 * share of (p - 1) / (m + p - 1) of the time; one forward, one backward changes memory, not time.
 */
static void test_pipelines_have_the_bubble_of_the_formula(void **state)
{
    (void)state;
    for (int stages = 1; stages <= MAX_STAGES; stages++) {
        for (int micro_batches = 1; micro_batches <= MAX_MICRO_BATCHES; micro_batches += 3) {
            for (int order = 0; order < 2; order++) {
                problem *p = begin(stages);
                make_pipeline(p, stages, micro_batches, order == 1, (double[]){1, 2});
                cvy_simulated result = run(p, 1);
                assert_true(result.makespan_s == 3 * (micro_batches + stages - 1));
                for (int stage = 0; stage < stages; stage++) {
                    assert_true(fabs(result.idle_s[stage] / result.makespan_s -
                                     (stages - 1.0) / (micro_batches + stages - 1)) < 1e-12);
                }
            }
        }
    }
}

/*
 * Computing takes 10 s, the exchange 12. If the next iteration needs it, they alternate: 22. If the one after next
 * does, the slower stream decides: 12.
 */
static void test_the_steady_state_follows_distances(void **state)
{
    (void)state;
    static const double period_s[] = {22, 12};
    for (int distance = 1; distance <= 2; distance++) {
        problem *p = begin(2);
        add_step(p, 0, 10);
        add_dependency(p, 1, distance);
        add_step(p, 1, 12);
        add_dependency(p, 0, 0);
        cvy_simulated result = run(p, 101);
        assert_true(result.period_s == period_s[distance - 1]);
        assert_true(result.end_s[1] == result.makespan_s);
    }
}

/* Three streams of 10 s in a ring that is closed after two iterations: 30 s for two, though no stream needs over 10. */
static void test_a_ring_over_two_iterations_takes_half_its_length(void **state)
{
    (void)state;
    problem *p = begin(3);
    for (int i = 0; i < 3; i++) {
        add_step(p, i, 10);
        add_dependency(p, i ? i - 1 : 2, i ? 0 : 2);
    }
    cvy_simulated result = run(p, 41);
    assert_true(result.period_s == 15);
    /* Iterations 0 and 1 end at 30 and 40, and then two more each 30 s: number 40 at 30 + 20 * 30. */
    assert_true(result.makespan_s == 630);
    assert_true(result.idle_s[1] == 630 - 41 * 10);
}

/* Steps in a hidden order that can be run, then stored stream by stream, so that the array's order says nothing. */
static void make_random(uint32_t seed)
{
    static int stream_of[MAX_STEPS], join_of[MAX_STEPS], place_of[MAX_STEPS], hidden_of[MAX_STEPS], group_of[MAX_STEPS];
    int steps = (int)draw(seed, 0, 1, 40), streams = (int)draw(seed, 1, 1, MAX_STREAMS), joins = 0, at = 0;
    problem *p = begin(streams);
    for (int i = 0, members; i < steps; i += members) { /* members of a join are neighbours, on different streams */
        bool joined = streams > 1 && draw(seed, 10 + 4 * (uint32_t)i, 0, 4) == 0;
        members = joined ? (int)draw(seed, 11 + 4 * (uint32_t)i, 2, streams) : 1;
        members = members < steps - i ? members : steps - i;
        int first = (int)draw(seed, 12 + 4 * (uint32_t)i, 0, streams - 1);
        for (int m = 0; m < members; m++) {
            stream_of[i + m] = (first + m) % streams;
            join_of[i + m] = joined ? joins : -1;
            group_of[i + m] = i;
        }
        joins += joined;
    }
    for (int stream = 0; stream < streams; stream++) {
        for (int i = 0; i < steps; i++) {
            if (stream_of[i] == stream) {
                hidden_of[at] = i;
                place_of[i] = at++;
            }
        }
    }
    for (int place = 0; place < steps; place++) {
        int i = hidden_of[place];
        uint32_t base = 1000 + 20 * (uint32_t)i;
        p->step[add_step(p, stream_of[i], (double)draw(seed, base, 0, 9))].join = join_of[i];
        for (uint32_t d = 0; d < (uint32_t)draw(seed, base + 1, 0, 3); d++) {
            int distance = (int)draw(seed, base + 2 + d, 0, 5) / 3 * (int)draw(seed, base + 6 + d, 1, 3);
            int before = distance ? steps : group_of[i]; /* what an earlier iteration did may stand anywhere */
            if (before > 0) {
                add_dependency(p, place_of[draw(seed, base + 10 + d, 0, before - 1)], distance);
            }
        }
    }
    p->simulation.joins = joins;
}

enum { ITERATIONS = 4 };

/* Starts of all iterations, raised until nothing changes any more. */
static void find_longest_paths(const cvy_simulation *s, double start_s[ITERATIONS][MAX_STEPS])
{
    memset(start_s, 0, sizeof(double) * ITERATIONS * MAX_STEPS);
    for (bool changed = true; changed;) {
        changed = false;
        for (int t = 0; t < ITERATIONS; t++) {
            for (int i = 0; i < s->steps; i++) {
                const cvy_sim_step *step = &s->step[i];
                double least_s = start_s[t][i];
                for (int j = 0; j < s->steps; j++) { /* what is earlier on the stream, and members of the join */
                    bool same = s->step[j].stream == step->stream;
                    if (same && j < i) {
                        least_s = fmax(least_s, start_s[t][j] + s->step[j].duration_s);
                    }
                    if (same && t) {
                        least_s = fmax(least_s, start_s[t - 1][j] + s->step[j].duration_s);
                    }
                    if (step->join >= 0 && s->step[j].join == step->join) {
                        least_s = fmax(least_s, start_s[t][j]);
                    }
                }
                for (int d = 0; d < step->dependencies; d++) {
                    const cvy_dependency *on = &s->dependency[step->first_dependency + d];
                    if (on->distance <= t) {
                        least_s = fmax(least_s, start_s[t - on->distance][on->step] + s->step[on->step].duration_s);
                    }
                }
                changed = changed || least_s > start_s[t][i];
                start_s[t][i] = least_s;
            }
        }
    }
}

/* Each step of a path starts when the one before it ends; the last one ends last. */
static void check_path(const cvy_simulation *s, const cvy_simulated *result)
{
    int path[MAX_STEPS], count = cvy_simulator_critical_path(simulator, path);
    double last_s = 0;
    for (int i = 0; i < s->steps; i++) {
        last_s = fmax(last_s, result->end_s[i]);
    }
    assert_true(count > 0 && count <= s->steps);
    assert_true(result->end_s[path[count - 1]] == last_s && last_s == result->makespan_s);
    for (int i = 1; i < count; i++) {
        assert_true(result->start_s[path[i]] == result->end_s[path[i - 1]]);
    }
}

/* 4,000 random graphs (seeds 0 to 3999) of up to 40 steps, joins and distances included, over 4 iterations. */
static void test_random_graphs_take_their_longest_path(void **state)
{
    (void)state;
    static double start_s[ITERATIONS][MAX_STEPS];
    for (uint32_t seed = 0; seed < CASES; seed++) {
        make_random(seed);
        const cvy_simulation *s = &shared.simulation;
        find_longest_paths(s, start_s);
        cvy_simulated result = run(&shared, ITERATIONS);
        double ends_s[ITERATIONS] = {0};
        for (int i = 0; i < s->steps; i++) {
            for (int t = 0; t < ITERATIONS; t++) {
                ends_s[t] = fmax(ends_s[t], start_s[t][i] + s->step[i].duration_s);
            }
            if (result.start_s[i] != start_s[ITERATIONS - 1][i]) {
                fail_msg("seed %u: step %d at %g, expected %g", seed, i, result.start_s[i], start_s[ITERATIONS - 1][i]);
            }
        }
        assert_true(fabs(result.period_s - (result.makespan_s - fmax(ends_s[0], ends_s[1])) / 2) < 1e-9);
        check_path(s, &result);
    }
}

/* Two streams that take two collectives in different orders; a step that waits for its successor; one that waits for
 * itself. */
static void test_steps_that_wait_for_each_other_are_named(void **state)
{
    (void)state;
    cvy_simulated result;
    problem *p = begin(2);
    p->simulation.joins = 2;
    for (int i = 0; i < 4; i++) {
        p->step[add_step(p, i / 2, 1)].join = i % 2 ^ i / 2;
    }
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "step 0 of a simulation, on stream 0, waits for steps that wait for it");
    p = begin(2);
    add_step(p, 0, 1);
    add_step(p, 1, 1);
    add_dependency(p, 3, 0);
    add_step(p, 1, 1);
    add_step(p, 1, 1);
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "step 1 of a simulation, on stream 1, waits for steps that wait for it");
    p = begin(1);
    add_step(p, 0, 1);
    add_dependency(p, 0, 0);
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_INFEASIBLE);
    p->dependency[0].distance = 1; /* of the iteration before: that is done */
    assert_true(run(p, 3).makespan_s == 3);
}

static void test_what_is_out_of_bounds_is_refused(void **state)
{
    (void)state;
    static const cvy_sim_step wrong[] = {{1, 0, 1, -1, 0, 0}, {1, 0, -1, -1, 0, 0}, {1, 0, 0, 0, 0, 0},
                                         {1, 0, 0, -1, 0, 2}, {1, 0, 0, -1, 2, 0},  {-1, 0, 0, -1, 0, 0},
                                         {INFINITY, 0, 0, -1, 0, 0}, {1, -1, 0, -1, 0, 0}};
    cvy_simulated result;
    problem *p = begin(1);
    add_step(p, 0, 1);
    add_dependency(p, 0, 1);
    cvy_sim_step right = p->step[0];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        p->step[0] = wrong[i];
        assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_ARG);
    }
    p->step[0] = right;
    p->dependency[0] = (cvy_dependency){1, 0};
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_ARG);
    assert_string_equal(cvy_error_message(), "dependency 0 of a simulation: on step 1, 0 iterations back");
    p->dependency[0] = (cvy_dependency){0, CVY_SIM_MAX_DISTANCE + 1};
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_ARG);
    p->dependency[0].distance = 1;
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 0, &result), CVY_ERR_ARG);
    p->simulation.streams = 0;
    assert_int_equal(cvy_simulator_run(simulator, &p->simulation, 1, &result), CVY_ERR_ARG);
}

/* Memory that runs out anywhere is told, and a later run is right; a run no larger than one before takes none. */
static void test_memory_is_taken_once(void **state)
{
    (void)state;
    cvy_simulator *fresh = NULL;
    cvy_simulated result;
    problem *p = begin(4);
    make_pipeline(p, 4, 4, true, (double[]){1, 1});
    p->simulation.joins = 1;
    assert_int_equal(cvy_simulator_create(&fresh), CVY_OK);
    int failures = 0;
    cvy_status status = CVY_ERR_MEMORY;
    while (status == CVY_ERR_MEMORY && failures < 20) {
        cvy_memory_fail_after(failures % 3); /* what was taken before a failure stays or is taken again */
        status = cvy_simulator_run(fresh, &p->simulation, 1, &result);
        cvy_memory_fail_after(-1);
        failures += status == CVY_ERR_MEMORY;
        status = failures < 6 ? status : cvy_simulator_run(fresh, &p->simulation, 1, &result);
    }
    assert_int_equal(status, CVY_OK);
    assert_true(failures >= 6 && result.makespan_s == 14);
    int64_t before = cvy_memory_allocations();
    assert_int_equal(cvy_simulator_run(fresh, &p->simulation, 1, &result), CVY_OK);
    assert_int_equal(cvy_memory_allocations(), before);
    cvy_simulator_destroy(&fresh);
    assert_null(fresh);
    cvy_simulator_destroy(&fresh);
}

static int set_up(void **state)
{
    (void)state;
    return cvy_simulator_create(&simulator) != CVY_OK;
}

static int tear_down(void **state)
{
    (void)state;
    cvy_simulator_destroy(&simulator);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges_overlap_the_rest_of_backward),
        cmocka_unit_test(test_a_link_that_is_idle_saves_up),
        cmocka_unit_test(test_a_join_waits_for_its_last_member),
        cmocka_unit_test(test_pipelines_have_the_bubble_of_the_formula),
        cmocka_unit_test(test_the_steady_state_follows_distances),
        cmocka_unit_test(test_a_ring_over_two_iterations_takes_half_its_length),
        cmocka_unit_test(test_random_graphs_take_their_longest_path),
        cmocka_unit_test(test_steps_that_wait_for_each_other_are_named),
        cmocka_unit_test(test_what_is_out_of_bounds_is_refused),
        cmocka_unit_test(test_memory_is_taken_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
