/*
 * What if: one thing of the machine, of the options or of the question is made better in a copy, and a second oracle
 * estimates the strategy there. Nothing is extrapolated: algorithms, buckets and what is hidden behind computation may
 * all change with it. How far a change must go is found between none of it and so much that nothing is left of what it
 * makes better; shares are close to linear in the inverse of a rate, so that is where the search interpolates.
 */
#include <math.h>

#include "oracle/estimate_internal.h"
#include "oracle/limits_internal.h"
#include "oracle/sweep_parameter.h"

/*
 * So much of a rate that nothing is left of the seconds it takes; what whole numbers are multiplied by at most; how
 * close to the threshold a share must come, of the threshold; which part of an interval a step moves by at least, and
 * how many steps there are at most.
 */
static const double ideal_factor = 1e6, whole_factor = 64, share_tolerance = 0.005, least_step = 0.05;
static const double least_change = 0.005; /* of an iteration: less is told as none */
enum { MOST_STEPS = 9 };

static const int ports_for_all = 1 << 24; /* more than any machine has devices */

/* What is to be changed. Texts of the machine stay the other one's. */
typedef struct copies {
    cvy_machine machine;
    cvy_oracle_options options;
    cvy_estimate_question question;
} copies;

/* ---- changes: false where there is nothing to make better ---- */

static bool scale_links(copies *c, double factor)
{
    cvy_varied_scale(CVY_VARIED_LINK_BANDWIDTH, factor, &c->machine);
    return c->machine.levels > 0;
}

static bool scale_latency(copies *c, double factor)
{
    cvy_varied_scale(CVY_VARIED_LINK_LATENCY, 1.0 / factor, &c->machine);
    return c->machine.levels > 0;
}

static bool switch_overlap(copies *c, double factor)
{
    (void)factor;
    bool was = c->machine.execution.overlap;
    c->machine.execution.overlap = true;
    return !was;
}

static bool scale_storage(copies *c, double factor)
{
    c->machine.storage.read_Bps *= factor;
    c->machine.storage.total_Bps *= factor;
    return c->machine.storage.read_Bps > 0;
}

static bool switch_staging(copies *c, double factor)
{
    (void)factor;
    bool was = c->machine.execution.staging == CVY_STAGING_HIDDEN;
    c->machine.execution.staging = CVY_STAGING_HIDDEN;
    return !was;
}

static bool scale_memory(copies *c, double factor)
{
    cvy_varied_scale(CVY_VARIED_MEMORY_BANDWIDTH, factor, &c->machine);
    return true;
}

static bool scale_peak(copies *c, double factor)
{
    cvy_varied_scale(CVY_VARIED_ARITHMETIC, factor, &c->machine);
    return true;
}

static bool switch_sharding(copies *c, double factor)
{
    (void)factor;
    bool was = c->options.shard_optimizer;
    c->options.shard_optimizer = true;
    return !was && c->question.strategy.mesh.size[CVY_AXIS_SAMPLE] > 1;
}

static bool switch_keeping(copies *c, double factor)
{
    (void)factor;
    bool was = c->question.recompute == CVY_RECOMPUTE_NONE && c->machine.execution.recompute == 0;
    c->question.recompute = CVY_RECOMPUTE_NONE;
    c->machine.execution.recompute = 0;
    return !was;
}

static bool scale_micro_batches(copies *c, double factor)
{
    c->question.strategy.micro_batches *= (int64_t)factor;
    return c->question.strategy.mesh.size[CVY_AXIS_STAGE] > 1;
}

static bool scale_batch(copies *c, double factor)
{
    c->options.batch *= (int64_t)factor;
    return true;
}

/* How much of a change there can be. */
typedef enum grade {
    GRADE_ANY,    /* any factor */
    GRADE_INVERSE, /* likewise, but the figure gets smaller */
    GRADE_WHOLE,   /* powers of 2 */
    GRADE_SWITCH   /* it is made or not */
} grade;

static const struct {
    const char *words;
    grade grade;
    bool (*apply)(copies *c, double factor);
} changes[CVY_CHANGE_COUNT] = {
    [CVY_CHANGE_LINK_BANDWIDTH] = {"link bandwidth", GRADE_ANY, scale_links},
    [CVY_CHANGE_LINK_LATENCY] = {"link latency", GRADE_INVERSE, scale_latency},
    [CVY_CHANGE_OVERLAP] = {"gradients exchanged beside backward", GRADE_SWITCH, switch_overlap},
    [CVY_CHANGE_STORAGE] = {"storage bandwidth", GRADE_ANY, scale_storage},
    [CVY_CHANGE_STAGING] = {"input loaded beside the step before", GRADE_SWITCH, switch_staging},
    [CVY_CHANGE_MEMORY_BANDWIDTH] = {"memory bandwidth", GRADE_ANY, scale_memory},
    [CVY_CHANGE_PEAK] = {"peak rate", GRADE_ANY, scale_peak},
    [CVY_CHANGE_SHARDING] = {"optimizer state sharded", GRADE_SWITCH, switch_sharding},
    [CVY_CHANGE_KEEPING] = {"all activations kept", GRADE_SWITCH, switch_keeping},
    [CVY_CHANGE_MICRO_BATCHES] = {"micro-batches", GRADE_WHOLE, scale_micro_batches},
    [CVY_CHANGE_BATCH] = {"batch", GRADE_WHOLE, scale_batch},
};

