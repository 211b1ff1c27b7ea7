/*
 * A run's config.yaml: the options in force when it began. Resume and eval read it under their own command line, so
 * `convoy train --resume RUN` and `convoy eval RUN` need nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/options_common.h"
#include "data/data.h"

static const char config_name[] = "config.yaml";

bool cli_is_run(const char *path)
{
    char *config = cvy_path_join(path, config_name);
    bool found = config && cvy_file_exists(config);
    cvy_free(config);
    return found;
}

cvy_status cli_load_run(const char *run, cli_options *options, cvy_parsed_options *parsed_out)
{
    static char program[] = "convoy", flag[] = "--config";
    const cli_command saved = {.name = "train", .operands = "", .rows = CLI_SAVED, .summary = ""};
    CVY_REQUIRE(cvy_folder_exists(run), CVY_ERR_INPUT, "%s: no such run", run);
    CVY_REQUIRE(cli_is_run(run), CVY_ERR_INPUT, "%s: not a run: it holds no %s", run, config_name);
    char *config = cvy_path_join(run, config_name);
    if (!config) {
        return CVY_ERR_MEMORY;
    }
    char *line[] = {program, flag, config, NULL};
    cvy_status status = cli_parse(&saved, 3, line, options, parsed_out);
    cvy_free(config);
    return status;
}

static bool is_synthetic(const char *data)
{
    const cvy_data_kind *kind;
    for (int i = 0; (kind = cvy_data_kind_get(i)); i++) {
        if (kind->synthetic && strcmp(kind->name, data) == 0) {
            return true;
        }
    }
    return false;
}

/* As cvy_model_open() tells a file from a name of the zoo. */
static bool is_model_file(const char *model)
{
    const char *dot = strrchr(model, '.');
    return strchr(model, '/') || (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0));
}

/* Put the whole path in place of a path that exists, so that a run can be resumed from another folder. */
static void resolve_path(const char **path, bool is_path, char **owned_out)
{
    *owned_out = *path && is_path ? realpath(*path, NULL) : NULL;
    *path = *owned_out ? *owned_out : *path;
}

cvy_status cli_save_run(const char *run, const cli_options *options)
{
    cvy_option option[CLI_MAX_OPTIONS];
    cvy_command_options table = {.command = "train", .option = option};
    cli_options saved = *options;
    char *model, *data, *weights;
    cli_select_options(CLI_SAVED, option);
    resolve_path(&saved.model, is_model_file(saved.model), &model);
    resolve_path(&saved.train.data, !is_synthetic(saved.train.data), &data);
    resolve_path(&saved.train.weights, true, &weights);
    cvy_status status = CVY_OK;
    char *path = cvy_path_join(run, config_name);
    char *yaml = path ? cvy_options_print_yaml(&table, &saved) : NULL;
    if (!yaml) {
        status = CVY_ERR_MEMORY;
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_folder_create(run, CVY_ERR_IO));
    CVY_TRY_GOTO(status, done, cvy_file_write(path, yaml, strlen(yaml), CVY_ERR_IO));
done:
    cvy_free(yaml);
    cvy_free(path);
    free(model);
    free(data);
    free(weights);
    return status;
}
