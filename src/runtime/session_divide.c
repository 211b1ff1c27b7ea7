/* How the work of a session is divided over its ranks: by a strategy's words, or by a plan file. */
#include <string.h>

#include "base/checked.h"
#include "plan/mesh.h"
#include "runtime/formats.h"
#include "runtime/session.h"

/* A file for this model, batch and precision, or a line that says what it is for. */
static cvy_status check_file(const cvy_session *session, const cvy_train_options *options)
{
    const cvy_plan_decisions *d = &session->file.decisions;
    int ranks = cvy_comm_ranks(session->comm);
    CVY_REQUIRE(cvy_model_hash(session->file.model) == cvy_model_hash(session->model), CVY_ERR_INPUT,
                "%s: a plan for %s, not for %s", options->plan, d->model, cvy_model_name(session->model));
    CVY_REQUIRE(d->batch == options->batch, CVY_ERR_INPUT, "%s: a plan for batch %lld, got %lld", options->plan,
                (long long)d->batch, (long long)options->batch);
    CVY_REQUIRE(d->strategy.mesh.ranks == ranks, CVY_ERR_INPUT,
                "%s: a plan for %lld ranks; this run has %d: start it with mpiexec -n %lld", options->plan,
                (long long)d->strategy.mesh.ranks, ranks, (long long)d->strategy.mesh.ranks);
    CVY_REQUIRE(d->precision == (options->double_precision ? CVY_PRECISION_FP64 : CVY_PRECISION_FP32), CVY_ERR_INPUT,
                "%s: a plan for another precision than %s", options->plan, options->double_precision ? "fp64" : "fp32");
    return CVY_OK;
}

/* Formats that were decided for vectors as wide as this machine's. */
static const cvy_layer_formats *find_formats(const cvy_session *session, const cvy_plan_options *wanted)
{
    const cvy_plan_decisions *d = &session->file.decisions;
    return d->formats && d->block == wanted->block ? d->formats : NULL;
}

static cvy_status read_file(cvy_session *session, const cvy_train_options *options, cvy_plan_options *wanted,
                            cvy_strategy *strategy, cvy_distribution_options *divided)
{
    CVY_TRY(cvy_plan_file_load(options->plan, NULL, &session->file));
    const cvy_plan_decisions *d = &session->file.decisions;
    CVY_TRY(check_file(session, options));
    *strategy = d->strategy;
    divided->choices = d->choices;
    divided->stages = d->stages;
    wanted->recompute = d->recompute;
    wanted->formats = find_formats(session, wanted);
    wanted->parallel.shard_optimizer = d->shard_optimizer;
    wanted->parallel.norm_axes = d->norms_given ? d->norm_axes : wanted->parallel.norm_axes;
    wanted->parallel.bucket_bytes = d->bucket_bytes >= 0 ? d->bucket_bytes : wanted->parallel.bucket_bytes;
    return CVY_OK;
}

static cvy_status read_strategy(const cvy_session *session, const cvy_train_options *options, cvy_strategy *strategy)
{
    int ranks = cvy_comm_ranks(session->comm);
    const char *words = options->strategy ? options->strategy : ranks > 1 ? "data" : "serial";
    int64_t space[3];
    cvy_strategy_find_space(&session->model->layer[0].output, space);
    CVY_TRY(cvy_strategy_parse(words, ranks, space, strategy));
    CVY_REQUIRE(!strategy->automatic, CVY_ERR_ARG, "strategy auto is for a command to decide");
    return CVY_OK;
}

static cvy_status choose_micro_batches(const cvy_train_options *options, cvy_strategy *strategy)
{
    int64_t said = strategy->micro_batches, asked = options->micro_batches;
    CVY_REQUIRE(said <= 1 || asked == 0 || asked == said, CVY_ERR_INPUT,
                "micro-batches %lld: the strategy says %lld", (long long)asked, (long long)said);
    strategy->micro_batches = asked ? asked : said;
    return CVY_OK;
}

cvy_status cvy_session_divide(cvy_session *session, const cvy_train_options *options, cvy_plan_options *wanted)
{
    cvy_strategy strategy;
    cvy_distribution_options divided = {.batch = options->batch};
    wanted->parallel = (cvy_plan_parallel){.rank = cvy_comm_rank(session->comm),
                                           .bucket_bytes = options->bucket_bytes,
                                           .overlap = options->overlap,
                                           .norm_axes = CVY_AXIS_SPACE,
                                           .shard_optimizer = options->shard_optimizer};
    if (options->sync_norms) {
        CVY_TRY(cvy_norm_axes_parse(options->sync_norms, &wanted->parallel.norm_axes));
    }
    CVY_TRY(options->plan ? read_file(session, options, wanted, &strategy, &divided)
                          : read_strategy(session, options, &strategy));
    CVY_TRY(choose_micro_batches(options, &strategy));
    wanted->micro_batches = (int)strategy.micro_batches;
    if (strategy.mesh.ranks == 1) {
        return CVY_OK;
    }
    CVY_TRY(cvy_distribution_create(session->model, &strategy, &divided, &session->distribution));
    wanted->parallel.distribution = session->distribution;
    return CVY_OK;
}

/* The plan that the first rank would make alone, of as many samples as it has. */
static cvy_status decide_formats(const cvy_session *session, const cvy_train_options *options,
                                 const cvy_train_observer *observer, const cvy_plan_options *wanted,
                                 cvy_layer_formats *formats)
{
    cvy_plan *alone = NULL;
    cvy_plan_options with = *wanted;
    int64_t ranks = session->distribution->strategy.mesh.size[CVY_AXIS_SAMPLE];
    with.parallel = (cvy_plan_parallel){.distribution = NULL};
    with.batch = cvy_ceil_div(wanted->batch, ranks);
    with.tail_batch = 0;
    with.micro_batches = (int)cvy_min_i64(wanted->micro_batches, with.batch);
    CVY_TRY(cvy_formats_plan(session->model, options, observer, &with, session->threads, &alone));
    memcpy(formats, alone->formats, (size_t)session->model->layers * sizeof *formats);
    cvy_plan_destroy(&alone);
    return CVY_OK;
}

cvy_status cvy_session_share_formats(cvy_session *session, const cvy_train_options *options,
                                     const cvy_train_observer *observer, const cvy_plan_options *wanted,
                                     cvy_layer_formats *formats)
{
    cvy_status status = CVY_OK;
    if (cvy_comm_rank(session->comm) == 0) {
        status = decide_formats(session, options, observer, wanted, formats);
    }
    CVY_TRY(cvy_comm_agree(session->comm, status));
    return cvy_comm_broadcast(session->comm, formats, session->model->layers * (int64_t)sizeof *formats, 0);
}
