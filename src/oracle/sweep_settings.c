/*
 * From axes to settings, and from settings to machines. Together all values make a product, whose first axes change
 * slowest: batch and precision come first there, since plans hang on them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "oracle/sweep_internal.h"

static cvy_status count_settings(const cvy_sweep_options *o, int *count_out)
{
    double settings = 1.0;
    char count[CVY_UNIT_TEXT], points[CVY_UNIT_TEXT];
    for (int i = 0; i < o->axes; i++) {
        settings = o->cross ? settings * o->axis[i].values : settings + o->axis[i].values;
    }
    double all = settings * o->rank_counts;
    CVY_REQUIRE(settings <= CVY_SWEEP_MOST_SETTINGS && all <= CVY_SWEEP_MOST_POINTS, CVY_ERR_INPUT,
                "the study has %s points, of %s settings; at most %d and %d: vary fewer values, or each by itself",
                cvy_print_count((int64_t)fmin(all, 1e18), points),
                cvy_print_count((int64_t)fmin(settings, 1e18), count), CVY_SWEEP_MOST_POINTS, CVY_SWEEP_MOST_SETTINGS);
    *count_out = (int)settings;
    return CVY_OK;
}

static void fill_figures(const cvy_sweeping *s, cvy_sweep_setting *setting)
{
    const cvy_sweep_options *o = &s->sweep->options;
    cvy_machine machine = *s->machine;
    setting->precision = o->oracle.precision;
    double batch = (double)o->batch;
    for (int i = 0; i < o->axes; i++) {
        const cvy_sweep_value *value = setting->value[i] < 0 ? NULL : &o->axis[i].value[setting->value[i]];
        if (value && o->axis[i].parameter == CVY_VARIED_PRECISION) {
            setting->precision = (cvy_precision)value->quantity;
        } else if (value && o->axis[i].parameter == CVY_VARIED_BATCH) {
            batch = value->factor > 0.0 ? batch * value->factor : value->quantity;
        } else if (value && value->factor > 0.0) {
            cvy_varied_scale(o->axis[i].parameter, value->factor, &machine);
        } else if (value) {
            cvy_varied_set(o->axis[i].parameter, value->quantity, o->oracle.precision, &machine);
        }
    }
    for (int i = 0; i < CVY_VARIED_COUNT; i++) {
        setting->figure[i] = cvy_varied_get((cvy_varied)i, &machine, setting->precision);
    }
    setting->figure[CVY_VARIED_BATCH] = batch;
}

/* Each parameter by itself, behind the machine as it is. */
static void list_single(const cvy_sweep_options *o, cvy_sweep_setting *setting)
{
    setting++->axis = -1;
    for (int i = 0; i < o->axes; i++) {
        for (int k = 0; k < o->axis[i].values; k++, setting++) {
            setting->axis = i;
            setting->value[i] = k;
        }
    }
}

/* All together. */
static void list_product(const cvy_sweep_options *o, cvy_sweep_setting *setting, int count)
{
    for (int i = 0; i < count; i++) {
        int rest = i;
        setting[i].axis = -1;
        for (int axis = o->axes - 1; axis >= 0; axis--) {
            setting[i].value[axis] = rest % o->axis[axis].values;
            rest /= o->axis[axis].values;
        }
    }
}

/* Batch first, then precision, then the others in their order. */
static void order_axes(cvy_sweep_options *o)
{
    static const cvy_varied first[] = {CVY_VARIED_PRECISION, CVY_VARIED_BATCH};
    for (size_t which = 0; which < sizeof first / sizeof *first; which++) {
        for (int i = 1; i < o->axes; i++) {
            if (o->axis[i].parameter == first[which]) {
                cvy_sweep_axis axis = o->axis[i];
                memmove(&o->axis[1], &o->axis[0], (size_t)i * sizeof axis);
                o->axis[0] = axis;
            }
        }
    }
}

cvy_status cvy_sweep_list_settings(cvy_sweeping *s)
{
    cvy_sweep *sweep = s->sweep;
    cvy_sweep_options *o = &sweep->options;
    for (int i = 0; i < o->axes; i++) {
        cvy_varied parameter = o->axis[i].parameter;
        bool machines = parameter != CVY_VARIED_BATCH && parameter != CVY_VARIED_PRECISION;
        CVY_REQUIRE(!machines || cvy_varied_get(parameter, s->machine, o->oracle.precision) > 0.0, CVY_ERR_INPUT,
                    "%s: machine %s has none to vary", cvy_varied_names[parameter], s->machine->name);
    }
    if (o->cross) {
        order_axes(o);
    }
    CVY_TRY(count_settings(o, &sweep->settings));
    sweep->setting = cvy_calloc((size_t)sweep->settings, sizeof *sweep->setting);
    if (!sweep->setting) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < sweep->settings; i++) {
        memset(sweep->setting[i].value, -1, sizeof sweep->setting[i].value);
    }
    if (o->cross) {
        list_product(o, sweep->setting, sweep->settings);
    } else {
        list_single(o, sweep->setting);
    }
    for (int i = 0; i < sweep->settings; i++) {
        fill_figures(s, &sweep->setting[i]);
    }
    return CVY_OK;
}

