/*
 * A command line is read into a question in one go, so that every command that plans takes the same words to mean the
 * same. A rank's memory is the machine's figure, which --max-memory replaces: what does not fit is then flagged by all.
 */
#include "cli/planning.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/text.h"
#include "base/topology.h"
#if CVY_HAVE_TRAIN
#include "runtime/threads.h"
#endif

enum { MAX_SIZE_BYTES_EXPONENT = 60, MAX_USD_PER_H = 1000000 }; /* the most that a machine file may say, too */

cvy_status cli_parse_batch(const char *text, int64_t ranks, int64_t *batch_out, bool *per_rank_out)
{
    enum { MOST = 1 << 24 };
    char word[CVY_WORD_TEXT], *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    bool per_rank = strcmp(end, "/rank") == 0, digits = *text >= '0' && *text <= '9';
    CVY_REQUIRE(digits && (*end == '\0' || per_rank) && errno == 0 && count >= 1 && count <= MOST, CVY_ERR_INPUT,
                "--batch: expected a count from 1 to %d (N or N/rank), found '%s'", MOST, cvy_print_word(text, word));
    *batch_out = per_rank ? count * ranks : count;
    if (per_rank_out) {
        *per_rank_out = per_rank;
    }
    return CVY_OK;
}

cvy_status cli_parse_size(const char *option, const char *text, int64_t *bytes_out)
{
    char word[CVY_WORD_TEXT];
    double bytes = 0.0;
    if (!text) {
        return CVY_OK;
    }
    CVY_REQUIRE(cvy_quantity_parse(text, CVY_QUANTITY_SIZE, &bytes) && bytes >= 1.0 &&
                bytes < (double)(INT64_C(1) << MAX_SIZE_BYTES_EXPONENT), CVY_ERR_INPUT,
                "--%s: found '%s', expected %s", option, cvy_print_word(text, word),
                cvy_quantity_expected(CVY_QUANTITY_SIZE));
    *bytes_out = (int64_t)bytes;
    return CVY_OK;
}

static cvy_status parse_price(const char *text, double *usd_per_h)
{
    char word[CVY_WORD_TEXT];
    double price = 0.0;
    if (!text) {
        return CVY_OK;
    }
    CVY_REQUIRE(cvy_quantity_parse(text, CVY_QUANTITY_PRICE, &price) && price >= 0.0 && price <= MAX_USD_PER_H,
                CVY_ERR_INPUT, "--price: found '%s', expected %s, at most %d USD/h", cvy_print_word(text, word),
                cvy_quantity_expected(CVY_QUANTITY_PRICE), MAX_USD_PER_H);
    *usd_per_h = price;
    return CVY_OK;
}

cvy_status cli_parse_oracle_options(const cli_options *options, cvy_oracle_options *oracle_out)
{
    cvy_oracle_options oracle = {.precision = (cvy_precision)options->plan.precision,
                                 .recompute = options->plan.recompute > 0
                                                  ? (cvy_recompute)(options->plan.recompute - 1)
                                                  : CVY_RECOMPUTE_NONE,
                                 .shard_optimizer = options->plan.shard_optimizer,
                                 .norms_given = options->plan.norm_axes != NULL,
                                 .bucket_bytes = -1};
    (void)cvy_optimizer_find(cvy_optimizer_names[options->train.optimizer], options->train.momentum,
                             &oracle.optimizer); /* the option's choices are these names */
    CVY_TRY(cvy_norm_axes_parse(options->plan.norm_axes ? options->plan.norm_axes : "none", &oracle.norm_axes));
    CVY_TRY(cli_parse_size("bucket", options->plan.bucket, &oracle.bucket_bytes));
    *oracle_out = oracle;
    return CVY_OK;
}

cvy_status cli_parse_strategy(const cli_problem *problem, const char *text, int64_t ranks, cvy_strategy *strategy_out)
{
    int64_t space[3];
    const int64_t parts = problem->options->plan.micro_batches;
    cvy_strategy strategy;
    cvy_strategy_find_space(&problem->model->layer[0].output, space);
    CVY_TRY(cvy_strategy_parse(text, ranks, space, &strategy));
    CVY_REQUIRE(!parts || !strategy.automatic, CVY_ERR_INPUT,
                "--micro-batches goes with a --strategy: auto chooses them");
    CVY_REQUIRE(!parts || !strategy.micro_batches || parts == strategy.micro_batches, CVY_ERR_INPUT,
                "--micro-batches %" PRId64 ": the strategy says %" PRId64, parts, strategy.micro_batches);
    strategy.micro_batches = parts ? parts : strategy.micro_batches;
    *strategy_out = strategy;
    return CVY_OK;
}

