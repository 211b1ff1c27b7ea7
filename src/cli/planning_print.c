/* Figures of plans for people: strategies, settings, limits, within 100 columns. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/planning.h"

const char *cli_print_strategy(const cvy_strategy *strategy, cvy_recompute recompute, char *text)
{
    cvy_strategy_print(strategy, text);
    if (recompute != CVY_RECOMPUTE_NONE) {
        size_t length = strlen(text);
        snprintf(text + length, CLI_STRATEGY_TEXT - length, " recompute %s", cvy_recompute_name(recompute));
    }
    return text;
}

const char *cli_print_candidate(const cvy_candidate *candidate, char *text)
{
    const cvy_estimate *e = &candidate->estimate;
    cli_print_strategy(&e->strategy, CVY_RECOMPUTE_NONE, text);
    size_t length = strlen(text);
    bool remade = e->recompute != CVY_RECOMPUTE_NONE;
    snprintf(text + length, CLI_STRATEGY_TEXT - length, "%s%s%s", candidate->choices ? " mix" : "",
             remade ? " recompute " : "", remade ? cvy_recompute_name(e->recompute) : "");
    return text;
}

void cli_print_setting(const cli_problem *problem)
{
    char count[3][CVY_UNIT_TEXT];
    printf("%s on %s: %s of %s %s, batch %s", problem->model_text, problem->machine->name,
           cvy_print_count(problem->ranks, count[0]),
           cvy_print_count(cvy_machine_devices(problem->machine), count[1]), problem->machine->device.name,
           cvy_print_count(problem->batch, count[2]));
    if (problem->ranks > 1) {
        printf(" (%.6g a rank)", (double)problem->batch / (double)problem->ranks);
    }
    printf(", %s, %s%s\n", cvy_precision_name(problem->oracle.precision),
           cvy_optimizer_find_name(&problem->oracle.optimizer),
           problem->oracle.shard_optimizer ? " with sharded state" : "");
}

void cli_print_wrapped(int indent, const char *words)
{
    int at = indent;
    while (*words) {
        int length = (int)strcspn(words, " ");
        if (at > indent && at + 1 + length > CLI_WIDTH) {
            printf("\n%*s", indent, "");
            at = indent;
        }
        at += printf("%s%.*s", at > indent ? " " : "", length, words);
        words += length;
        words += strspn(words, " ");
    }
    printf("\n");
}

void cli_print_column(int width, const char *words)
{
    if ((int)strlen(words) > width) {
        printf("%s\n   %*s", words, width, "");
    } else {
        printf("%-*s", width, words);
    }
}

void cli_print_limits(const cvy_limit *limit, int count)
{
    enum { INDENT = 36 };
    for (int i = 0; i < count; i++) {
        printf("  %-25s%5.0f %%  ", limit[i].name, 100.0 * limit[i].share);
        cli_print_wrapped(INDENT, limit[i].what);
        if (limit[i].lift[0]) {
            printf("%*s", INDENT, "");
            cli_print_wrapped(INDENT, limit[i].lift);
        }
    }
    if (count == 0) {
        printf("  none of the rules finds one\n");
    }
}

const char *cli_print_price(double usd, char *text)
{
    char count[CVY_UNIT_TEXT];
    if (usd <= 0.0) {
        snprintf(text, CVY_UNIT_TEXT, "-");
    } else if (usd >= 1000.0 && usd < 1e15) {
        snprintf(text, CVY_UNIT_TEXT, "USD %.20s", cvy_print_count((int64_t)(usd + 0.5), count));
    } else {
        snprintf(text, CVY_UNIT_TEXT, "USD %.3g", usd);
    }
    return text;
}

const char *cli_print_layer_name(const char *name, int width, char *text)
{
    int length = (int)strlen(name);
    if (length > width) {
        snprintf(text, (size_t)width + 1, "...%s", name + length - (width - 3));
    } else {
        snprintf(text, (size_t)width + 1, "%s", name);
    }
    return text;
}
