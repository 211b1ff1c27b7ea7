/*
 * convoy calibrate: measure this machine and write the machine file that plans read. What was measured is kept in a
 * journal beside it until the file is written, so that a calibration that was stopped goes on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "calibrate/calibration.h"
#include "calibrate/process.h"
#include "calibrate/zoo_layers.h"
#include "cli/calibrate.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "convoy/version.h"
#include "oracle/distance.h"
#include "plan/plan.h"
#include "runtime/places.h"
#include "runtime/threads.h"

/* How much a budget is: seconds on two cores, and what a single kernel may be. */
typedef struct budget {
    double seconds;
    int rounds;
    double most_bytes, kernel_s; /* at the peak rate */
    double most_between;         /* other memory between two runs */
    double most_message;
    cvy_measure_effort effort;
} budget;

static const budget budgets[] = {
    [CLI_BUDGET_QUICK] = {60.0, 200, 32e6, 0.005, 16.8e6, 16.8e6,
                          {.least_runs = 3, .most_runs = 9, .enough_s = 0.02, .median = true, .steady = 0.03}},
    [CLI_BUDGET_NORMAL] = {300.0, 1000, 128e6, 0.02, CVY_FARTHEST_BYTES, 67.2e6,
                           {.least_runs = 3, .most_runs = 21, .enough_s = 0.05, .median = true, .steady = 0.02}},
    [CLI_BUDGET_FULL] = {1800.0, 5000, 512e6, 0.05, CVY_FARTHEST_BYTES, 268.5e6,
                         {.least_runs = 5, .most_runs = 41, .enough_s = 0.10, .median = true, .steady = 0.01}},
};

/* Layers of the zoo that are measured to judge fits by: about a tenth of the time. */
static const double zoo_per_s = 4.0;

/* A calibration under way. */
typedef struct work {
    const cli_options *options;
    const budget *budget;
    cvy_backend_chain chain;
    cvy_calibration *calibration;
    cvy_places places;
    cvy_threads *bound;
    cvy_plan *plan;    /* of --model; NULL */
    cvy_model *model;
    cvy_zoo_layers layers; /* of the plan, and of the zoo */
    cli_progress progress;
    const volatile int *stop;
    char path[4096], journal[4112];
} work;

/* ---- what is asked ---- */

static cvy_status find_paths(work *w)
{
    char name[CVY_CALIBRATION_NAME];
    const char *asked = w->options->calibrate.out;
    cvy_calibration_name(&w->calibration->host, name);
    int length = asked ? snprintf(w->path, sizeof w->path, "%s", asked)
                       : snprintf(w->path, sizeof w->path, "%s.yaml", name);
    CVY_REQUIRE(length < (int)sizeof w->path, CVY_ERR_INPUT, "--out: a name of more than %d bytes",
                (int)sizeof w->path);
    if (!w->options->calibrate.force) {
        CVY_TRY(cvy_calibration_check_target(w->path));
    }
    return cvy_file_check_writable(w->path, CVY_ERR_IO);
}

/* The very ops that a plan of --model asks about, on one rank. */
static cvy_status find_model_ops(work *w)
{
    cvy_plan_options options = {.batch = w->options->train.batch, .dtype = CVY_F32, .training = true,
                                .train_only = true, .block = w->calibration->host.vector_bits >= 512 ? 16 : 8};
    if (!w->options->model) {
        return CVY_OK;
    }
    (void)cvy_optimizer_find("momentum", 0.9, &options.optimizer);
    CVY_TRY(cvy_model_open(w->options->model, &w->model));
    CVY_TRY(cvy_plan_create(w->model, &options, &w->plan));
    const cvy_schedule *schedule = &w->plan->schedule[CVY_SCHEDULE_TRAIN];
    double *distance = cvy_calloc((size_t)schedule->steps + 1, sizeof *distance);
    cvy_status status = distance ? cvy_schedule_distances(schedule, distance) : CVY_ERR_MEMORY;
    for (int i = 0; i < schedule->steps && status == CVY_OK; i++) {
        if (schedule->step[i].op >= 0) {
            status = cvy_zoo_layers_add(&w->layers, &schedule->op[schedule->step[i].op], distance[i]);
        }
    }
    cvy_free(distance);
    return status;
}

