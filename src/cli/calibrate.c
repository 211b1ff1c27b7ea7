/*
 * convoy calibrate: measure this machine and write the machine file that plans read. What was measured is kept in a
 * journal beside it until the file is written, so that a calibration that was stopped goes on.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "calibrate/calibration.h"
#include "calibrate/import.h"
#include "calibrate/process.h"
#include "calibrate/zoo_layers.h"
#include "cli/calibrate.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "convoy/version.h"
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
    [CLI_BUDGET_NORMAL] = {300.0, 1000, 128e6, 0.02, CVY_NEARER_BYTES, 67.2e6,
                           {.least_runs = 3, .most_runs = 9, .enough_s = 0.01, .median = true, .steady = 0.02}},
    [CLI_BUDGET_FULL] = {1800.0, 5000, 512e6, 0.05, CVY_NEARER_BYTES, 268.5e6,
                         {.least_runs = 5, .most_runs = 15, .enough_s = 0.05, .median = true, .steady = 0.01}},
};

/* Layers of the zoo that are measured to judge fits by: about a tenth of the time, and enough where that is long. */
static const double zoo_per_s = 4.0, most_of_zoo = 2000.0;

/* A calibration under way. */
typedef struct work {
    const cli_options *options;
    const budget *budget;
    cvy_backend_chain chain;
    cvy_calibration *calibration;
    cvy_places places;
    cvy_threads *bound;
    cvy_machine *base; /* of --machine; NULL */
    cvy_op *op;        /* of plans of --model */
    double *distance;  /* of each of them */
    int ops;
    cvy_zoo_layers layers; /* these, and some of the zoo */
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

static int find_block(const work *w) { return w->calibration->host.vector_bits >= 512 ? 16 : 8; }

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
        .limits = {.block = find_block(w),
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
    for (int i = 0; i < w->ops; i++) {
        CVY_TRY(cvy_zoo_layers_add(&w->layers, &w->op[i], w->distance[i]));
    }
    int of_zoo = (int)fmin(zoo_per_s * options.budget_s, most_of_zoo);
    CVY_TRY(cvy_zoo_layers_draw(options.seed, &options.limits, of_zoo, &w->layers));
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

/* What is measured on each rank, of which a journal is kept. */
static cvy_status measure_kernels(work *w)
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
    status = cli_ranks_agree(status);
done:
    cvy_journal_close(&journal);
    return status;
}

static cvy_status measure(work *w)
{
    cvy_status status = w->base ? CVY_OK : measure_kernels(w);
    status = status == CVY_OK ? measure_network(w) : status;
    if (status == CVY_OK && !w->base) {
        status = cli_ranks_agree(cvy_input_measure(w->journal, &w->calibration->input));
    }
    if (status == CVY_OK) {
        status = cvy_beside_measure(w->options->train.comm, &w->chain, &w->calibration->network,
                                    &w->calibration->beside);
    }
    cli_progress_clear(&w->progress);
    if (status == CVY_PREEMPTED) {
        cli_progress_log(&w->progress, "%s", cvy_error_message());
    }
    return status;
}

/* The first rank's kernels are the file's: what the others measured kept them as busy as it was. */
static cvy_status write_down(work *w)
{
    char noise[CVY_NOISE_TEXT];
    if (w->options->calibrate.import) {
        CVY_TRY(cvy_calibration_fit(w->calibration));
        CVY_TRY(cvy_calibration_replace(w->calibration, w->base, w->path));
    } else if (w->base) {
        CVY_TRY(cvy_calibration_extend(w->calibration, w->base, w->path));
    } else {
        CVY_TRY(cvy_calibration_fit(w->calibration));
        CVY_TRY(cvy_calibration_save(w->calibration, w->path));
    }
    if (*cvy_noise_print(&w->calibration->survey.noise, noise)) {
        cli_progress_warn(&w->progress, noise);
    }
    return w->options->json ? cli_calibration_print_json(w->calibration, w->path)
                            : cli_calibration_print(w->calibration, w->path);
}

/* Kernels of another device, whose peaks are those of --machine. */
static cvy_status import(work *w)
{
    const cvy_device *d = &w->base->device;
    cvy_calibration *c = w->calibration;
    CVY_REQUIRE(cli_ranks_count() == 1, CVY_ERR_INPUT, "--import: one rank reads it, found %d", cli_ranks_count());
    CVY_REQUIRE(d->peak_flop_per_s[CVY_PRECISION_FP32] > 0.0 && d->memory_Bps > 0.0, CVY_ERR_INPUT,
                "--machine %s: its peak in fp32 and its memory-bandwidth must be known", w->options->plan.machine);
    c->peaks = (cvy_peaks){.flop_per_s = d->peak_flop_per_s[CVY_PRECISION_FP32], .memory_Bps = d->memory_Bps,
                           .launch_s = d->launch_s};
    c->host = (cvy_topology){.cores = d->cores, .vector_bits = d->vector_bits, .memory_bytes = d->memory_bytes};
    snprintf(c->host.processor, sizeof c->host.processor, "%s", d->name);
    CVY_TRY(cvy_import_kernels(w->options->calibrate.import, &c->survey));
    for (int i = 0; i < c->survey.rows; i++) { /* no launch takes longer than the shortest kernel */
        c->peaks.launch_s = fmin(c->peaks.launch_s, c->survey.row[i].time.seconds);
    }
    w->base->device.launch_s = cvy_round_figure(c->peaks.launch_s);
    return CVY_OK;
}

static cvy_status prepare(work *w)
{
    time_t now = time(NULL);
    struct tm day;
    strftime(w->calibration->date, sizeof w->calibration->date, "%Y-%m-%d", localtime_r(&now, &day));
    cvy_topology_get(&w->calibration->host);
    w->calibration->input.startup_s = cvy_input_find_startup_s();
    CVY_TRY(cvy_backend_chain_find(w->options->train.backend, &w->chain));
    CVY_TRY(find_paths(w));
    CVY_REQUIRE(!w->options->calibrate.import || w->options->plan.machine, CVY_ERR_INPUT, "--import: --machine has to "
                "say what the kernels were measured on: a file, or a name such as dgx1-v100");
    if (w->options->plan.machine) {
        CVY_REQUIRE(!w->options->model, CVY_ERR_INPUT, "--model: with --machine no kernels are measured");
        CVY_TRY(cvy_machine_open(w->options->plan.machine, &w->base));
    }
    if (w->options->calibrate.import) {
        return import(w);
    }
    return cli_calibration_find_ops(w->options, find_block(w), &w->op, &w->distance, &w->ops);
}

static cvy_status calibrate(work *w)
{
    CVY_TRY(cli_ranks_agree(prepare(w)));
    CVY_TRY(cvy_process_measure(w->options->train.comm, (int)w->options->threads, &w->calibration->process_bytes));
    CVY_TRY(take_threads(w));
    CVY_TRY(w->options->calibrate.import ? CVY_OK : measure(w));
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
        cvy_machine_destroy(&w.base);
        cvy_free(w.op);
        cvy_free(w.distance);
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
                "  convoy calibrate --import v100.csv --machine dgx1-v100 -o mine.yaml\n"
                "  mpiexec -n 8 convoy calibrate --machine two.yaml -o eight.yaml\n"
                "  convoy plan resnet50 --machine here.yaml\n",
    .on_all_ranks = true,
    .run = run_calibrate,
};
