/* The very ops that plans of a model ask about: what is measured of these is looked up, not predicted. */
#include <string.h>

#include "base/memory.h"
#include "cli/calibrate.h"
#include "cli/ranks.h"
#include "oracle/distance.h"
#include "plan/distribution.h"
#include "plan/plan.h"

/* Ops so far. */
typedef struct collection {
    const cvy_model *model;
    cvy_plan_options options; /* of all plans */
    cvy_op *op;
    double *distance; /* of each of them */
    int ops;
} collection;

static cvy_status add_ops(collection *c, const cvy_schedule *s)
{
    size_t most = (size_t)c->ops + (size_t)s->steps + 1;
    cvy_op *op = cvy_calloc(most, sizeof *op);
    double *distance = cvy_calloc(most, sizeof *distance), *all = cvy_calloc(most, sizeof *all);
    cvy_status status = op && distance && all ? cvy_schedule_distances(s, all) : CVY_ERR_MEMORY;
    if (status == CVY_OK) {
        for (int i = 0; i < c->ops; i++) {
            op[i] = c->op[i];
            distance[i] = c->distance[i];
        }
        for (int i = 0; i < s->steps; i++) {
            if (s->step[i].op >= 0) {
                distance[c->ops] = all[i];
                op[c->ops++] = s->op[s->step[i].op];
            }
        }
        cvy_free(c->op);
        cvy_free(c->distance);
        c->op = op;
        c->distance = distance;
        op = NULL;
        distance = NULL;
    }
    cvy_free(op);
    cvy_free(distance);
    cvy_free(all);
    return status;
}

static cvy_status add_plan(collection *c, const cvy_distribution *distribution, int rank)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = c->options;
    if (distribution) {
        int64_t parts = distribution->strategy.micro_batches;
        options.micro_batches = parts > 1 ? (int)parts : 1;
        options.parallel = (cvy_plan_parallel){.distribution = distribution, .rank = rank, .overlap = true,
                                               .norm_axes = CVY_AXIS_SPACE};
    }
    CVY_TRY(cvy_plan_create(c->model, &options, &plan));
    cvy_status status = add_ops(c, &plan->schedule[CVY_SCHEDULE_TRAIN]);
    cvy_plan_destroy(&plan);
    return status;
}

/* Of a strategy over the ranks that measure: each may have shares, or layers, of its own. */
static cvy_status add_strategy(collection *c, const char *words)
{
    int ranks = cli_ranks_count();
    int64_t space[3];
    cvy_strategy strategy;
    cvy_distribution_options options = {.batch = c->options.batch};
    cvy_distribution *distribution = NULL;
    cvy_strategy_find_space(&c->model->layer[0].output, space);
    CVY_TRY(cvy_strategy_parse(words, ranks, space, &strategy));
    CVY_REQUIRE(!strategy.automatic, CVY_ERR_INPUT, "--strategy auto: there is nothing yet to choose by; name one");
    if (strategy.mesh.ranks == 1) {
        return add_plan(c, NULL, 0);
    }
    CVY_TRY(cvy_distribution_create(c->model, &strategy, &options, &distribution));
    cvy_status status = CVY_OK;
    for (int i = 0; i < ranks && status == CVY_OK; i++) {
        status = add_plan(c, distribution, i);
    }
    cvy_distribution_destroy(&distribution);
    return status;
}

static cvy_status add_strategies(collection *c, const char *given)
{
    char *all = cvy_strdup(given), *rest = all, *words;
    cvy_status status = all ? CVY_OK : CVY_ERR_MEMORY;
    while (status == CVY_OK && (words = strtok_r(rest, ";", &rest))) {
        status = add_strategy(c, words);
    }
    cvy_free(all);
    return status;
}

cvy_status cli_calibration_find_ops(const cli_options *options, int block, cvy_op **op_out, double **distance_out,
                                    int *ops_out)
{
    cvy_model *model = NULL;
    collection c = {.options = {.batch = options->train.batch, .dtype = CVY_F32, .training = true, .train_only = true,
                                .micro_batches = 1, .block = block}};
    const char *strategies = options->calibrate.strategies;
    if (!options->model) {
        CVY_REQUIRE(!strategies, CVY_ERR_INPUT, "--strategy says how a model is cut: name one with --model");
        return CVY_OK;
    }
    (void)cvy_optimizer_find("momentum", 0.9, &c.options.optimizer);
    cvy_status status = cvy_model_open(options->model, &model);
    CVY_TRY_GOTO(status, done, status);
    c.model = model;
    CVY_TRY_GOTO(status, done, strategies ? add_strategies(&c, strategies) : add_plan(&c, NULL, 0));
    *op_out = c.op;
    *distance_out = c.distance;
    *ops_out = c.ops;
    c.op = NULL;
    c.distance = NULL;
done:
    cvy_free(c.op);
    cvy_free(c.distance);
    cvy_model_destroy(&model);
    return status;
}
