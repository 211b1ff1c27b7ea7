/*
 * convoy ranks-for: how few ranks train in a given time. Numbers of ranks double until one is fast enough; between it
 * and the one before, bisection finds the fewest, by whole nodes where they are more than a node has. To search all
 * strategies takes much longer than to estimate one: data parallelism goes first, and the search looks below it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/plan_output.h"

enum { SIMULATIONS = 16, MOST_ROWS = 96, STRATEGY_WIDTH = 30 };

/* One number of ranks. */
typedef struct row {
    int64_t ranks, batch;
    cvy_estimate estimate; /* of the best strategy; not feasible where there is none */
    double training_s, price_usd;
    bool in_time;
} row;

typedef struct table {
    cli_problem *problem;
    int rows;
    row row[MOST_ROWS];
} table;

/* One row for each number of ranks: the faster. */
static void keep_row(table *t, const row *found)
{
    int at = 0;
    while (at < t->rows && t->row[at].ranks != found->ranks) {
        at++;
    }
    if (at == t->rows && t->rows < MOST_ROWS) {
        t->row[t->rows++] = *found;
    } else if (at < t->rows && (!t->row[at].estimate.feasible ||
                                (found->estimate.feasible && found->training_s < t->row[at].training_s))) {
        t->row[at] = *found;
    }
}

/* What a number of ranks takes, with a strategy as it is written. */
static cvy_status look_at(table *t, const char *strategy, int64_t ranks, row *row_out)
{
    cli_problem *p = t->problem;
    cli_answer answer = {.oracle = NULL};
    row found = {.ranks = ranks};
    cvy_status status;
    CVY_TRY(cli_parse_batch(p->options->plan.batch, ranks, &p->batch, NULL));
    CVY_TRY(cli_parse_strategy(p, strategy, ranks, &p->strategy));
    p->ranks = ranks;
    p->oracle.batch = p->batch;
    CVY_TRY_GOTO(status, done, cli_answer_find(p, SIMULATIONS, &answer));
    const cvy_candidate *chosen = cli_answer_chosen(&answer);
    found.batch = p->batch;
    if (chosen && !chosen->estimate.over_memory) {
        found.estimate = chosen->estimate;
        found.training_s = chosen->estimate.iteration_s * cli_problem_iterations(p) * (double)p->options->plan.epochs;
        found.price_usd = cli_problem_price(p, ranks, found.training_s);
        found.in_time = found.training_s <= 3600.0 * p->options->plan.hours;
    }
    *row_out = found;
    keep_row(t, &found);
done:
    cli_answer_clear(&answer);
    return status;
}

static int64_t round_up(int64_t ranks, int64_t unit) { return (ranks + unit - 1) / unit * unit; }

/* A number of ranks is taken to stay fast enough when there are more. */
static cvy_status bisect(table *t, const char *strategy, int64_t slow, int64_t *fast)
{
    const int64_t node = t->problem->machine->devices_per_node;
    for (;;) {
        row found;
        int64_t unit = slow >= node ? node : 1, middle = round_up(slow + (*fast - slow) / 2, unit);
        middle = middle <= slow ? slow + 1 : middle;
        if (middle >= *fast) {
            return CVY_OK;
        }
        CVY_TRY(look_at(t, strategy, middle, &found));
        *fast = found.in_time ? middle : *fast;
        slow = found.in_time ? slow : middle;
    }
}

/* The fewest ranks in time with a strategy; 0 where none are. */
static cvy_status find_fewest(table *t, const char *strategy, int64_t most, int64_t *fewest_out)
{
    int64_t slow = 0, fast = 0;
    row found;
    for (int64_t ranks = 1; !fast && slow < most; ranks = ranks * 2 < most ? ranks * 2 : most) {
        CVY_TRY(look_at(t, strategy, ranks, &found));
        fast = found.in_time ? ranks : 0;
        slow = found.in_time ? slow : ranks;
    }
    if (fast) {
        CVY_TRY(bisect(t, strategy, slow, &fast));
    }
    *fewest_out = fast;
    return CVY_OK;
}

/* Fewer than data parallelism needs, where another strategy does with them; of one that nothing is in time, all. */
static cvy_status search_fewest(table *t, int64_t most, int64_t *fewest_out)
{
    const int64_t node = t->problem->machine->devices_per_node;
    row found;
    CVY_TRY(find_fewest(t, "data", most, fewest_out));
    if (!*fewest_out) {
        return find_fewest(t, "auto", most, fewest_out);
    }
    int64_t less = *fewest_out > node ? round_up(*fewest_out - node, node) : *fewest_out - 1;
    if (less >= 1) {
        CVY_TRY(look_at(t, "auto", less, &found));
        if (found.in_time) {
            *fewest_out = less;
            return bisect(t, "auto", 0, fewest_out);
        }
    }
    return CVY_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const row *first = a, *second = b;
    return (first->ranks > second->ranks) - (first->ranks < second->ranks);
}

/* Images a second of a rank, by those of the fewest ranks that can train at all. */
static double get_efficiency(const table *t, const row *r)
{
    for (int i = 0; i < t->rows; i++) {
        if (t->row[i].estimate.feasible) {
            double first = t->row[i].estimate.images_per_s / (double)t->row[i].ranks;
            return r->estimate.images_per_s / (double)r->ranks / first;
        }
    }
    return 0.0;
}

