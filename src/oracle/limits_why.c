/*
 * Why the pick of a search is the pick. Data parallelism is what everybody would do, so the pick is held against it;
 * where it is the pick itself, against the best other one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "oracle/limits_internal.h"

/* A search in the words of its objective. */
typedef struct reasoning {
    const cvy_search *search;
    char *text;
} reasoning;

static bool is_memory(const reasoning *r) { return r->search->options.objective == CVY_OBJECTIVE_MEMORY; }

/* What is to be small. All candidates have as many ranks, so seconds tell costs apart. */
static double get_figure(const reasoning *r, const cvy_estimate *e)
{
    return is_memory(r) ? (double)e->total_bytes : e->iteration_s;
}

static const char *print_figure(const reasoning *r, const cvy_estimate *e, char *text)
{
    return is_memory(r) ? cvy_print_bytes((double)e->total_bytes, text) : cvy_print_seconds(e->iteration_s, text);
}

/* "faster", "fastest" */
static const char *get_better(const reasoning *r)
{
    static const char *const words[CVY_OBJECTIVE_COUNT] = {"faster", "smaller", "cheaper"};
    return words[r->search->options.objective];
}

static const char *get_best(const reasoning *r)
{
    static const char *const words[CVY_OBJECTIVE_COUNT] = {"fastest", "smallest", "cheapest"};
    return words[r->search->options.objective];
}

static const cvy_estimate *get_candidate(const reasoning *r, int index)
{
    return &r->search->candidate[index].estimate;
}

static bool is_data(const cvy_estimate *e)
{
    return e->strategy.mesh.ranks > 1 && e->strategy.mesh.size[CVY_AXIS_SAMPLE] == e->strategy.mesh.ranks;
}

static const char *print_strategy(const cvy_candidate *candidate, char *text)
{
    cvy_recompute recompute = candidate->estimate.recompute;
    cvy_strategy strategy = candidate->estimate.strategy;
    strategy.micro_batches = strategy.micro_batches > 1 ? strategy.micro_batches : 0; /* one is none */
    (void)cvy_strategy_print(&strategy, text);
    cvy_limits_append(text, CVY_STRATEGY_TEXT, "%s", candidate->choices ? " mix" : "");
    if (recompute != CVY_RECOMPUTE_NONE) {
        cvy_limits_append(text, CVY_STRATEGY_TEXT, " recompute %s", cvy_recompute_name(recompute));
    }
    return text;
}

__attribute__((format(printf, 2, 3))) static void say(const reasoning *r, const char *format, ...)
{
    va_list arguments;
    size_t length = strlen(r->text);
    va_start(arguments, format);
    (void)vsnprintf(r->text + length, CVY_WHY_TEXT - length, format, arguments);
    va_end(arguments);
}

/* The candidate that is best by what is asked and fits, of another kind than data parallelism; -1. */
static int find_best_other(const reasoning *r)
{
    int best = -1;
    for (int i = 0; i < r->search->count; i++) {
        const cvy_estimate *e = get_candidate(r, i);
        bool fits = r->search->candidate[i].fits && !is_data(e);
        if (fits && (best < 0 || get_figure(r, e) < get_figure(r, get_candidate(r, best)))) {
            best = i;
        }
    }
    return best;
}

/* ---- the part that makes the difference ---- */

typedef struct difference {
    const char *name;
    double from, to;
} difference;

/* Of two breakdowns, the part that is most smaller in the second. */
static difference find_difference(const reasoning *r, const cvy_estimate *from, const cvy_estimate *to)
{
    difference most = {.from = 0.0};
    for (int i = 0; i < (is_memory(r) ? (int)CVY_MEMORY_PARTS : (int)CVY_TIME_PARTS); i++) {
        difference d = {cvy_time_part_name(i), from->part_s[i], to->part_s[i]};
        if (is_memory(r)) {
            d = (difference){cvy_memory_part_name(i), (double)from->memory_bytes[i], (double)to->memory_bytes[i]};
        }
        most = d.from - d.to > most.from - most.to ? d : most;
    }
    return most;
}

