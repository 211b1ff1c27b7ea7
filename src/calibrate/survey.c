/*
 * The loop: a kernel, and every so often a probe for the report on noise. What kernels took is told at the machine's
 * usual pace in the end, when all probes have been heard.
 */
#include "calibrate/survey.h"

#include <math.h>

#include "base/memory.h"
#include "base/pulse.h"
#include "calibrate/pace.h"

enum { MOST_TASKS = 4096, LEAST_BETWEEN = 1 << 18, DISTANCE_OWNER = 1 << 16 };

static const double probe_every_s = 0.5; /* a probe takes some milliseconds: a hundredth of the time */

/* What a round measures. */
typedef struct task {
    cvy_op op;
    double between_bytes;
    int family, shape;
} task;

typedef struct surveyor {
    const cvy_meter *meter;
    const cvy_kernel_survey_options *options;
    cvy_kernel_survey *survey;
    cvy_noise noise;
    double begun_s, before_s; /* of this run by the clock; spent in runs before it */
    double probed_s;          /* when */
    task *task;
    int64_t *order;
    int tasks;
} surveyor;

static double find_spent(const surveyor *s)
{
    return s->before_s + s->meter->now_s(s->meter->context) - s->begun_s;
}

/* ---- a kernel ---- */

/* Whether a failure is the op's own: it is left out, and the survey goes on. */
static bool is_forgivable(cvy_status status)
{
    return status == CVY_ERR_UNSUPPORTED || status == CVY_ERR_MEMORY || status == CVY_ERR_ARG;
}

static cvy_status measure_at(surveyor *s, const cvy_op *op, double between_bytes, cvy_metered *metered)
{
    double begun_s = s->meter->now_s(s->meter->context);
    CVY_TRY(s->meter->measure(s->meter->context, op, between_bytes, metered));
    metered->time.distance_bytes = between_bytes + cvy_op_bytes(op);
    metered->took_s = s->meter->now_s(s->meter->context) - begun_s;
    return CVY_OK;
}

static cvy_status probe(surveyor *s)
{
    double seconds;
    CVY_TRY(s->meter->probe(s->meter->context, &seconds));
    s->probed_s = s->meter->now_s(s->meter->context);
    return cvy_noise_add(&s->noise, seconds);
}

static cvy_status add_row(surveyor *s, const task *t, const cvy_metered *metered)
{
    cvy_kernel_survey *survey = s->survey;
    CVY_TRY(cvy_array_reserve(&survey->row, survey->rows, &survey->capacity, sizeof *survey->row));
    survey->row[survey->rows++] = (cvy_kernel_survey_row){.op = t->op, .metered = *metered, .family = t->family,
                                                          .shape = t->shape};
    return CVY_OK;
}

static void tell(const surveyor *s)
{
    const cvy_kernel_survey_progress progress = {.kernels = s->survey->rows,
                                          .spent_s = find_spent(s),
                                          .left_s = fmax(0.0, s->options->budget_s - find_spent(s))};
    if (s->options->tell) {
        s->options->tell(s->options->context, &progress);
    }
}

static cvy_status measure_task(surveyor *s, const task *t)
{
    const cvy_metered *known = cvy_journal_find(s->options->journal, &t->op, t->between_bytes + cvy_op_bytes(&t->op));
    cvy_metered metered;
    if (known) {
        return add_row(s, t, known);
    }
    cvy_pulse_beat();
    cvy_status status = measure_at(s, &t->op, t->between_bytes, &metered);
    if (is_forgivable(status)) {
        cvy_error_clear();
        s->survey->refused++;
        return CVY_OK;
    }
    CVY_TRY(status);
    CVY_TRY(add_row(s, t, &metered));
    CVY_TRY(cvy_journal_add(s->options->journal, &t->op, &metered, find_spent(s)));
    if (s->meter->now_s(s->meter->context) - s->probed_s >= probe_every_s) {
        CVY_TRY(probe(s));
    }
    tell(s);
    return CVY_OK;
}

/* ---- rounds ---- */

static cvy_status add_task(surveyor *s, const cvy_op *op, double between_bytes, int family, int shape)
{
    CVY_REQUIRE(s->tasks < MOST_TASKS, CVY_ERR_INPUT, "more than %d kernels at once", (int)MOST_TASKS);
    s->task[s->tasks++] = (task){.op = *op, .between_bytes = between_bytes, .family = family, .shape = shape};
    return CVY_OK;
}

/* Of each op its own: what drew the shape is not asked again. */
static double draw_between(const surveyor *s, int family, int index, int pass)
{
    cvy_dice dice = {.seed = s->options->seed, .owner = DISTANCE_OWNER + (uint32_t)(family * CVY_PASS_COUNT + pass),
                     .index = (uint32_t)index};
    int64_t which = cvy_dice_even(&dice, 0, 9);
    if (which == 0 || s->options->most_between < LEAST_BETWEEN) {
        return 0.0;
    }
    return which <= 2 ? CVY_FARTHEST_BYTES
                      : (double)cvy_dice_log(&dice, LEAST_BETWEEN, (int64_t)s->options->most_between);
}