static void print_rows(const table *t, int64_t fewest)
{
    char strategy[CLI_STRATEGY_TEXT], unit[5][CVY_UNIT_TEXT];
    const cli_options *o = t->problem->options;
    printf("%s on %s: %s samples, %" PRId64 " epoch%s, batch %s, %s, %s, in %.6g h\n", t->problem->model_text,
           t->problem->machine->name, cvy_print_count(o->plan.samples, unit[0]), o->plan.epochs,
           o->plan.epochs == 1 ? "" : "s", o->plan.batch, cvy_precision_name(t->problem->oracle.precision),
           cvy_optimizer_find_name(&t->problem->oracle.optimizer), o->plan.hours);
    printf("\n  %7s %-*s %9s %10s %12s %6s %10s\n", "ranks", STRATEGY_WIDTH, "strategy", "batch", "iteration",
           "training", "eff.", "price");
    for (int i = 0; i < t->rows; i++) {
        const row *r = &t->row[i];
        const cvy_estimate *e = &r->estimate;
        printf("%c %7s ", r->ranks == fewest ? '*' : ' ', cvy_print_count(r->ranks, unit[0]));
        if (!e->feasible) {
            printf("%-*s %9s %10s\n", STRATEGY_WIDTH, "nothing fits", cvy_print_count(r->batch, unit[1]), "-");
            continue;
        }
        cli_print_strategy(&e->strategy, e->recompute, strategy);
        printf("%-*.*s %9s %10s %12s %4.0f %% %10s\n", STRATEGY_WIDTH, STRATEGY_WIDTH, strategy,
               cvy_print_count(r->batch, unit[1]), cvy_print_seconds(e->iteration_s, unit[2]),
               cvy_print_seconds(r->training_s, unit[3]), 100.0 * get_efficiency(t, r),
               cli_print_price(r->price_usd, unit[4]));
    }
    printf("eff.: images a second of a rank, by those of the fewest ranks above\n");
}

static json_t *describe_row(const table *t, const row *r)
{
    char strategy[CLI_STRATEGY_TEXT];
    const cvy_estimate *e = &r->estimate;
    json_t *object = json_pack("{s:I, s:I, s:b}", "ranks", (json_int_t)r->ranks, "global_batch", (json_int_t)r->batch,
                               "feasible", e->feasible);
    if (e->feasible) {
        json_t *figures = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "strategy",
                                    cli_print_strategy(&e->strategy, CVY_RECOMPUTE_NONE, strategy), "recompute",
                                    cvy_recompute_name(e->recompute), "iteration_s", cli_json_number(e->iteration_s),
                                    "images_per_s", cli_json_number(e->images_per_s), "training_s",
                                    cli_json_number(r->training_s), "efficiency",
                                    cli_json_number(get_efficiency(t, r)), "price_usd",
                                    r->price_usd > 0.0 ? cli_json_number(r->price_usd) : json_null(), "in_time",
                                    r->in_time);
        json_object_update(object, figures);
        json_decref(figures);
    }
    return object;
}

static cvy_status print_json(const table *t, int64_t fewest)
{
    const cli_options *o = t->problem->options;
    json_t *list = json_array();
    for (int i = 0; i < t->rows; i++) {
        json_array_append_new(list, describe_row(t, &t->row[i]));
    }
    return cli_json_print(json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:o}", "schema", 1, "model", t->problem->model_text, "machine",
        t->problem->machine_text, "batch", o->plan.batch, "precision",
        cvy_precision_name(t->problem->oracle.precision), "hours", cli_json_number(o->plan.hours), "samples",
        (json_int_t)o->plan.samples, "epochs", (json_int_t)o->plan.epochs, "ranks",
        fewest ? json_integer((json_int_t)fewest) : json_null(), "rows", list));
}

static cvy_status judge(const table *t, int64_t fewest, int64_t most)
{
    char unit[CVY_UNIT_TEXT];
    const row *best = NULL;
    for (int i = 0; i < t->rows; i++) {
        const row *r = &t->row[i];
        best = r->estimate.feasible && (!best || r->training_s < best->training_s) ? r : best;
    }
    if (fewest) {
        return CVY_OK;
    }
    CVY_REQUIRE(best, CVY_ERR_INFEASIBLE, "nothing fits up to %" PRId64 " ranks of %s", most,
                t->problem->machine->name);
    return cvy_fail(CVY_ERR_INFEASIBLE, "no number of ranks up to %" PRId64 " trains in %.6g h: %" PRId64 " take %s",
                    most, t->problem->options->plan.hours, best->ranks, cvy_print_seconds(best->training_s, unit));
}

static cvy_status answer(cli_problem *problem)
{
    table t = {.problem = problem};
    const int64_t most = problem->ranks;
    int64_t fewest;
    CVY_REQUIRE(problem->options->plan.hours > 0.0 && problem->options->plan.samples, CVY_ERR_INPUT,
                "convoy ranks-for needs --hours, the time that the training may take, and --samples of an epoch");
    if (problem->strategy.automatic) {
        CVY_TRY(search_fewest(&t, most, &fewest));
    } else {
        CVY_TRY(find_fewest(&t, problem->options->plan.strategy, most, &fewest));
    }
    qsort(t.row, (size_t)t.rows, sizeof *t.row, compare_rows);
    if (problem->options->json) {
        CVY_TRY(print_json(&t, fewest));
    } else {
        print_rows(&t, fewest);
    }
    return judge(&t, fewest, most);
}

static cvy_status run_ranks_for(const cli_command *command, int argc, char **argv)
{
    return cli_problem_run(command, argc, argv, 0, answer);
}

const cli_command cli_ranks_for = {
    .name = "ranks-for",
    .operands = "MODEL",
    .usage = "MODEL --machine NAME --hours H --samples N",
    .max_operands = 1,
    .rows = CLI_RANKS_FOR,
    .summary = "Find how few ranks train a model in a given time",
    .examples = "  convoy ranks-for resnet50 --machine abci --hours 2 --samples 1281167 -e 90\n",
    .run = run_ranks_for,
};
