/*
 * A study for people: by ranks at the machine's own values; elasticities and the bottlenecks that they name; then what
 * each value of each parameter makes of images/s, and, where there are several strategies, which is best.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/sweep.h"

enum { COLUMNS = 11, LABEL = 26, CELL = 6, FAMILIES = 26, CROSS_ROWS = 30, NAMES = 200 };

/* Families of strategies that are best somewhere, and their letters. */
typedef struct legend {
    char family[FAMILIES][CVY_STRATEGY_TEXT];
    int count;
} legend;

static bool has_several(const cli_study *s) { return s->options.strategies > 1 || s->options.search; }

/* ---- by ranks ---- */

static void print_title(const cli_study *s)
{
    const cli_problem *p = s->problem;
    char text[2][CVY_UNIT_TEXT], title[1024];
    snprintf(title, sizeof title, "%s on %s: %s x %s, batch %s%s, %s, %s, strategy %s", p->model_text,
             p->machine->name, cvy_print_count(cvy_machine_devices(p->machine), text[0]), p->machine->device.name,
             cvy_print_count(p->batch, text[1]), p->batch_per_rank ? " a rank (weak scaling)" : " (strong scaling)",
             cvy_precision_name(p->oracle.precision), cvy_optimizer_find_name(&p->oracle.optimizer),
             s->options.strategy[0]);
    cli_print_wrapped(0, title);
}

static int find_share(double part_s, const cvy_estimate *e) { return (int)lround(100.0 * part_s / e->iteration_s); }

static void print_shares(const cvy_estimate *e)
{
    double forward_s = e->part_s[CVY_PHASE_FORWARD], update_s = e->part_s[CVY_PHASE_UPDATE];
    double backward_s = e->part_s[CVY_PHASE_BACKWARD] + e->part_s[CVY_PHASE_RECOMPUTE];
    double rest_s = e->iteration_s - forward_s - backward_s - update_s - e->exposed_communication_s;
    printf("%5d%5d%5d%5d%5d", find_share(forward_s, e), find_share(backward_s, e),
           find_share(e->exposed_communication_s, e), find_share(update_s, e), find_share(fmax(rest_s, 0.0), e));
}

/* The best strategy, and how much faster it is. */
static void print_best(const cvy_sweep_point *point)
{
    char strategy[CLI_STRATEGY_TEXT];
    const cvy_estimate *best = &point->best, *asked = &point->asked;
    if (!best->feasible) {
        printf("  nothing fits\n");
        return;
    }
    bool faster = asked->feasible && best->iteration_s < asked->iteration_s;
    printf("  %.24s", cli_print_strategy(&best->strategy, best->recompute, strategy));
    if (faster) {
        printf(" %.2fx", asked->iteration_s / best->iteration_s);
    }
    printf("\n");
}

static void print_point(const cli_study *s, const cvy_sweep_point *point)
{
    char text[4][CVY_UNIT_TEXT];
    const cvy_estimate *e = &point->asked;
    printf("%7s", cvy_print_count(point->ranks, text[0]));
    if (!e->feasible) {
        printf("  ");
        cli_print_wrapped(9, e->why_not);
        return;
    }
    printf("%11s%6.0f %%%10s", cvy_print_rate(e->images_per_s, text[1]), 100.0 * point->efficiency,
           cvy_print_seconds(e->iteration_s, text[2]));
    print_shares(e);
    printf("%10s%c", cvy_print_bytes((double)e->total_bytes, text[3]), e->over_memory ? '!' : ' ');
    if (has_several(s)) {
        print_best(point);
    } else {
        printf("  %s\n", point->limit);
    }
}