/* The passes of the index-th shape of a family. */
static cvy_status draw_family(surveyor *s, int i, int index)
{
    const cvy_kernel_survey_options *o = s->options;
    const cvy_shape_family *family = cvy_shape_family_get(i);
    cvy_drawn_shape shape;
    CVY_TRY(cvy_shape_draw(o->seed, i, index, &o->limits, &shape));
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        cvy_op op;
        if (family->passes >> pass & 1u) {
            CVY_TRY(cvy_shape_make_op(&shape, (cvy_op_pass)pass, o->limits.block, &op));
            CVY_TRY(add_task(s, &op, draw_between(s, i, index, pass), i, index * cvy_shape_families() + i));
        }
    }
    return CVY_OK;
}

/* As many shapes of each family as it has in a round. */
static cvy_status draw_round(surveyor *s, int round)
{
    for (int i = 0; i < cvy_shape_families(); i++) {
        int shapes = cvy_shape_family_get(i)->shapes;
        for (int k = 0; k < shapes; k++) {
            CVY_TRY(draw_family(s, i, round * shapes + k));
        }
    }
    return CVY_OK;
}

/* To a power of 4: an op that comes at much the same distance again is measured once. */
static double round_between(const surveyor *s, int own)
{
    double between = s->options->distance[own] - cvy_op_bytes(&s->options->op[own]);
    if (between < LEAST_BETWEEN) {
        return 0.0;
    }
    double rounded = exp2(2.0 * round(log2(between) / 2.0));
    return rounded > CVY_NEARER_BYTES ? CVY_FARTHEST_BYTES : rounded;
}

/* Those of the options, each once. */
static cvy_status list_own(surveyor *s)
{
    for (int i = 0; i < s->options->ops; i++) {
        uint64_t hash = cvy_op_hash(&s->options->op[i]);
        double between_bytes = round_between(s, i);
        int k = 0;
        while (k < s->tasks && (cvy_op_hash(&s->task[k].op) != hash || s->task[k].between_bytes != between_bytes)) {
            k++;
        }
        if (k == s->tasks) {
            CVY_TRY(add_task(s, &s->options->op[i], between_bytes, -1, -1 - i));
        }
    }
    return CVY_OK;
}

/* Measure the tasks in a random order; ends early where the budget is spent, unless it is @p whole. */
static cvy_status run_round(surveyor *s, uint32_t round, bool whole, bool *ended_out)
{
    cvy_random_order(s->options->seed, round, s->tasks, s->order);
    for (int i = 0; i < s->tasks && !*ended_out; i++) {
        CVY_TRY(measure_task(s, &s->task[s->order[i]]));
        s->survey->stopped = s->options->stop && s->options->stop(s->options->context);
        *ended_out = s->survey->stopped || (!whole && find_spent(s) >= s->options->budget_s);
    }
    s->tasks = 0;
    return CVY_OK;
}

/* Tell all rows at the usual pace, which those of a journal have their part in. */
static cvy_status correct_pace(cvy_kernel_survey *survey)
{
    cvy_pace pace = {0};
    cvy_status status = CVY_OK;
    for (int i = 0; i < survey->rows && status == CVY_OK; i++) {
        status = cvy_pace_add(&pace, &survey->row[i].metered);
    }
    cvy_pace_settle(&pace);
    for (int i = 0; i < survey->rows; i++) {
        survey->row[i].time = cvy_pace_correct(&pace, &survey->row[i].metered);
    }
    survey->probe_s = cvy_pace_probe_s(&pace);
    survey->interruptions = cvy_pace_interruptions(&pace);
    cvy_pace_clear(&pace);
    return status;
}

static cvy_status survey_rounds(surveyor *s)
{
    bool ended = false;
    CVY_TRY(probe(s));
    CVY_TRY(list_own(s));
    CVY_TRY(run_round(s, 0, true, &ended));
    for (int round = 0; round < s->options->rounds && !ended; round++) {
        CVY_TRY(draw_round(s, round));
        CVY_TRY(run_round(s, 1 + (uint32_t)round, round == 0, &ended));
        s->survey->rounds += !ended;
    }
    CVY_TRY(probe(s));
    s->survey->spent_s = find_spent(s);
    CVY_TRY(correct_pace(s->survey));
    return cvy_noise_sum_up(&s->noise, &s->survey->noise);
}

cvy_status cvy_kernel_survey_run(const cvy_meter *meter, const cvy_kernel_survey_options *options,
                                 cvy_kernel_survey *survey_out)
{
    surveyor s = {.meter = meter, .options = options, .survey = survey_out};
    *survey_out = (cvy_kernel_survey){0};
    s.begun_s = s.probed_s = meter->now_s(meter->context);
    s.before_s = cvy_journal_spent_s(options->journal);
    s.task = cvy_calloc(MOST_TASKS, sizeof *s.task);
    s.order = cvy_calloc(MOST_TASKS, sizeof *s.order);
    cvy_status status = s.task && s.order ? survey_rounds(&s) : CVY_ERR_MEMORY;
    cvy_free(s.task);
    cvy_free(s.order);
    cvy_noise_clear(&s.noise);
    return status;
}

void cvy_kernel_survey_clear(cvy_kernel_survey *survey)
{
    cvy_free(survey->row);
    *survey = (cvy_kernel_survey){0};
}