/* As many threads as a training would have, where it would have them. Collective. */
static cvy_status take_threads(work *w)
{
    CVY_TRY(cvy_places_find(w->options->train.comm, (int)w->options->threads, &w->places));
    w->calibration->threads = w->places.place[w->places.rank].threads;
    cvy_threads_set(w->calibration->threads);
    if (w->places.ranks > 1) { /* each keeps what it has measured */
        snprintf(w->journal, sizeof w->journal, "%s.journal.%d", w->path, w->places.rank);
    } else {
        snprintf(w->journal, sizeof w->journal, "%s.journal", w->path);
    }
    bool own = w->places.ranks > 1 && CPU_COUNT(&w->places.own) > 0;
    w->bound = own ? cvy_threads_bind(w->calibration->threads, &w->places.own) : NULL;
    return CVY_OK;
}

static uint64_t hash_question(const work *w)
{
    uint64_t hash = cvy_hash_text(CVY_HASH_INIT, w->calibration->host.processor);
    hash = cvy_hash_word(hash, (uint64_t)w->calibration->host.cores);
    hash = cvy_hash_word(hash, (uint64_t)w->calibration->threads);
    hash = cvy_hash_text(hash, w->chain.backend[0]->name);
    return cvy_hash_text(hash, CVY_VERSION);
}

/* ---- measuring ---- */

static void tell(void *context, const cvy_kernel_survey_progress *progress)
{
    work *w = context;
    double whole_s = progress->spent_s + progress->left_s;
    cli_progress_time(&w->progress, "kernels measured", progress->kernels,
                      whole_s > 0.0 ? progress->spent_s / whole_s : 1.0, progress->left_s);
}

static bool is_stopped(void *context)
{
    return *((const work *)context)->stop != 0;
}

static cvy_status survey(work *w, cvy_journal *journal)
{
    cvy_machine_meter *meter = NULL;
    cvy_calibration *c = w->calibration;
    double memory = c->host.memory_bytes > 0 ? (double)c->host.memory_bytes / 4.0 : w->budget->most_bytes;
    cvy_kernel_survey_options options = {
        .seed = 1,
        .limits = {.block = c->host.vector_bits >= 512 ? 16 : 8,
                   .least_bytes = 4096.0,
                   .most_bytes = w->budget->most_bytes < memory ? w->budget->most_bytes : memory,
                   .most_flop = w->budget->kernel_s * c->peaks.flop_per_s},
        .budget_s = w->options->calibrate.seconds > 0.0 ? w->options->calibrate.seconds : w->budget->seconds,
        .rounds = w->budget->rounds,
        .most_between = w->budget->most_between,
        .journal = journal,
        .tell = tell,
        .stop = is_stopped,
        .context = w,
    };
    CVY_TRY(cvy_zoo_layers_draw(options.seed, &options.limits, (int)(zoo_per_s * options.budget_s), &w->layers));
    options.op = w->layers.op;
    options.distance = w->layers.distance;
    options.ops = w->layers.ops;
    CVY_TRY(cvy_machine_meter_create(&w->chain, &w->budget->effort, options.limits.block, &meter));
    const cvy_meter functions = cvy_machine_meter_get(meter);
    cvy_status status = cvy_kernel_survey_run(&functions, &options, &c->survey);
    cvy_machine_meter_destroy(&meter);
    return status;
}

/* All ranks at the same time, as they train. */
static cvy_status measure_network(work *w)
{
    int ranks = w->places.ranks;
    int *node = cvy_calloc((size_t)ranks, sizeof *node);
    CVY_TRY(cli_ranks_agree(node ? CVY_OK : CVY_ERR_MEMORY));
    for (int i = 0; i < ranks; i++) {
        node[i] = w->places.place[i].node;
    }
    if (ranks > 1) {
        cli_progress_log(&w->progress, "measuring the network between %d ranks", ranks);
    }
    cvy_status status = cvy_network_measure(w->options->train.comm, node, w->budget->most_message,
                                            &w->calibration->network);
    cvy_free(node);
    return status;
}