/* ---- pricing ---- */

/* What a change and its factor come to. */
typedef struct attempt {
    bool possible; /* there is something to change, a schedule afterwards, and a difference */
    double share;  /* by the rule */
    double faster; /* of the seconds of an image */
    double leaner; /* of the bytes on a device */
} attempt;

/* @p kept may be NULL; else the copies differ from what it was made for in rates alone. */
static cvy_status estimate_copies(const cvy_limits_case *now, const copies *c, cvy_kept_plans *kept,
                                  cvy_estimate *estimate_out)
{
    cvy_oracle *oracle = NULL;
    CVY_TRY(cvy_oracle_create_like(now->oracle, now->model, &c->machine, &c->options, &oracle));
    cvy_status status = cvy_oracle_estimate_kept(oracle, &c->question, kept, estimate_out);
    cvy_oracle_destroy(&oracle);
    return status;
}

cvy_status cvy_limits_estimate_alone(const cvy_limits_case *now, cvy_estimate *estimate_out)
{
    copies c = {*now->machine, *now->options, *now->question};
    for (int i = 0; i < c.machine.levels; i++) {
        c.machine.level[i].ports = ports_for_all;
        c.machine.level[i].oversubscription = 1.0;
    }
    return estimate_copies(now, &c, now->kept, estimate_out);
}

/* @p priced is asked before a second oracle is, and holds what that says. */
static cvy_status try_change(const cvy_what_ifs *w, const cvy_limit_rule *rule, cvy_change change, double factor,
                             cvy_priced *priced, attempt *attempt_out)
{
    copies c = {*w->now.machine, *w->now.options, *w->now.question};
    c.question.strategy = w->estimate->strategy; /* with its micro-batches as they were run */
    *attempt_out = (attempt){.possible = changes[change].apply(&c, factor)};
    if (!attempt_out->possible) {
        return CVY_OK;
    }
    if (!priced->priced) {
        CVY_TRY(estimate_copies(&w->now, &c, NULL, &priced->estimate));
        priced->priced = true;
        priced->batch = c.options.batch;
    }
    const cvy_estimate *e = &priced->estimate;
    attempt_out->possible = e->feasible;
    if (!e->feasible) {
        return CVY_OK;
    }
    cvy_measure measure = {.share = 0.0};
    const cvy_limits_case changed = {w->now.oracle, w->now.model, &c.machine, &c.options, &c.question, NULL};
    CVY_TRY(rule->measure(&changed, e, &measure));
    attempt_out->share = measure.share;
    double image_s = e->iteration_s / (double)priced->batch;
    attempt_out->faster = 1.0 - image_s / (w->estimate->iteration_s / (double)w->now.options->batch);
    attempt_out->leaner = 1.0 - (double)e->total_bytes / (double)w->estimate->total_bytes;
    attempt_out->possible = attempt_out->faster != 0.0 || attempt_out->leaner != 0.0;
    return CVY_OK;
}

/* ---- how much of it ---- */

/* A factor's inverse, and the share there. */
typedef struct point {
    double inverse, share;
} point;

/* Between @p over, where the share is over the threshold, and @p gone, where it is not; that moves to the border. */
static cvy_status narrow_rate(const cvy_what_ifs *w, const cvy_limit_rule *rule, cvy_change change, point over,
                              point *gone)
{
    double close = share_tolerance * rule->threshold;
    for (int step = 0; step < MOST_STEPS && fabs(gone->share - rule->threshold) > close; step++) {
        double width = over.inverse - gone->inverse;
        double part = (rule->threshold - gone->share) / (over.share - gone->share);
        point p = {.inverse = gone->inverse + width * fmin(fmax(part, least_step), 1.0 - least_step)};
        cvy_priced priced = {.priced = false};
        attempt a;
        CVY_TRY(try_change(w, rule, change, 1.0 / p.inverse, &priced, &a));
        p.share = a.share;
        if (a.possible && p.share <= rule->threshold + close) {
            *gone = p;
        } else {
            over = p;
        }
    }
    return CVY_OK;
}

