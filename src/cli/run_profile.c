/* The file is for scripts, too: keys stay. Whoever reads it takes it for hostile, as every file. */
#include "cli/run_profile.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/topology.h"
#include "cli/json_output.h"
#include "convoy/version.h"

enum { SCHEMA = 1, LIMIT_BYTES = 16 << 20, MOST_ROWS = 4096 };

static const char file_name[] = "profile.json";
static const double MOST_SECONDS = 1e12, MOST_AMOUNT = 1e30;
static const int64_t MANY = INT64_C(1) << 60;

/* ---- writing ---- */

static json_t *list_numbers(const double *number, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(list, cli_json_number(number[i]));
    }
    return list;
}

static json_t *describe_ranks(const cli_run_profile *p)
{
    json_t *ranks = json_array();
    for (int i = 0; i < p->told; i++) {
        json_array_append_new(ranks, json_pack(
            "{s:o, s:I, s:o, s:o}", "iteration_s", cli_json_number(p->rank[i].iteration_s), "peak_memory_bytes",
            (json_int_t)p->rank[i].peak_memory_bytes, "seconds", list_numbers(p->rank[i].seconds, p->rows),
            "predicted_s", list_numbers(p->rank_predicted_s + (size_t)i * (size_t)p->rows, p->rows)));
    }
    return ranks;
}

static json_t *describe_measured(const cli_run_profile *p)
{
    return json_pack("{s:I, s:o, s:I, s:o, s:o}", "iterations", (json_int_t)p->iterations, "iteration_s",
                     cli_json_number(p->iteration_s), "peak_memory_bytes", (json_int_t)p->peak_memory_bytes, "steps",
                     cli_json_profile(p->row, p->rows), "ranks", describe_ranks(p));
}

static json_t *describe_predicted(const cli_run_profile *p)
{
    if (!p->machine || p->predicted_iteration_s <= 0.0) {
        return json_null();
    }
    return json_pack("{s:s, s:o, s:o, s:I}", "machine", p->machine, "iteration_s",
                     cli_json_number(p->predicted_iteration_s), "error_relative", cli_json_number(p->predicted_error),
                     "memory_bytes", (json_int_t)p->predicted_memory_bytes);
}

static json_t *describe_environment(void)
{
    cvy_topology topology;
    struct utsname system = {.sysname = "unknown"};
    cvy_topology_get(&topology);
    (void)uname(&system);
    json_t *name = json_sprintf("%s %s %s", system.sysname, system.release, system.machine);
    return json_pack("{s:s, s:s, s:o, s:s, s:i, s:I}", "version", CVY_VERSION, "host", system.nodename, "system", name,
                     "processor", topology.processor, "cores", topology.cores_machine, "memory_bytes",
                     (json_int_t)topology.memory_bytes);
}

cvy_status cli_run_profile_save(const char *run, const cli_run_profile *profile)
{
    char *path = cvy_path_join(run, file_name);
    json_t *json = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "schema", SCHEMA, "model",
                             profile->model, "strategy", profile->strategy, "precision", profile->precision, "ranks",
                             (json_int_t)profile->ranks, "threads_per_rank", (json_int_t)profile->threads,
                             "global_batch", (json_int_t)profile->batch, "measured", describe_measured(profile),
                             "predicted", describe_predicted(profile), "environment", describe_environment());
    cvy_status status = CVY_ERR_MEMORY;
    CVY_REQUIRE_GOTO(status, done, path && json, CVY_ERR_MEMORY, "no memory for the profile of the run");
    status = cvy_json_save(path, json, CVY_ERR_IO);
done:
    json_decref(json);
    cvy_free(path);
    return status;
}

/* ---- reading ---- */

static cvy_status read_row(const json_t *object, const cvy_json_source *source, cvy_profile_row *row)
{
    const char *name;
    int64_t rank, ranks;
    CVY_TRY(cvy_json_get_text(object, "step", source, &name));
    CVY_TRY(cvy_json_get_int(object, "calls", source, 0, MANY, &row->calls));
    CVY_TRY(cvy_json_get_real(object, "seconds", source, 0.0, MOST_SECONDS, &row->seconds));
    CVY_TRY(cvy_json_get_real(object, "flop", source, 0.0, MOST_AMOUNT, &row->flop));
    CVY_TRY(cvy_json_get_real(object, "bytes", source, 0.0, MOST_AMOUNT, &row->bytes));
    CVY_TRY(cvy_json_get_int(object, "rank", source, 0, INT32_MAX, &rank));
    CVY_TRY(cvy_json_get_int(object, "ranks", source, 1, INT32_MAX, &ranks));
    CVY_TRY(cvy_json_get_real(object, "least_s", source, 0.0, MOST_SECONDS, &row->least_s));
    if (json_object_get(object, "predicted_s")) {
        CVY_TRY(cvy_json_get_real(object, "predicted_s", source, 0.0, MOST_SECONDS, &row->predicted_s));
    }
    snprintf(row->name, sizeof row->name, "%s", name);
    row->rank = (int)rank;
    row->ranks = (int)ranks;
    return CVY_OK;
}