/* Ranks of a mesh that is written as axes; 0 where the strategy is a name. What is wrong in it is found later. */
static int64_t count_mesh(const char *strategy)
{
    int64_t ranks = 0;
    for (const char *at = strategy; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[32];
        cvy_axis axis;
        size_t length = strcspn(at, "=,");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), at);
        int64_t size = at[length] == '=' && cvy_axis_find(word, &axis) ? strtoll(at + length + 1, NULL, 10) : 1;
        ranks = strcmp(word, "serial") == 0 ? 1 : ranks;
        bool fits = size >= 1 && size <= CVY_MAX_RANKS && (ranks ? ranks : 1) <= CVY_MAX_RANKS / size;
        ranks = fits && size > 1 ? (ranks ? ranks : 1) * size : ranks;
    }
    return ranks;
}

/*
 * Plans are made and released by the thousand. What goes back to the system each time is taken again page by page: of
 * an estimate of resnet50 over 64 ranks that was two thirds of the time.
 */
static void keep_memory(void)
{
    enum { MOST_KEPT = 1 << 28, MOST_OF_HEAP = 1 << 25 };
    mallopt(M_TRIM_THRESHOLD, MOST_KEPT);
    mallopt(M_MMAP_THRESHOLD, MOST_OF_HEAP);
}

/* Where a name comes from: the line, else the plan file. */
static cvy_status open_machine(const cli_command *command, cli_problem *problem)
{
    int64_t memory_bytes = 0;
    const char *text = problem->options->plan.machine ? problem->options->plan.machine
                                                      : problem->file.decisions.machine;
    keep_memory();
    CVY_REQUIRE(text, CVY_ERR_INPUT,
                "convoy %s needs a machine: --machine NAME or FILE; see convoy plan --list-machines", command->name);
    CVY_TRY(cli_parse_size("max-memory", problem->options->plan.max_memory, &memory_bytes));
    CVY_TRY(cvy_machine_open(text, &problem->machine));
    problem->machine_text = text;
    problem->price_usd_per_h = problem->machine->device.price_usd_per_h;
    if (memory_bytes) {
        problem->machine->device.memory_bytes = memory_bytes;
    }
    return parse_price(problem->options->plan.price, &problem->price_usd_per_h);
}

static cvy_status check_ranks(const cli_problem *problem)
{
    int64_t devices = cvy_machine_devices(problem->machine);
    CVY_REQUIRE(problem->ranks <= devices, CVY_ERR_INPUT, "%" PRId64 " ranks: machine %s has %" PRId64 " device%s",
                problem->ranks, problem->machine->name, devices, devices == 1 ? "" : "s");
    return CVY_OK;
}

/* What a plan file decides is not to be said again: it would do nothing, in silence. */
static cvy_status check_undecided(const cli_options *o)
{
    const cli_plan_options *p = &o->plan, *init = &cli_options_init.plan;
    const struct {
        bool given;
        const char *name;
    } decided[] = {
        {p->ranks != 0, "ranks"},
        {strcmp(p->batch, init->batch) != 0, "batch"},
        {strcmp(p->strategy, init->strategy) != 0, "strategy"},
        {p->micro_batches != 0, "micro-batches"},
        {p->recompute != 0, "recompute"},
        {p->precision != init->precision, "precision"},
        {o->train.optimizer != cli_options_init.train.optimizer, "optimizer"},
        {p->norm_axes != NULL, "norm-axes"},
        {p->bucket != NULL, "bucket"},
        {p->shard_optimizer, "shard-optimizer"},
    };
    for (size_t i = 0; i < sizeof decided / sizeof decided[0]; i++) {
        CVY_REQUIRE(!decided[i].given, CVY_ERR_INPUT,
                    "--%s: the plan of --plan has decided it; only the machine may be another", decided[i].name);
    }
    return CVY_OK;
}

/* Whether a run would ask the clock, and so go by Winograd's algorithm where that is faster. */
static bool asks_clock(const cvy_train_options *train)
{
    const char *layout = train->layout ? train->layout : "auto";
    return !train->deterministic_kernels && (strcmp(layout, "auto") == 0 || strcmp(layout, "measure") == 0);
}