/* " because of its gradient exchange, 4x smaller" */
static void say_because(const reasoning *r, const cvy_estimate *from, const cvy_estimate *to)
{
    difference d = find_difference(r, from, to);
    char name[CVY_UNIT_TEXT];
    if (!d.name) {
        return;
    }
    snprintf(name, sizeof name, "%s", d.name);
    for (char *c = name; *c; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    if (d.to < 0.01 * d.from) {
        say(r, " because it has next to no %s", name);
    } else if (d.from < 1.995 * d.to) {
        say(r, " because of its %s, %.0f %% smaller", name, 100 * (1.0 - d.to / d.from));
    } else {
        say(r, " because of its %s, %.2gx smaller", name, d.from / d.to);
    }
}

/* ---- sentences ---- */

static double get_error(const cvy_estimate *a, const cvy_estimate *b)
{
    return a->error_relative > b->error_relative ? a->error_relative : b->error_relative;
}

/* "(0.31 s against 0.4 s)" */
static void say_figures(const reasoning *r, const cvy_estimate *a, const cvy_estimate *b)
{
    char first[CVY_UNIT_TEXT], second[CVY_UNIT_TEXT];
    say(r, " (%s against %s)", print_figure(r, a, first), print_figure(r, b, second));
}

/* The pick is data parallelism. */
static void say_data_is_kept(const reasoning *r, const char *name)
{
    int other = find_best_other(r);
    const cvy_estimate *data = get_candidate(r, r->search->pick);
    char other_name[CVY_STRATEGY_TEXT];
    if (other < 0) {
        say(r, "%s is the only one that fits", name);
        return;
    }
    const cvy_estimate *e = get_candidate(r, other);
    double better = 1.0 - get_figure(r, e) / get_figure(r, data);
    print_strategy(&r->search->candidate[other], other_name);
    if (better > 0.0) {
        say(r, "%s is kept: the %s other one, %s, is %.1f %% %s, inside the error bar of %.0f %%", name, get_best(r),
            other_name, 100 * better, get_better(r), 100 * get_error(data, e));
        return;
    }
    double more = 100 * (get_figure(r, e) / get_figure(r, data) - 1.0);
    say(r, "%s is the %s: the next one, %s, takes %.*f %% more", name, get_best(r), other_name, more < 9.5, more);
    say_figures(r, e, data);
}

/* The pick beats data parallelism, which fits. */
static void say_pick_is_better(const reasoning *r, const char *name)
{
    const cvy_estimate *pick = get_candidate(r, r->search->pick), *data = get_candidate(r, r->search->data);
    double better = 1.0 - get_figure(r, pick) / get_figure(r, data), error = get_error(pick, data);
    char data_name[CVY_STRATEGY_TEXT];
    print_strategy(&r->search->candidate[r->search->data], data_name);
    say(r, "%s is %.0f %% %s than %s", name, 100 * better, get_better(r), data_name);
    say_figures(r, pick, data);
    say_because(r, data, pick);
    if (!is_memory(r)) { /* bytes are counted */
        say(r, ", %s the error bar of %.0f %%", better > error ? "outside" : "inside", 100 * error);
    }
}

/* The first that is data parallelism and has a reason; NULL where there is none. */
static const cvy_estimate *find_data(const reasoning *r)
{
    for (int i = 0; i < r->search->count; i++) {
        if (is_data(get_candidate(r, i))) {
            return get_candidate(r, i);
        }
    }
    return NULL;
}

static void say_fit(const reasoning *r, const cvy_estimate *e)
{
    char total[CVY_UNIT_TEXT], capacity[CVY_UNIT_TEXT];
    int64_t room = r->search->options.max_memory_bytes;
    say(r, "%s of %s", cvy_print_bytes((double)e->total_bytes, total),
        cvy_print_bytes((double)(room > 0 ? room : e->capacity_bytes), capacity));
}

/* Data parallelism cannot be, or does not fit. */
static void say_instead_of_data(const reasoning *r, const char *name)
{
    const cvy_estimate *data = find_data(r), *pick = get_candidate(r, r->search->pick);
    char figure[CVY_UNIT_TEXT];
    if (data && data->feasible) {
        say(r, "data does not fit (");
        say_fit(r, data);
        say(r, "): ");
    } else if (data) {
        say(r, "data cannot be (%.90s): ", data->why_not);
    }
    say(r, "%s is the %s that fits, %s", name, get_best(r), print_figure(r, pick, figure));
}

static void say_nothing_fits(const reasoning *r)
{
    int least = -1;
    char name[CVY_STRATEGY_TEXT];
    for (int i = 0; i < r->search->count; i++) {
        const cvy_estimate *e = get_candidate(r, i);
        if (e->feasible && (least < 0 || e->total_bytes < get_candidate(r, least)->total_bytes)) {
            least = i;
        }
    }
    if (least < 0) {
        say(r, "no strategy can be scheduled: %s",
            r->search->count > 0 ? get_candidate(r, 0)->why_not : "none is known");
        return;
    }
    say(r, "nothing fits: %s needs least, ", print_strategy(&r->search->candidate[least], name));
    say_fit(r, get_candidate(r, least));
}

const char *cvy_limits_say_why(const cvy_search *search, char *text)
{
    reasoning r = {search, text};
    char name[CVY_STRATEGY_TEXT];
    text[0] = '\0';
    if (search->pick < 0) {
        say_nothing_fits(&r);
        return text;
    }
    const cvy_candidate *pick = &search->candidate[search->pick];
    print_strategy(pick, name);
    bool data_fits = search->data >= 0 && search->candidate[search->data].fits;
    if (pick->estimate.strategy.mesh.ranks == 1) {
        say(&r, "one rank does it all");
    } else if (search->pick == search->data) {
        say_data_is_kept(&r, name);
    } else if (data_fits) {
        say_pick_is_better(&r, name);
    } else {
        say_instead_of_data(&r, name);
    }
    return text;
}