static cvy_status read_rows(const json_t *list, const cvy_json_source *source, cli_run_profile *p)
{
    const size_t count = json_array_size(list);
    CVY_REQUIRE(count <= MOST_ROWS, CVY_ERR_INPUT, "%s: steps: found %zu, expected at most %d", source->file, count,
                MOST_ROWS);
    p->row = cvy_calloc(count + 1, sizeof *p->row);
    if (!p->row) {
        return CVY_ERR_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        CVY_REQUIRE(json_is_object(object), CVY_ERR_INPUT, "%s: steps: row %zu is no object", source->file, i + 1);
        CVY_TRY(read_row(object, source, &p->row[p->rows++]));
    }
    return CVY_OK;
}

/* A number for each row. */
static cvy_status read_numbers(const json_t *object, const char *key, const cvy_json_source *source, int rows,
                               double *number_out)
{
    const json_t *list;
    CVY_TRY(cvy_json_get_child(object, key, source, JSON_ARRAY, &list));
    CVY_REQUIRE(json_array_size(list) == (size_t)rows, CVY_ERR_INPUT, "%s: %s: found %zu numbers, expected %d",
                source->file, key, json_array_size(list), rows);
    for (int i = 0; i < rows; i++) {
        double number = json_number_value(json_array_get(list, (size_t)i)); /* 0 where it is none */
        CVY_REQUIRE(number >= 0.0 && number <= MOST_SECONDS, CVY_ERR_INPUT, "%s: %s: found %.9g, expected 0 to %.9g",
                    source->file, key, number, MOST_SECONDS);
        number_out[i] = number;
    }
    return CVY_OK;
}

static cvy_status read_rank(const json_t *object, const cvy_json_source *source, cli_run_profile *p, int i)
{
    const size_t at = (size_t)i * (size_t)p->rows;
    CVY_REQUIRE(json_is_object(object), CVY_ERR_INPUT, "%s: ranks: rank %d is no object", source->file, i);
    p->rank[i].seconds = p->rank[0].seconds + at;
    CVY_TRY(cvy_json_get_real(object, "iteration_s", source, 0.0, MOST_SECONDS, &p->rank[i].iteration_s));
    CVY_TRY(cvy_json_get_int(object, "peak_memory_bytes", source, 0, MANY, &p->rank[i].peak_memory_bytes));
    CVY_TRY(read_numbers(object, "seconds", source, p->rows, p->rank[i].seconds));
    return read_numbers(object, "predicted_s", source, p->rows, p->rank_predicted_s + at);
}

/* Files of older runs do not tell them apart. */
static cvy_status read_ranks(const json_t *measured, const cvy_json_source *source, cli_run_profile *p)
{
    const json_t *list = json_object_get(measured, "ranks");
    if (!list) {
        return CVY_OK;
    }
    CVY_TRY(cvy_json_get_child(measured, "ranks", source, JSON_ARRAY, &list));
    const size_t count = json_array_size(list), numbers = count * (size_t)p->rows + 1;
    CVY_REQUIRE(count == 0 || count == (size_t)p->ranks, CVY_ERR_INPUT, "%s: ranks: found %zu, expected %lld",
                source->file, count, (long long)p->ranks);
    p->rank = cvy_calloc(count + 1, sizeof *p->rank);
    p->rank_predicted_s = cvy_calloc(numbers, sizeof *p->rank_predicted_s);
    if (!p->rank || !p->rank_predicted_s || !(p->rank[0].seconds = cvy_calloc(numbers, sizeof(double)))) {
        return CVY_ERR_MEMORY;
    }
    for (; p->told < (int)count; p->told++) {
        CVY_TRY(read_rank(json_array_get(list, (size_t)p->told), source, p, p->told));
    }
    return CVY_OK;
}

static cvy_status read_measured(const cvy_json_source *source, cli_run_profile *p)
{
    const json_t *measured, *steps;
    CVY_TRY(cvy_json_get_child(p->json, "measured", source, JSON_OBJECT, &measured));
    CVY_TRY(cvy_json_get_int(measured, "iterations", source, 0, MANY, &p->iterations));
    CVY_TRY(cvy_json_get_real(measured, "iteration_s", source, 0.0, MOST_SECONDS, &p->iteration_s));
    CVY_TRY(cvy_json_get_int(measured, "peak_memory_bytes", source, 0, MANY, &p->peak_memory_bytes));
    CVY_TRY(cvy_json_get_child(measured, "steps", source, JSON_ARRAY, &steps));
    CVY_TRY(read_rows(steps, source, p));
    return read_ranks(measured, source, p);
}