/*
 * Where a rank's device is this computer's processor, its kernels are here to be asked for their scratch memory, with
 * as many threads as the device has cores; of others nobody here knows it.
 */
static cvy_status open_scratch(cli_problem *problem)
{
    const cvy_device *device = &problem->machine->device;
    cvy_backend_chain backends;
    cvy_topology here;
    if (device->kind != CVY_DEVICE_CPU || !asks_clock(&problem->options->train)) {
        return CVY_OK;
    }
    cvy_topology_get(&here);
    if (!device->name || strcmp(device->name, here.processor) != 0 || device->vector_bits != here.vector_bits) {
        return CVY_OK;
    }
    CVY_TRY(cvy_backend_chain_find(problem->options->train.backend, &backends));
    CVY_TRY(cvy_scratch_book_create(&backends, &problem->scratch));
#if CVY_HAVE_TRAIN
    cvy_threads_set((int)device->cores);
#endif
    problem->oracle.scratch = problem->scratch;
    return CVY_OK;
}

/* All but the machine is the file's. */
static cvy_status open_plan(const cli_command *command, const char *model, cli_problem *problem)
{
    CVY_TRY(check_undecided(problem->options));
    CVY_TRY(cvy_plan_file_load(problem->options->plan.plan, model, &problem->file));
    const cvy_plan_decisions *d = &problem->file.decisions;
    problem->model = problem->file.model;
    problem->model_text = d->model;
    CVY_TRY(open_machine(command, problem));
    problem->strategy = d->strategy;
    problem->ranks = d->strategy.mesh.ranks;
    problem->batch = d->batch;
    problem->batch_per_rank = d->batch % problem->ranks == 0;
    problem->fixed_recompute = true;
    problem->oracle = (cvy_oracle_options){.batch = d->batch,
                                           .precision = d->precision,
                                           .optimizer = d->optimizer,
                                           .recompute = d->recompute,
                                           .shard_optimizer = d->shard_optimizer,
                                           .norms_given = d->norms_given,
                                           .norm_axes = d->norm_axes,
                                           .bucket_bytes = d->bucket_bytes};
    CVY_TRY(open_scratch(problem));
    return check_ranks(problem);
}

cvy_status cli_problem_open(const cli_command *command, const cli_options *options, const char *model, int64_t ranks,
                            cli_problem *problem)
{
    *problem = (cli_problem){.options = options, .model_text = model ? model : options->model};
    if (options->plan.plan) {
        return open_plan(command, problem->model_text, problem);
    }
    CVY_REQUIRE(problem->model_text, CVY_ERR_INPUT,
                "convoy %s needs a model: convoy %s MODEL --machine NAME; see convoy model --list", command->name,
                command->name);
    CVY_TRY(cvy_model_open(problem->model_text, &problem->model));
    CVY_TRY(open_machine(command, problem));
    int64_t meshed = count_mesh(options->plan.strategy);
    problem->ranks = options->plan.ranks ? options->plan.ranks
                     : meshed            ? meshed
                     : ranks             ? ranks
                                         : cvy_machine_devices(problem->machine);
    CVY_TRY(check_ranks(problem));
    CVY_TRY(cli_parse_batch(options->plan.batch, problem->ranks, &problem->batch, &problem->batch_per_rank));
    CVY_TRY(cli_parse_strategy(problem, options->plan.strategy, problem->ranks, &problem->strategy));
    CVY_TRY(cli_parse_oracle_options(options, &problem->oracle));
    problem->oracle.batch = problem->batch;
    problem->fixed_recompute = options->plan.recompute > 0;
    return open_scratch(problem);
}

void cli_problem_clear(cli_problem *problem)
{
    if (problem->model != problem->file.model) {
        cvy_model_destroy(&problem->model);
    }
    cvy_plan_file_clear(&problem->file);
    cvy_scratch_book_destroy(&problem->scratch);
    cvy_machine_destroy(&problem->machine);
    *problem = (cli_problem){.options = NULL};
}

double cli_problem_price(const cli_problem *problem, int64_t ranks, double seconds)
{
    return problem->price_usd_per_h * (double)ranks * seconds / 3600.0;
}

double cli_problem_iterations(const cli_problem *problem)
{
    int64_t samples = problem->options->plan.samples;
    return (double)((samples + problem->batch - 1) / problem->batch);
}