static void print_ranks(const cli_study *s)
{
    const cvy_sweep_point *point = cvy_sweep_get_points(s->sweep, 0);
    bool over = false;
    printf("\n%7s%11s%8s%10s%5s%5s%5s%5s%5s%10s   %s\n", "ranks", "images/s", "eff.", "iteration", "fwd", "bwd", "comm",
           "upd", "rest", "memory", has_several(s) ? "best of all that fit" : "limit");
    for (int i = 0; i < s->options.rank_counts; i++) {
        print_point(s, &point[i]);
        over = over || (point[i].asked.feasible && point[i].asked.over_memory);
    }
    printf("eff.: images/s by those of the fewest ranks times the ranks; fwd to rest: %% of the iteration;\n"
           "comm: communication that nothing hides; memory: of a rank%s\n",
           over ? "; ! is more than the device has" : "");
}

/* ---- elasticities ---- */

static void print_elasticities(const cli_study *s)
{
    const cvy_sweep *sweep = s->sweep;
    printf("\nelasticity of images/s: by how many %% they change with 1 %% more\n%7s", "ranks");
    for (int i = 0; i < CVY_VARIED_MEMORY; i++) {
        printf("  %16s", cvy_varied_names[i]);
    }
    printf("\n");
    for (int r = 0; r < sweep->options.rank_counts; r++) {
        char count[CVY_UNIT_TEXT];
        printf("%7s", cvy_print_count(sweep->options.ranks[r], count));
        for (int i = 0; i < CVY_VARIED_MEMORY; i++) {
            double elasticity = sweep->elasticity[r][i];
            if (isfinite(elasticity)) {
                printf("  %16.2f", fabs(elasticity) < 0.005 ? 0.0 : elasticity);
            } else {
                printf("  %16s", "-");
            }
        }
        printf("\n");
    }
    cli_print_wrapped(0, sweep->device.sentence);
    cli_print_wrapped(0, sweep->cluster.sentence);
}

/* ---- by parameters ---- */

/* Numbers of ranks that are shown: all, or some from the fewest to the most. */
static int pick_ranks(const cli_study *s, int shown[COLUMNS])
{
    int all = s->options.rank_counts, count = all < COLUMNS ? all : COLUMNS;
    for (int i = 0; i < count; i++) {
        shown[i] = count == 1 ? 0 : (int)lround((double)i * (all - 1) / (count - 1));
    }
    return count;
}

static void print_grid_title(const cli_study *s, const char *what, const int *shown, int count)
{
    printf("\n%-*.*s", LABEL, LABEL, what);
    for (int i = 0; i < count; i++) {
        printf(" %*" PRId64, CELL - 1, s->options.ranks[shown[i]]);
    }
    printf("\n");
}

static void print_ratios(const cli_study *s, int setting, const int *shown, int count)
{
    const cvy_sweep_point *own = cvy_sweep_get_points(s->sweep, 0), *point = cvy_sweep_get_points(s->sweep, setting);
    for (int i = 0; i < count; i++) {
        const cvy_estimate *a = &point[shown[i]].asked, *b = &own[shown[i]].asked;
        if (a->feasible && b->feasible) {
            double ratio = a->images_per_s / b->images_per_s;
            printf(" %*.*f", CELL - 1, ratio < 99.995 ? 2 : 0, ratio);
        } else {
            printf(" %*s", CELL - 1, "-");
        }
    }
    printf("\n");
}

/* "link-bandwidth x1/4", in the first column. */
static void print_label(const cli_study *s, int setting)
{
    char label[64];
    const cvy_sweep_setting *at = &s->sweep->setting[setting];
    snprintf(label, sizeof label, "%s %s", cvy_varied_names[s->options.axis[at->axis].parameter],
             cvy_sweep_get_value(s->sweep, setting)->text);
    printf("%-*.*s", LABEL, LABEL, label);
}

static void print_ratio_grid(const cli_study *s, const int *shown, int count)
{
    print_grid_title(s, "images/s by own, on ranks", shown, count);
    for (int i = 1; i < s->sweep->settings; i++) {
        print_label(s, i);
        print_ratios(s, i, shown, count);
    }
}

