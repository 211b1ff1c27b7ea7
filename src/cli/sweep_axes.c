/*
 * Numbers of ranks, and parameters with their values, as people write them. A range goes from its first value on in
 * powers of two to the last that is not beyond its end; a factor may be a fraction.
 */
#include "cli/sweep.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- ranks ---- */

static cvy_status parse_count(const char *text, int64_t *count_out)
{
    char word[CVY_WORD_TEXT], *end;
    errno = 0;
    long long count = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
    CVY_REQUIRE(count >= 1 && !*end && errno == 0 && count <= CVY_MAX_RANKS, CVY_ERR_INPUT,
                "--ranks: expected counts from 1 to %d, as 1,2,4 or 1:1024, found '%s'", CVY_MAX_RANKS,
                cvy_print_word(text, word));
    *count_out = count;
    return CVY_OK;
}

static cvy_status add_ranks(int64_t ranks, cvy_sweep_options *o)
{
    CVY_REQUIRE(o->rank_counts < CVY_SWEEP_MOST_RANKS, CVY_ERR_INPUT, "--ranks: more than %d counts",
                CVY_SWEEP_MOST_RANKS);
    int at = o->rank_counts;
    while (at > 0 && o->ranks[at - 1] > ranks) {
        at--;
    }
    CVY_REQUIRE(at == 0 || o->ranks[at - 1] != ranks, CVY_ERR_INPUT, "--ranks: %" PRId64 " stands there twice", ranks);
    memmove(&o->ranks[at + 1], &o->ranks[at], (size_t)(o->rank_counts - at) * sizeof *o->ranks);
    o->ranks[at] = ranks;
    o->rank_counts++;
    return CVY_OK;
}

static cvy_status add_range(int64_t first, int64_t last, cvy_sweep_options *o)
{
    CVY_REQUIRE(first <= last, CVY_ERR_INPUT, "--ranks: the range %" PRId64 ":%" PRId64 " is empty", first, last);
    for (int64_t ranks = first; ranks <= last; ranks *= 2) {
        CVY_TRY(add_ranks(ranks, o));
    }
    return CVY_OK;
}

/* One item; it is written into. */
static cvy_status parse_ranks_item(char *item, cvy_sweep_options *o)
{
    int64_t first, last;
    char *colon = strchr(item, ':');
    if (colon) {
        *colon = '\0';
    }
    CVY_TRY(parse_count(item, &first));
    if (!colon) {
        return add_ranks(first, o);
    }
    CVY_TRY(parse_count(colon + 1, &last));
    return add_range(first, last, o);
}

cvy_status cli_parse_ranks(const char *text, int64_t devices, cvy_sweep_options *o)
{
    enum { MOST = 1024 };
    if (!text) {
        return add_range(1, devices < MOST ? devices : MOST, o);
    }
    char *copy = cvy_strdup(text), *rest = copy, *item;
    cvy_status status = copy ? CVY_OK : CVY_ERR_MEMORY;
    while (status == CVY_OK && (item = strsep(&rest, ","))) {
        status = parse_ranks_item(item, o);
    }
    cvy_free(copy);
    return status;
}

/* ---- values ---- */

/* "x1/4", "x2". */
static bool parse_factor(const char *text, double *factor_out)
{
    char *end;
    double over = isdigit((unsigned char)text[1]) || text[1] == '.' ? strtod(text + 1, &end) : 0.0, under = 1.0;
    if (over > 0.0 && *end == '/') {
        under = isdigit((unsigned char)end[1]) ? strtod(end + 1, &end) : 0.0;
    }
    *factor_out = under > 0.0 && over > 0.0 && !*end ? over / under : 0.0;
    return *factor_out >= 1e-6 && *factor_out <= 1e6;
}

static cvy_status parse_batch_value(const char *text, const cli_problem *problem, double *value_out)
{
    int64_t batch;
    bool per_rank;
    char word[CVY_WORD_TEXT];
    cvy_status status = cli_parse_batch(text, 1, &batch, &per_rank);
    CVY_REQUIRE(status == CVY_OK, CVY_ERR_INPUT, "--vary batch: expected factors as x1/2 or counts as 64, found '%s'",
                cvy_print_word(text, word));
    CVY_REQUIRE(!per_rank || problem->batch_per_rank, CVY_ERR_INPUT,
                "--vary batch: %s, where --batch %s is that of all ranks", cvy_print_word(text, word),
                problem->options->plan.batch);
    *value_out = (double)batch;
    return CVY_OK;
}