/* ---- machines ---- */

static cvy_status open_scene(const cvy_sweeping *s, cvy_sweep_scene *scene)
{
    const cvy_oracle *like = scene == s->scene ? NULL : s->scene[0].oracle;
    bool alike = like && cvy_oracle_get_options(like)->precision == scene->options.precision;
    scene->options.batch = 1;
    return cvy_oracle_create_like(alike ? like : NULL, s->model, &scene->machine, &scene->options, &scene->oracle);
}

static void describe_scene(const cvy_sweeping *s, const cvy_sweep_setting *setting, cvy_sweep_scene *scene)
{
    const cvy_sweep_options *o = &s->sweep->options;
    *scene = (cvy_sweep_scene){.machine = *s->machine, .options = o->oracle};
    scene->batch = setting->figure[CVY_VARIED_BATCH];
    scene->options.precision = setting->precision;
    for (int i = 0; i < o->axes; i++) {
        const cvy_sweep_value *value = setting->value[i] < 0 ? NULL : &o->axis[i].value[setting->value[i]];
        if (value && value->factor > 0.0) {
            cvy_varied_scale(o->axis[i].parameter, value->factor, &scene->machine);
        } else if (value) {
            cvy_varied_set(o->axis[i].parameter, value->quantity, o->oracle.precision, &scene->machine);
        }
    }
}

/* The machine as it is with a little less or more of a parameter. */
static void describe_probe(const cvy_sweeping *s, cvy_varied parameter, int probe, cvy_sweep_scene *scene)
{
    const cvy_sweep_options *o = &s->sweep->options;
    *scene = (cvy_sweep_scene){.machine = *s->machine, .options = o->oracle, .batch = (double)o->batch};
    if (parameter == CVY_VARIED_BATCH) {
        scene->batch = 0.0;
        scene->probe = probe;
    } else {
        cvy_varied_scale(parameter, probe > 0 ? CVY_SWEEP_PROBE : 1.0 / CVY_SWEEP_PROBE, &scene->machine);
    }
}

cvy_status cvy_sweep_set_scenes(cvy_sweeping *s)
{
    s->scenes = s->sweep->settings + 2 * CVY_SWEEP_PROBED;
    s->scene = cvy_calloc((size_t)s->scenes, sizeof *s->scene);
    if (!s->scene) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->scenes; i++) {
        int probe = i - s->sweep->settings;
        if (probe < 0) {
            describe_scene(s, &s->sweep->setting[i], &s->scene[i]);
        } else {
            describe_probe(s, (cvy_varied)(probe / 2), probe % 2 ? 1 : -1, &s->scene[i]);
        }
        CVY_TRY(open_scene(s, &s->scene[i]));
    }
    return CVY_OK;
}

/* A step of an eighth, of whole samples a rank, but not to none. */
static int64_t step_batch(int64_t batch, int64_t ranks, int probe)
{
    int64_t samples = batch / ranks, step = samples / 8 > 1 ? samples / 8 : 1;
    int64_t less = samples > step ? batch - step * ranks : batch;
    return probe < 0 ? less : batch + step * ranks;
}

cvy_status cvy_sweep_find_batch(const cvy_sweeping *s, const cvy_sweep_scene *scene, int64_t ranks, int64_t *batch_out)
{
    const cvy_sweep_options *o = &s->sweep->options;
    double most = 0x1p50, all = o->batch_per_rank ? (double)ranks : 1.0;
    double given = scene->batch > 0.0 ? scene->batch : (double)o->batch, whole = floor(given + 1e-9);
    CVY_REQUIRE(given >= 1.0 - 1e-9 && whole * all <= most, CVY_ERR_INPUT,
                "batch: %.6g samples%s are %s", given, o->batch_per_rank ? " a rank" : "",
                given < 1.0 ? "less than one" : "too many");
    *batch_out = (int64_t)(whole * all);
    if (scene->batch == 0.0) {
        *batch_out = step_batch(*batch_out, ranks, scene->probe);
    }
    return CVY_OK;
}