/* The letter of the best family at a point; '-' where nothing fits. */
static char find_letter(const cvy_sweep_point *point, legend *l)
{
    char family[CVY_STRATEGY_TEXT];
    int i = 0;
    if (!point->best.feasible) {
        return '-';
    }
    cvy_strategy_family(&point->best.strategy, family);
    while (i < l->count && strcmp(l->family[i], family) != 0) {
        i++;
    }
    if (i == l->count && i < FAMILIES) {
        snprintf(l->family[l->count++], CVY_STRATEGY_TEXT, "%s", family);
    }
    return i < FAMILIES ? (char)('a' + i) : '?';
}

static void print_letters(const cli_study *s, int setting, const int *shown, int count, legend *l)
{
    const cvy_sweep_point *point = cvy_sweep_get_points(s->sweep, setting);
    for (int i = 0; i < count; i++) {
        printf(" %*c", CELL - 1, find_letter(&point[shown[i]], l));
    }
    printf("\n");
}

static void print_region_grid(const cli_study *s, const int *shown, int count)
{
    legend l = {.count = 0};
    print_grid_title(s, "best strategy, on ranks", shown, count);
    printf("%-*s", LABEL, "as the machine is");
    print_letters(s, 0, shown, count, &l);
    for (int i = 1; i < s->sweep->settings; i++) {
        print_label(s, i);
        print_letters(s, i, shown, count, &l);
    }
    for (int i = 0; i < l.count; i++) {
        printf("%s%c %s", i ? "; " : "", 'a' + i, l.family[i]);
    }
    printf("%s- nothing fits\n", l.count ? "; " : "");
}

/* ---- all together ---- */

static void describe_setting(const cli_study *s, int setting, char *text, size_t bytes)
{
    const cvy_sweep_setting *at = &s->sweep->setting[setting];
    int length = 0;
    text[0] = '\0';
    for (int i = 0; i < s->options.axes && length < (int)bytes; i++) {
        const cvy_sweep_axis *axis = &s->sweep->options.axis[i];
        length += snprintf(text + length, bytes - (size_t)length, "%s%s %s", i ? ", " : "",
                           cvy_varied_names[axis->parameter], axis->value[at->value[i]].text);
    }
}

static void print_product(const cli_study *s)
{
    enum { WIDTH = 70 };
    int last = s->options.rank_counts - 1, settings = s->sweep->settings;
    char names[NAMES], rate[CVY_UNIT_TEXT], count[CVY_UNIT_TEXT];
    printf("\n%-*s%12s%10s\non %s ranks\n", WIDTH, "all together", "images/s", "eff.",
           cvy_print_count(s->options.ranks[last], count));
    for (int i = 0; i < settings && i < CROSS_ROWS; i++) {
        const cvy_sweep_point *point = &cvy_sweep_get_points(s->sweep, i)[last];
        describe_setting(s, i, names, sizeof names);
        printf("%-*.*s%12s%8.0f %%\n", WIDTH, WIDTH, names, cvy_print_rate(point->asked.images_per_s, rate),
               100.0 * point->efficiency);
    }
    if (settings > CROSS_ROWS) {
        printf("%d more (--csv, --json)\n", settings - CROSS_ROWS);
    }
}

void cli_print_study(const cli_study *s)
{
    char count[2][CVY_UNIT_TEXT], seconds[CVY_UNIT_TEXT], names[NAMES];
    int shown[COLUMNS], columns = pick_ranks(s, shown);
    print_title(s);
    if (s->options.cross) {
        describe_setting(s, 0, names, sizeof names);
        printf("\nwith %s\n", names);
    }
    print_ranks(s);
    print_elasticities(s);
    if (s->options.cross) {
        print_product(s);
    } else if (s->sweep->settings > 1) {
        print_ratio_grid(s, shown, columns);
    }
    if (has_several(s) && !s->options.cross && s->sweep->settings > 1) {
        print_region_grid(s, shown, columns);
    }
    printf("\n%s points, %s estimates in %s\n", cvy_print_count(s->sweep->points, count[0]),
           cvy_print_count(s->sweep->estimates, count[1]), cvy_print_seconds(s->sweep->sweep_s, seconds));
}
