/* A saved plan is the memory: the file that a run keeps, and a folder of such files under names that are hashes. */
#include "runtime/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "base/topology.h"
#include "convoy/version.h"

/* Who asks for formats, and for what. */
typedef struct question {
    const cvy_model *model;
    const cvy_train_options *options;
    const cvy_train_observer *observer;
    const cvy_plan_options *wanted;
    int threads;
} question;

/* One more whenever kernels came or became faster that a choice may fall on: what was remembered is measured anew. */
enum { KERNELS = 4 };

/* All that a measured choice depends on. */
static uint64_t hash_question(const question *q)
{
    const cvy_plan_options *wanted = q->wanted;
    cvy_topology topology;
    cvy_topology_get(&topology);
    uint64_t hash = cvy_hash_word(CVY_HASH_INIT, cvy_model_hash(q->model));
    hash = cvy_hash_word(hash, (uint64_t)wanted->batch);
    hash = cvy_hash_word(hash, (uint64_t)cvy_max_i64(wanted->micro_batches, 1));
    hash = cvy_hash_word(hash, (uint64_t)q->threads);
    hash = cvy_hash_word(hash, (uint64_t)wanted->block);
    hash = cvy_hash_text(hash, topology.processor);
    hash = cvy_hash_text(hash, wanted->backends.backend[0]->name);
    hash = cvy_hash_text(hash, wanted->direct_only ? "direct" : "winograd");
    hash = cvy_hash_word(hash, KERNELS);
    return cvy_hash_text(hash, CVY_VERSION);
}

static char *find_path(const question *q)
{
    char name[64];
    snprintf(name, sizeof name, "plan-%016" PRIx64 ".yaml", hash_question(q));
    return cvy_path_join(q->options->cache, name);
}

/* Formats of a file that are none for the question: Winograd's algorithm, where it was said to sum directly. */
static cvy_status check_directness(const question *q, const char *path, const cvy_layer_formats *formats)
{
    for (int i = 0; q->wanted->direct_only && i < q->model->layers; i++) {
        CVY_REQUIRE(!formats[i].winograd, CVY_ERR_INPUT, "%s: layer %s goes by Winograd's algorithm", path,
                    q->model->layer[i].name);
    }
    return CVY_OK;
}

/* A plan with the formats of a file; CVY_ERR_INPUT where the file is not for this model, machine and question. */
static cvy_status plan_from(const question *q, const char *path, cvy_plan **plan_out)
{
    cvy_layer_formats *formats = cvy_calloc((size_t)q->model->layers, sizeof *formats);
    cvy_plan_options with = *q->wanted;
    if (!formats) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_plan_load_formats(path, q->model, with.block, formats);
    with.formats = formats;
    status = status == CVY_OK ? check_directness(q, path, formats) : status;
    if (status == CVY_OK) {
        status = cvy_plan_create(q->model, &with, plan_out);
    }
    cvy_free(formats);
    return status;
}

/* Save a plan under a name that nobody had before; where somebody was first, theirs stays. */
static void remember(const cvy_plan *plan, const char *path)
{
    char aside[4096];
    if (snprintf(aside, sizeof aside, "%s.%ld", path, (long)getpid()) < (int)sizeof aside &&
        cvy_plan_save(plan, aside) == CVY_OK) {
        (void)link(aside, path);
        (void)unlink(aside);
    }
}

static void tell_measuring(const question *q)
{
    char line[1024];
    if (q->observer && q->observer->setup) {
        snprintf(line, sizeof line, "measuring layouts, once for this model, batch and machine; remembered in %s",
                 q->options->cache);
        q->observer->setup(q->observer->context, line);
    }
}

static cvy_status plan_by_clock(const question *q, cvy_plan **plan_out)
{
    cvy_layout_choice *layouts = cvy_calloc((size_t)q->model->layers, sizeof *layouts);
    uint32_t *winograd = cvy_calloc((size_t)q->model->layers, sizeof *winograd);
    cvy_plan_options with = *q->wanted;
    with.layouts = layouts;
    with.winograd = winograd;
    cvy_status status = CVY_ERR_MEMORY;
    if (!layouts || !winograd) {
        goto done;
    }
    tell_measuring(q);
    (void)cvy_pulse_set(CVY_ACTIVITY_MEASURING);
    status = cvy_layout_measure(q->model, q->wanted, q->threads, layouts, winograd);
    (void)cvy_pulse_set(CVY_ACTIVITY_PLANNING);
    CVY_TRY_GOTO(status, done, status);
    status = cvy_plan_create(q->model, &with, plan_out);
done:
    cvy_free(layouts);
    cvy_free(winograd);
    return status;
}

static cvy_status plan_by_rule(const question *q, cvy_plan **plan_out)
{
    return cvy_plan_create(q->model, q->wanted, plan_out);
}

/*
 * What a folder remembers; else what the clock says, from now on remembered. What cannot be remembered had better not
 * vary: then the rule decides. A file that is damaged, or asks for what this library no longer runs, gives way.
 */
static cvy_status plan_by_memory(const question *q, const char *path, bool anew, cvy_plan **plan_out)
{
    bool there = cvy_file_exists(path);
    if (there && !anew) {
        cvy_status status = plan_from(q, path, plan_out);
        if (status == CVY_OK || status == CVY_ERR_MEMORY) {
            return status;
        }
    }
    if (access(q->options->cache, W_OK) != 0) {
        return plan_by_rule(q, plan_out);
    }
    if (there) {
        (void)unlink(path);
    }
    cvy_plan *measured = NULL;
    CVY_TRY(plan_by_clock(q, &measured));
    remember(measured, path);
    cvy_plan_destroy(&measured); /* what is read back is perhaps another process's, who was first */
    return plan_from(q, path, plan_out) == CVY_OK ? CVY_OK : plan_by_rule(q, plan_out);
}

cvy_status cvy_formats_plan(const cvy_model *model, const cvy_train_options *options,
                            const cvy_train_observer *observer, const cvy_plan_options *wanted, int threads,
                            cvy_plan **plan_out)
{
    const question q = {model, options, observer, wanted, threads};
    const char *layout = options->layout ? options->layout : "auto";
    if (!wanted->training || wanted->layout != CVY_LAYOUT_AUTO || strcmp(layout, "rule") == 0) {
        return plan_by_rule(&q, plan_out);
    }
    char *path = options->resume ? cvy_path_join(options->resume, "plan.yaml") : NULL;
    bool kept = path && cvy_file_exists(path) && plan_from(&q, path, plan_out) == CVY_OK;
    cvy_free(path);
    if (kept) {
        return CVY_OK;
    }
    if (wanted->dtype != CVY_F32 || !options->cache || wanted->backends.count < 2 ||
        cvy_folder_create(options->cache, CVY_ERR_IO) != CVY_OK) {
        return plan_by_rule(&q, plan_out);
    }
    path = find_path(&q);
    cvy_status status = path ? plan_by_memory(&q, path, strcmp(layout, "measure") == 0, plan_out) : CVY_ERR_MEMORY;
    cvy_free(path);
    return status;
}
