/* convoy report: a plan, a study, a run or a comparison as one HTML page that holds all that it shows. */
#include "cli/report.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/yaml.h"
#include "cli/sweep.h"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), most = strlen(end);
    return length >= most && strcmp(text + length - most, end) == 0;
}

/* Whether a file is a plan's: a model's has layers of its own and no mesh. */
static cvy_status find_out_plan(const char *path, bool *plan_out)
{
    cvy_yaml *yaml = NULL;
    *plan_out = false;
    if (!(ends_with(path, ".yaml") || ends_with(path, ".yml")) || !cvy_file_exists(path)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_yaml_load(path, &yaml));
    const cvy_yaml_node *root = cvy_yaml_root(yaml);
    *plan_out = cvy_yaml_node_kind(root) == CVY_YAML_MAPPING && cvy_yaml_find(root, "mesh") != NULL;
    cvy_yaml_destroy(&yaml);
    return CVY_OK;
}

/* A count is that of a plan, where nothing else asks for a study. */
static cvy_status read_ranks(cli_options *o)
{
    cvy_sweep_options counts = {.rank_counts = 0};
    bool varied = o->sweep.vary || o->sweep.study;
    if (o->sweep.ranks && !varied && strspn(o->sweep.ranks, "0123456789") == strlen(o->sweep.ranks)) {
        CVY_TRY(cli_parse_ranks(o->sweep.ranks, CVY_MAX_RANKS, &counts));
        o->plan.ranks = counts.ranks[0];
        o->sweep.ranks = NULL;
    }
    return CVY_OK;
}

/* Lists of ranks, or parameters to vary, ask for a study. */
static bool is_study(const cli_options *o) { return o->sweep.ranks || o->sweep.vary || o->sweep.study; }

/* Strategies of a study: as they are given; data beside what a search finds where it is left open. */
static void complete_study(cli_options *o)
{
    o->sweep.strategies = strcmp(o->plan.strategy, "auto") == 0 ? "data;auto" : o->plan.strategy;
    o->plan.strategy = "auto";
}

static cvy_status report_plan(const cli_command *command, cli_options *o, const char *what)
{
    cli_problem problem;
    bool plan;
    CVY_TRY(find_out_plan(what, &plan));
    o->plan.plan = plan ? what : NULL;
    CVY_REQUIRE(!plan || !is_study(o), CVY_ERR_INPUT, "%s: a plan is of its own ranks; a study takes the model", what);
    const bool study = is_study(o);
    if (study) {
        complete_study(o);
    }
    cvy_status status = cli_problem_open(command, o, plan ? NULL : what, study, &problem);
    if (status == CVY_OK) {
        status = study ? cli_report_study(&problem, o->report.out) : cli_report_problem(&problem, o->report.out);
    }
    cli_problem_clear(&problem);
    return status;
}

/* By what the operand is. */
static cvy_status report_to(const cli_command *command, cli_options *o, const char *what, const char *path)
{
    o->report.out = path;
    CVY_TRY(read_ranks(o));
    CVY_TRY(cvy_file_check_writable(path, CVY_ERR_IO));
    CVY_TRY(cvy_folder_exists(what)   ? cli_report_run(what, o, path)
            : ends_with(what, ".csv") ? cli_report_measured(what, o, path)
                                      : report_plan(command, o, what));
    printf("%s\n", path);
    return CVY_OK;
}

static cvy_status report(const cli_command *command, cli_options *o, const char *what)
{
    static const char usual[] = "report.html";
    CVY_REQUIRE(what, CVY_ERR_INPUT, "convoy report needs a run, a plan file, a table of measurements or a model: "
                "convoy report RUN, or MODEL --machine NAME");
    char *inside = cvy_path_join(what, usual);
    if (!inside) {
        return CVY_ERR_MEMORY;
    }
    const char *otherwise = cvy_folder_exists(what) ? inside : usual;
    cvy_status status = report_to(command, o, what, o->report.out ? o->report.out : otherwise);
    cvy_free(inside);
    return status;
}

static cvy_status run_report(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        status = report(command, &options, parsed.operands ? parsed.operand[0] : options.model);
    }
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_report = {
    .name = "report",
    .operands = "RUN|FILE|MODEL",
    .usage = "RUN\n"
             "PLAN.yaml\n"
             "MEASURED.csv\n"
             "MODEL --machine MACHINE",
    .max_operands = 1,
    .rows = CLI_REPORT,
    .summary = "Show a run, a plan, a study or a comparison as a page with charts",
    .examples = "  convoy report run\n"
                "  convoy report resnet50 --machine abci --ranks 64 -o resnet50.html\n"
                "  convoy report resnet50 --machine abci --ranks 1:1024 -o study.html\n",
    .run = run_report,
};