static cvy_status parse_precision_value(const char *text, double *value_out)
{
    const char *names[CVY_PRECISION_COUNT + 1] = {NULL};
    char word[CVY_WORD_TEXT], list[64];
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        names[i] = cvy_precision_name((cvy_precision)i);
        if (strcmp(names[i], text) == 0) {
            *value_out = i;
            return CVY_OK;
        }
    }
    const char *nearest = cvy_nearest(text, names);
    return cvy_fail(CVY_ERR_INPUT, "--vary precision: expected %s, found '%s'%s%s%s",
                    cvy_print_words(names, list, sizeof list), cvy_print_word(text, word),
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* One value; a factor, but of precision, or what the parameter is measured in. */
static cvy_status parse_value(const char *text, cvy_varied parameter, const cli_problem *problem,
                              cvy_sweep_value *value_out)
{
    char word[CVY_WORD_TEXT];
    cvy_sweep_value value = {.factor = 0.0};
    const char *name = cvy_varied_names[parameter];
    CVY_REQUIRE(*text, CVY_ERR_INPUT, "--vary %s: a value is missing", name);
    if (text[0] == 'x' && parameter != CVY_VARIED_PRECISION) {
        CVY_REQUIRE(parse_factor(text, &value.factor), CVY_ERR_INPUT,
                    "--vary %s: expected a factor from x1/1000000 to x1000000, as x1/4 or x2, found '%s'", name,
                    cvy_print_word(text, word));
    } else if (parameter == CVY_VARIED_BATCH) {
        CVY_TRY(parse_batch_value(text, problem, &value.quantity));
    } else if (parameter == CVY_VARIED_PRECISION) {
        CVY_TRY(parse_precision_value(text, &value.quantity));
    } else {
        cvy_quantity kind = cvy_varied_quantity(parameter);
        CVY_REQUIRE(cvy_quantity_parse(text, kind, &value.quantity) && value.quantity > 0.0, CVY_ERR_INPUT,
                    "--vary %s: expected factors of the machine's own as x1/4, or %s, found '%s'", name,
                    cvy_quantity_expected(kind), cvy_print_word(text, word));
    }
    snprintf(value.text, sizeof value.text, "%s", text);
    *value_out = value;
    return CVY_OK;
}

static cvy_status add_value(const cvy_sweep_value *value, cvy_sweep_axis *axis)
{
    const char *name = cvy_varied_names[axis->parameter];
    CVY_REQUIRE(axis->values < CVY_SWEEP_MOST_VALUES, CVY_ERR_INPUT, "--vary %s: more than %d values", name,
                CVY_SWEEP_MOST_VALUES);
    for (int i = 0; i < axis->values; i++) {
        const cvy_sweep_value *other = &axis->value[i];
        CVY_REQUIRE(other->factor != value->factor || other->quantity != value->quantity, CVY_ERR_INPUT,
                    "--vary %s: %s stands there twice", name, value->text);
    }
    axis->value[axis->values++] = *value;
    return CVY_OK;
}

/* How a value of a range is shown. */
static void print_value(cvy_varied parameter, cvy_sweep_value *value)
{
    char text[CVY_QUANTITY_TEXT];
    cvy_quantity kind = cvy_varied_quantity(parameter);
    if (value->factor > 0.0 && value->factor < 1.0 && 1.0 / value->factor == rint(1.0 / value->factor)) {
        snprintf(value->text, sizeof value->text, "x1/%.0f", 1.0 / value->factor);
    } else if (value->factor > 0.0) {
        snprintf(value->text, sizeof value->text, "x%.6g", value->factor);
    } else if (kind == CVY_QUANTITY_COUNT) {
        snprintf(value->text, sizeof value->text, "%.0f", value->quantity);
    } else {
        snprintf(value->text, sizeof value->text, "%.31s", cvy_quantity_print(value->quantity, kind, text));
    }
}

static cvy_status add_value_range(const char *item, cvy_sweep_value value, const cvy_sweep_value *last,
                                  cvy_sweep_axis *axis)
{
    const char *name = cvy_varied_names[axis->parameter];
    bool factors = value.factor > 0.0;
    double *at = factors ? &value.factor : &value.quantity, end = factors ? last->factor : last->quantity;
    char word[CVY_WORD_TEXT];
    CVY_REQUIRE(axis->parameter != CVY_VARIED_PRECISION && factors == (last->factor > 0.0), CVY_ERR_INPUT,
                "--vary %s: '%s' is no range of factors, nor of quantities", name, cvy_print_word(item, word));
    CVY_REQUIRE(*at <= end, CVY_ERR_INPUT, "--vary %s: the range %s is empty", name, cvy_print_word(item, word));
    for (; *at <= end * (1.0 + 1e-9); *at *= 2.0) {
        print_value(axis->parameter, &value);
        CVY_TRY(add_value(&value, axis));
    }
    return CVY_OK;
}

static cvy_status parse_item(char *item, const cli_problem *problem, cvy_sweep_axis *axis)
{
    cvy_sweep_value first, last;
    char whole[CVY_WORD_TEXT], *colon = strchr(item, ':');
    cvy_print_word(item, whole);
    if (colon) {
        *colon = '\0';
    }
    CVY_TRY(parse_value(item, axis->parameter, problem, &first));
    if (!colon) {
        return add_value(&first, axis);
    }
    CVY_TRY(parse_value(colon + 1, axis->parameter, problem, &last));
    return add_value_range(whole, first, &last, axis);
}

/* ---- parameters ---- */

static cvy_status find_parameter(const char *name, cvy_varied *parameter_out)
{
    char word[CVY_WORD_TEXT], list[128];
    for (int i = 0; i < CVY_VARIED_COUNT; i++) {
        if (strcmp(cvy_varied_names[i], name) == 0) {
            *parameter_out = (cvy_varied)i;
            return CVY_OK;
        }
    }
    CVY_REQUIRE(strcmp(name, "ranks") != 0, CVY_ERR_INPUT, "--vary ranks: give them as --ranks 1:1024");
    const char *nearest = cvy_nearest(name, cvy_varied_names);
    if (nearest) {
        return cvy_fail(CVY_ERR_INPUT, "--vary: no parameter '%s'; did you mean '%s'?", cvy_print_word(name, word),
                        nearest);
    }
    return cvy_fail(CVY_ERR_INPUT, "--vary: no parameter '%s', expected %s", cvy_print_word(name, word),
                    cvy_print_words(cvy_varied_names, list, sizeof list));
}

/* "NAME=VALUES"; it is written into. */
static cvy_status parse_axis(char *text, const cli_problem *problem, cvy_sweep_options *o)
{
    char word[CVY_WORD_TEXT], *values = strchr(text, '='), *item;
    cvy_sweep_axis *axis = &o->axis[o->axes];
    cvy_varied parameter;
    CVY_REQUIRE(values, CVY_ERR_INPUT, "--vary: expected NAME=VALUES, as link-bandwidth=x1/4:x4, found '%s'",
                cvy_print_word(text, word));
    *values++ = '\0';
    CVY_TRY(find_parameter(text, &parameter));
    for (int i = 0; i < o->axes; i++) {
        CVY_REQUIRE(o->axis[i].parameter != parameter, CVY_ERR_INPUT, "--vary %s: it is varied twice", text);
    }
    axis->parameter = parameter;
    axis->values = 0;
    while ((item = strsep(&values, ","))) {
        CVY_TRY(parse_item(item, problem, axis));
    }
    o->axes++;
    return CVY_OK;
}

cvy_status cli_parse_axes(const char *text, const cli_problem *problem, cvy_sweep_options *o)
{
    char *copy = cvy_strdup(text), *rest = copy, *part;
    cvy_status status = copy ? CVY_OK : CVY_ERR_MEMORY;
    while (status == CVY_OK && (part = strsep(&rest, ";"))) {
        status = parse_axis(part, problem, o);
    }
    cvy_free(copy);
    return status;
}