static cvy_status find_rate(cvy_what_ifs *w, const cvy_limit_rule *rule, cvy_change change, point over, point doubled,
                            double *factor_out)
{
    attempt ideal;
    point gone = doubled;
    if (doubled.share > rule->threshold) {
        over = doubled;
        CVY_TRY(try_change(w, rule, change, ideal_factor, &w->ideal[change], &ideal));
        gone = (point){1.0 / ideal_factor, ideal.share};
        if (!ideal.possible || ideal.share > rule->threshold) {
            *factor_out = INFINITY;
            return CVY_OK;
        }
    }
    CVY_TRY(narrow_rate(w, rule, change, over, &gone));
    *factor_out = 1.0 / gone.inverse;
    return CVY_OK;
}

static cvy_status find_whole(const cvy_what_ifs *w, const cvy_limit_rule *rule, cvy_change change, double *factor_out)
{
    attempt a = {.possible = true, .share = INFINITY};
    double factor = 2.0;
    while (a.possible && a.share > rule->threshold && factor < whole_factor) {
        factor *= 2.0;
        cvy_priced priced = {.priced = false};
        CVY_TRY(try_change(w, rule, change, factor, &priced, &a));
    }
    *factor_out = a.possible && a.share <= rule->threshold ? factor : INFINITY;
    return CVY_OK;
}

/* By how much a change must be made; @p doubled is what it comes to at 2x. */
static cvy_status find_factor(cvy_what_ifs *w, const cvy_limit_rule *rule, cvy_change change, double share,
                              const attempt *doubled, double *factor_out)
{
    bool gone = doubled->share <= rule->threshold;
    switch (changes[change].grade) {
    case GRADE_SWITCH: *factor_out = gone ? 1.0 : INFINITY; return CVY_OK;
    case GRADE_WHOLE:
        *factor_out = 2.0;
        return gone ? CVY_OK : find_whole(w, rule, change, factor_out);
    default:
        return find_rate(w, rule, change, (point){1.0, share}, (point){0.5, doubled->share}, factor_out);
    }
}

/* ---- words ---- */

/* "3.1x", "0.25x", "120x" */
static void append_factor(char *text, grade how, double factor)
{
    double shown = how == GRADE_INVERSE ? 1.0 / factor : factor;
    cvy_limits_append(text, CVY_LIMIT_TEXT, shown >= 99.5 ? "%.0fx" : "%.2gx", shown);
}

static void say_lift(cvy_change change, const attempt *doubled, cvy_limit *limit)
{
    grade how = changes[change].grade;
    char *text = limit->lift;
    cvy_limits_append(text, CVY_LIMIT_TEXT, "with ");
    if (how != GRADE_SWITCH) {
        append_factor(text, how, 2.0);
        cvy_limits_append(text, CVY_LIMIT_TEXT, " ");
    }
    cvy_limits_append(text, CVY_LIMIT_TEXT, "%s ", changes[change].words);
    if (doubled->faster < least_change) {
        cvy_limits_append(text, CVY_LIMIT_TEXT, "no faster");
    } else {
        cvy_limits_append(text, CVY_LIMIT_TEXT, "%.0f %% faster", 100 * doubled->faster);
    }
    if (doubled->leaner >= 0.005) {
        cvy_limits_append(text, CVY_LIMIT_TEXT, ", %.0f %% fewer bytes", 100 * doubled->leaner);
    }
    if (isinf(limit->gone_at)) {
        cvy_limits_append(text, CVY_LIMIT_TEXT, how == GRADE_SWITCH ? ", limit stays" : ", limit never gone");
        return;
    }
    cvy_limits_append(text, CVY_LIMIT_TEXT, ", limit gone");
    if (how != GRADE_SWITCH) {
        cvy_limits_append(text, CVY_LIMIT_TEXT, " at ");
        append_factor(text, how, limit->gone_at);
    }
}

/*
 * One that makes the share less comes before one that only saves seconds; of equal ones, the one that saves more. What
 * makes an iteration slower lifts nothing that anybody wants lifted.
 */
static bool is_better(const attempt *a, const attempt *than, double share)
{
    bool helps = a->share < (1.0 - share_tolerance) * share, helped = than->share < (1.0 - share_tolerance) * share;
    return a->possible && a->faster > -least_change && (helps != helped ? helps : a->faster > than->faster);
}

cvy_status cvy_limits_lift(cvy_what_ifs *what_ifs, const cvy_limit_rule *rule, cvy_limit *limit)
{
    cvy_change best = CVY_CHANGE_COUNT;
    attempt doubled = {.share = INFINITY, .faster = -INFINITY};
    for (const cvy_change *change = rule->changes; *change != CVY_CHANGE_COUNT; change++) {
        attempt a;
        CVY_TRY(try_change(what_ifs, rule, *change, 2.0, &what_ifs->doubled[*change], &a));
        if (is_better(&a, &doubled, limit->share)) {
            best = *change;
            doubled = a;
        }
    }
    if (best == CVY_CHANGE_COUNT) {
        return CVY_OK;
    }
    limit->faster = doubled.faster;
    CVY_TRY(find_factor(what_ifs, rule, best, limit->share, &doubled, &limit->gone_at));
    say_lift(best, &doubled, limit);
    return CVY_OK;
}
