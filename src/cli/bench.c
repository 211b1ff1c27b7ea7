/*
 * convoy bench: throughput of training on random data. Each figure stands beside the floor: what the steps must take at
 * the peak rates that were measured in the same run, so that the distance to it is what software can still win.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/predict.h"
#include "cli/profile_table.h"
#include "cli/progress.h"
#include "cli/ranks.h"

static const char *print_precision(const cli_options *options)
{
    return options->precision == CLI_FP64 ? "fp64" : "fp32";
}

static const char *print_strategy(const cli_options *options)
{
    return options->strategy ? options->strategy : cli_ranks_count() == 1 ? "serial" : "data";
}

/* The keys are a contract with scripts. */
static cvy_status print_json(const cli_options *options, const cvy_throughput *t)
{
    return cli_json_print(json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o}",
        "model", options->model, "strategy", print_strategy(options), "ranks", cli_ranks_count(), "threads_per_rank",
        t->threads, "global_batch", (json_int_t)t->batch, "precision", print_precision(options), "images_per_s",
        cli_json_number(t->images_per_s), "iteration_s", cli_json_number(t->iteration_s), "floor_s",
        cli_json_number(t->floor_s), "forward_s", cli_json_number(t->forward_s), "backward_s",
        cli_json_number(t->backward_s), "update_s", cli_json_number(t->update_s), "communication_s",
        cli_json_number(t->communication_s), "peak_memory_bytes", (json_int_t)t->peak_memory_bytes, "recompute_s",
        cli_json_number(t->recompute_s), "primitives_floor_s", cli_json_number(t->primitives_floor_s), "iterations",
        (json_int_t)t->iterations, "measured_s", cli_json_number(t->measured_s), "step_overhead_s",
        cli_json_number(t->step_overhead_s), "probe_s", cli_json_number(t->probe_s), "steps",
        cli_json_steps(t->row, t->rows, t->measured_s)));
}

static void print_part(const char *name, double seconds, double iteration_s)
{
    char unit[CVY_UNIT_TEXT];
    printf("  %-14s%-12s %5.1f %%\n", name, cvy_print_seconds(seconds, unit),
           iteration_s > 0 ? 100 * seconds / iteration_s : 0.0);
}

static void print_result(const cli_options *options, const cvy_throughput *t)
{
    char unit[3][CVY_UNIT_TEXT];
    double parts_s = t->forward_s + t->recompute_s + t->backward_s + t->update_s + t->communication_s;
    char parts[32] = "", ranks[256] = "";
    if (options->train.micro_batches > 1) {
        snprintf(parts, sizeof parts, " in %d parts", options->train.micro_batches);
    }
    if (cli_ranks_count() > 1) {
        snprintf(ranks, sizeof ranks, "%d ranks (%.200s), ", cli_ranks_count(), print_strategy(options));
    }
    printf("%s: %sbatch %" PRId64 "%s, %s, %d thread%s%s, %" PRId64 " iterations\n\n", options->model, ranks, t->batch,
           parts, print_precision(options), t->threads, t->threads == 1 ? "" : "s", *ranks ? " a rank" : "",
           t->iterations);
    printf("images/s        %s\n", cvy_print_rate(t->images_per_s, unit[0]));
    printf("iteration       %s (median; quartiles %s to %s)\n", cvy_print_seconds(t->iteration_s, unit[0]),
           cvy_print_seconds(t->iteration_quartile_s[0], unit[1]),
           cvy_print_seconds(t->iteration_quartile_s[1], unit[2]));
    print_part("forward", t->forward_s, t->iteration_s);
    if (t->recompute_s > 0.0) {
        print_part("recompute", t->recompute_s, t->iteration_s);
    }
    print_part("backward", t->backward_s, t->iteration_s);
    print_part("update", t->update_s, t->iteration_s);
    print_part("communication", t->communication_s, t->iteration_s);
    print_part("other", t->iteration_s > parts_s ? t->iteration_s - parts_s : 0, t->iteration_s);
    printf("floor           %s; the iteration takes %.2f times as long\n", cvy_print_seconds(t->floor_s, unit[0]),
           t->floor_s > 0 ? t->iteration_s / t->floor_s : 0.0);
    if (t->primitives_floor_s > 0.0) {
        printf("primitives      %s for the best by themselves and the bytes of the rest; %.0f %% reached\n",
               cvy_print_seconds(t->primitives_floor_s, unit[0]), 100.0 * t->primitives_floor_s / t->iteration_s);
    }
    printf("  of            %s and %s/s, measured in this run\n", cvy_print_si(t->peak_flops, "FLOP/s", unit[0]),
           cvy_print_bytes(t->bandwidth_Bps, unit[1]));
    printf("memory          %s at most, %s of it tensors\n", cvy_print_bytes((double)t->peak_memory_bytes, unit[0]),
           cvy_print_bytes((double)t->tensor_bytes, unit[1]));
    printf("format changes  %d an iteration\n", t->format_changes);
    if (t->step_overhead_s > 0.0) {
        printf("step overhead   %s a step outside its kernel, %d steps an iteration\n",
               cvy_print_seconds(t->step_overhead_s, unit[0]), t->steps);
    }
    printf("\n");
    cli_print_profile(t->row, t->rows, t->measured_s, options->log_view ? 0 : 8);
}

static void handle_setup(void *context, const char *line) { cli_progress_log(context, "%s", line); }

static cvy_status measure(const cli_options *options, const cvy_model *model, cvy_throughput *throughput_out)
{
    cli_progress progress;
    const cvy_train_observer observer = {.context = &progress, .setup = handle_setup};
    cli_progress_init(options->quiet || options->json, &progress);
    const cvy_throughput_options effort = {options->warmup, options->iterations, options->primitives};
    CVY_TRY(cli_ranks_unwatch(CVY_OK));
    return cvy_measure_throughput(model, &options->train, &observer, &effort, throughput_out);
}

static cvy_status bench_model(const cli_options *options, const cvy_model *model, const cli_prediction *prediction)
{
    cvy_throughput throughput = {0};
    cvy_memory_keep();
    cvy_status status = measure(options, model, &throughput);
    cli_predict_rows(prediction, throughput.row, throughput.rows);
    if (status == CVY_OK && options->json) {
        status = print_json(options, &throughput);
    } else if (status == CVY_OK) {
        print_result(options, &throughput);
    }
    cvy_throughput_clear(&throughput);
    return status;
}

static cvy_status run_bench(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed = {.operands = 0};
    cli_decision decision = {.strategy = ""};
    cli_prediction prediction = {.kinds = 0};
    cvy_model *model = NULL;
    cvy_status status = cli_decide_line(command, argc, argv, &options, &parsed, &decision);
    if (!parsed.help) {
        status = status == CVY_OK ? cvy_model_open(options.model, &model) : status;
        status = cli_decide_strategy(status, model, &options, &decision);
    }
    if (status == CVY_OK && (options.log_view || options.json)) {
        status = cli_predict(&options, &decision, &prediction);
    }
    if (status == CVY_OK && !parsed.help) {
        status = bench_model(&options, model, &prediction);
    }
    cvy_model_destroy(&model);
    cli_prediction_clear(&prediction);
    cli_decision_clear(&decision);
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .operands = "MODEL",
    .max_operands = 1,
    .rows = CLI_BENCH,
    .summary = "Measure the throughput of training on random data",
    .examples = "  convoy bench resnet50 --batch 32\n"
                "  convoy bench lenet5 --threads 1 --iterations 200 --json\n",
    .on_all_ranks = true,
    .run = run_bench,
};