static cvy_status read_predicted(const cvy_json_source *source, cli_run_profile *p)
{
    const json_t *predicted = json_object_get(p->json, "predicted");
    if (!predicted || json_is_null(predicted)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_json_get_child(p->json, "predicted", source, JSON_OBJECT, &predicted));
    CVY_TRY(cvy_json_get_text(predicted, "machine", source, &p->machine));
    CVY_TRY(cvy_json_get_real(predicted, "iteration_s", source, 0.0, MOST_SECONDS, &p->predicted_iteration_s));
    CVY_TRY(cvy_json_get_real(predicted, "error_relative", source, 0.0, MOST_SECONDS, &p->predicted_error));
    return cvy_json_get_int(predicted, "memory_bytes", source, 0, MANY, &p->predicted_memory_bytes);
}

/* Profiles of before have none. */
static cvy_status read_environment(const cvy_json_source *source, cli_run_profile *p)
{
    const json_t *object;
    const char *version, *host, *system, *processor;
    cli_run_environment *e = &p->environment;
    if (!json_object_get(p->json, "environment")) {
        return CVY_OK;
    }
    CVY_TRY(cvy_json_get_child(p->json, "environment", source, JSON_OBJECT, &object));
    CVY_TRY(cvy_json_get_text(object, "version", source, &version));
    CVY_TRY(cvy_json_get_text(object, "host", source, &host));
    CVY_TRY(cvy_json_get_text(object, "system", source, &system));
    CVY_TRY(cvy_json_get_text(object, "processor", source, &processor));
    CVY_TRY(cvy_json_get_int(object, "cores", source, 1, INT32_MAX, &e->cores));
    CVY_TRY(cvy_json_get_int(object, "memory_bytes", source, 0, MANY, &e->memory_bytes));
    snprintf(e->version, sizeof e->version, "%s", version);
    snprintf(e->host, sizeof e->host, "%s", host);
    snprintf(e->system, sizeof e->system, "%s", system);
    snprintf(e->processor, sizeof e->processor, "%s", processor);
    return CVY_OK;
}

static cvy_status read_profile(const cvy_json_source *source, cli_run_profile *p)
{
    int64_t schema;
    CVY_REQUIRE(json_is_object(p->json), CVY_ERR_INPUT, "%s: no object", source->file);
    CVY_TRY(cvy_json_get_int(p->json, "schema", source, SCHEMA, SCHEMA, &schema));
    CVY_TRY(cvy_json_get_text(p->json, "model", source, &p->model));
    CVY_TRY(cvy_json_get_text(p->json, "strategy", source, &p->strategy));
    CVY_TRY(cvy_json_get_text(p->json, "precision", source, &p->precision));
    CVY_TRY(cvy_json_get_int(p->json, "ranks", source, 1, INT32_MAX, &p->ranks));
    CVY_TRY(cvy_json_get_int(p->json, "threads_per_rank", source, 1, INT32_MAX, &p->threads));
    CVY_TRY(cvy_json_get_int(p->json, "global_batch", source, 1, MANY, &p->batch));
    CVY_TRY(read_measured(source, p));
    CVY_TRY(read_environment(source, p));
    return read_predicted(source, p);
}

cvy_status cli_run_profile_load(const char *run, cli_run_profile *profile_out)
{
    cli_run_profile profile = {.rows = 0};
    cvy_status status = CVY_ERR_MEMORY;
    CVY_REQUIRE(cvy_folder_exists(run), CVY_ERR_INPUT, "%s: no such run", run);
    char *path = cvy_path_join(run, file_name);
    CVY_REQUIRE(path, CVY_ERR_MEMORY, "no memory for the path of the profile");
    const cvy_json_source source = {path, CVY_ERR_INPUT};
    CVY_REQUIRE_GOTO(status, done, cvy_file_exists(path), CVY_ERR_INPUT,
                     "%s: holds no %s, which convoy train --out writes when it ends", run, file_name);
    CVY_TRY_GOTO(status, done, cvy_json_load(&source, LIMIT_BYTES, &profile.json));
    CVY_TRY_GOTO(status, done, read_profile(&source, &profile));
    *profile_out = profile;
    profile = (cli_run_profile){.rows = 0};
done:
    cli_run_profile_clear(&profile);
    cvy_free(path);
    return status;
}

void cli_run_profile_clear(cli_run_profile *profile)
{
    json_decref(profile->json);
    cvy_free(profile->row);
    cvy_free(profile->rank ? profile->rank[0].seconds : NULL);
    cvy_free(profile->rank);
    cvy_free(profile->rank_predicted_s);
    *profile = (cli_run_profile){.rows = 0};
}
