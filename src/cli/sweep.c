/* convoy sweep: how a training scales, what limits it, and what would change with another machine. */
#include "cli/sweep.h"

#include <string.h>

#include "base/memory.h"

/* The five axes of the study of spec/scaling-model.md 2, of which ranks are one, and latency beside them. */
static const char study[] = "batch=x1/4:x4;arithmetic=x1/4:x4;memory-bandwidth=x1/4:x4;link-bandwidth=x1/4:x4;"
                            "link-latency=x1/4:x4";

/* Values that leave each batch a sample. */
static void keep_samples(double batch, cvy_sweep_axis *axis)
{
    int kept = 0;
    for (int i = 0; i < axis->values; i++) {
        if (batch * axis->value[i].factor >= 1.0) {
            axis->value[kept++] = axis->value[i];
        }
    }
    axis->values = kept;
}

/* What of the study there is to vary: a machine of one device has no links. */
static cvy_status add_study(cli_study *s)
{
    const cli_problem *problem = s->problem;
    CVY_TRY(cli_parse_axes(study, problem, &s->options));
    keep_samples((double)problem->batch, &s->options.axis[0]);
    int kept = 0;
    for (int i = 0; i < s->options.axes; i++) {
        cvy_varied parameter = s->options.axis[i].parameter;
        bool has = parameter == CVY_VARIED_BATCH ||
                   cvy_varied_get(parameter, problem->machine, problem->oracle.precision) > 0.0;
        if (has) {
            s->options.axis[kept++] = s->options.axis[i];
        }
    }
    s->options.axes = kept;
    return CVY_OK;
}

/* Names by ';'; auto among them is the search. */
static cvy_status read_strategies(cli_study *s)
{
    const char *given = s->problem->options->sweep.strategies;
    s->strategies = cvy_strdup(given ? given : "data");
    if (!s->strategies) {
        return CVY_ERR_MEMORY;
    }
    char *rest = s->strategies, *name;
    while ((name = strsep(&rest, ";"))) {
        if (strcmp(name, "auto") == 0) {
            s->options.search = true;
            continue;
        }
        CVY_REQUIRE(s->options.strategies < CVY_SWEEP_MOST_STRATEGIES, CVY_ERR_INPUT, "--strategy: more than %d",
                    CVY_SWEEP_MOST_STRATEGIES);
        s->options.strategy[s->options.strategies++] = name;
    }
    if (s->options.strategies == 0) {
        s->options.strategy[s->options.strategies++] = "data";
    }
    return CVY_OK;
}

cvy_status cli_study_read(const cli_problem *problem, cli_study *s)
{
    const cli_sweep_options *o = &problem->options->sweep;
    *s = (cli_study){.problem = problem};
    s->options.oracle = problem->oracle;
    s->options.batch = problem->batch;
    s->options.batch_per_rank = problem->batch_per_rank;
    s->options.cross = o->cross;
    CVY_REQUIRE(!o->study || !o->vary, CVY_ERR_INPUT, "--study varies five parameters by itself, without --vary");
    CVY_REQUIRE(!o->cross || o->vary, CVY_ERR_INPUT, "--cross needs --vary, what to vary together");
    CVY_TRY(cli_parse_ranks(o->ranks, cvy_machine_devices(problem->machine), &s->options));
    CVY_TRY(read_strategies(s));
    return o->vary ? cli_parse_axes(o->vary, problem, &s->options) : add_study(s);
}

void cli_study_clear(cli_study *s)
{
    cvy_sweep_destroy(&s->sweep);
    cvy_free(s->strategies);
    *s = (cli_study){.problem = NULL};
}

/* Whether anything came out: a strategy that is possible nowhere is told with its reason. */
cvy_status cli_study_check(const cli_study *s)
{
    const cvy_sweep *sweep = s->sweep;
    for (int i = 0; i < sweep->points; i++) {
        if (sweep->point[i].asked.feasible) {
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INFEASIBLE, "strategy %s: %s", s->options.strategy[0], sweep->point[0].asked.why_not);
}

static cvy_status show(cli_study *s)
{
    const cli_options *o = s->problem->options;
    CVY_TRY(cvy_sweep_create(s->problem->model, s->problem->machine, &s->options, &s->sweep));
    if (o->json) {
        CVY_TRY(cli_print_study_json(s));
    } else {
        cli_print_study(s);
    }
    if (o->sweep.csv) {
        CVY_TRY(cli_write_study_csv(s, o->sweep.csv));
    }
    if (o->sweep.out) {
        CVY_TRY(cli_write_study_charts(s, o->sweep.out));
    }
    return cli_study_check(s);
}

static cvy_status answer(cli_problem *problem)
{
    cli_study s;
    cvy_status status = cli_study_read(problem, &s);
    status = status == CVY_OK ? show(&s) : status;
    cli_study_clear(&s);
    return status;
}

static cvy_status run_sweep(const cli_command *command, int argc, char **argv)
{
    return cli_problem_run(command, argc, argv, 1, answer);
}

const cli_command cli_sweep = {
    .name = "sweep",
    .operands = "MODEL",
    .usage = "MODEL --machine MACHINE",
    .max_operands = 1,
    .rows = CLI_SWEEP,
    .summary = "Study how a training scales, and what limits it",
    .examples = "  convoy sweep resnet50 --machine abci --ranks 1:1024 --batch 32/rank\n"
                "  convoy sweep vgg16 --machine abci --vary link-bandwidth=10Gbit/s,100Gbit/s\n"
                "  convoy sweep vgg16 --machine abci --strategy auto --csv study.csv -o charts\n",
    .run = run_sweep,
};