static cvy_status measure(work *w)
{
    cvy_journal *journal = NULL;
    CVY_TRY(cli_ranks_agree(cvy_journal_open(w->journal, hash_question(w), &journal)));
    cvy_status status;
    if (cvy_journal_rows(journal) > 0) {
        cli_progress_log(&w->progress, "going on with %d kernels of %s", cvy_journal_rows(journal), w->journal);
    }
    cli_progress_log(&w->progress, "measuring what this machine can do at best");
    CVY_TRY_GOTO(status, done, cli_ranks_agree(cvy_peaks_measure(&w->chain, &w->calibration->peaks)));
    status = survey(w, journal);
    if (status == CVY_OK && w->calibration->survey.stopped) {
        status = cvy_fail(CVY_PREEMPTED, "stopped after %d kernels, which %s keeps: the same command goes on",
                          w->calibration->survey.rows, w->journal);
    }
    CVY_TRY_GOTO(status, done, cli_ranks_agree(status));
    status = measure_network(w);
done:
    cli_progress_clear(&w->progress);
    if (status == CVY_PREEMPTED) {
        cli_progress_log(&w->progress, "%s", cvy_error_message());
    }
    cvy_journal_close(&journal);
    return status;
}

/* The first rank's kernels are the file's: what the others measured kept them as busy as it was. */
static cvy_status write_down(work *w)
{
    char noise[CVY_NOISE_TEXT];
    CVY_TRY(cvy_calibration_fit(w->calibration));
    CVY_TRY(cvy_calibration_save(w->calibration, w->path));
    if (*cvy_noise_print(&w->calibration->survey.noise, noise)) {
        cli_progress_warn(&w->progress, noise);
    }
    return w->options->json ? cli_calibration_print_json(w->calibration, w->path)
                            : cli_calibration_print(w->calibration, w->path);
}

static cvy_status prepare(work *w)
{
    time_t now = time(NULL);
    struct tm day;
    strftime(w->calibration->date, sizeof w->calibration->date, "%Y-%m-%d", localtime_r(&now, &day));
    cvy_topology_get(&w->calibration->host);
    CVY_TRY(cvy_backend_chain_find(w->options->train.backend, &w->chain));
    CVY_TRY(find_paths(w));
    return find_model_ops(w);
}

static cvy_status calibrate(work *w)
{
    CVY_TRY(cli_ranks_agree(prepare(w)));
    CVY_TRY(cvy_process_measure(w->options->train.comm, (int)w->options->threads, &w->calibration->process_bytes));
    CVY_TRY(take_threads(w));
    CVY_TRY(measure(w));
    CVY_TRY(cli_ranks_agree(cli_ranks_speak() ? write_down(w) : CVY_OK));
    (void)unlink(w->journal); /* what it held is in the table of kernels */
    return CVY_OK;
}

static cvy_status run_calibrate(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed = {.operands = 0};
    cvy_calibration calibration = {.threads = 0};
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        work w = {.options = &options, .budget = &budgets[options.calibrate.budget], .calibration = &calibration};
        w.stop = cli_catch_signals();
        cli_progress_init(options.quiet, &w.progress);
        cvy_memory_keep();
        status = calibrate(&w);
        cvy_threads_release(&w.bound);
        cvy_places_clear(&w.places);
        cvy_plan_destroy(&w.plan);
        cvy_model_destroy(&w.model);
        cvy_zoo_layers_clear(&w.layers);
    }
    cvy_calibration_clear(&calibration);
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_calibrate = {
    .name = "calibrate",
    .operands = "",
    .rows = CLI_CALIBRATE,
    .summary = "Measure this machine, and write the machine file that plans read",
    .examples = "  convoy calibrate -o here.yaml --budget quick\n"
                "  convoy calibrate -o here.yaml --model resnet50 --batch 32\n"
                "  mpiexec -n 2 --bind-to none convoy calibrate -o two.yaml\n"
                "  convoy plan resnet50 --machine here.yaml\n",
    .on_all_ranks = true,
    .run = run_calibrate,
};
