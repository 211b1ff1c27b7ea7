/*
 * How fast strategies are bounded, and searched, on one core: resnet50 on 64 and on 1024 ranks, 32 samples a rank.
 * Usage: search [MODEL [MACHINE]]. Prints a line for each number of ranks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "oracle/bound.h"
#include "oracle/search.h"

enum { ROUNDS = 5, SAMPLES = 32, BLOCKS = 1000 };

static cvy_oracle_options make_options(int64_t ranks)
{
    return (cvy_oracle_options){.batch = SAMPLES * ranks, .precision = CVY_PRECISION_FP32, .bucket_bytes = -1,
                                .optimizer = {.params = {.momentum = 0.9}}};
}

/* Every strategy in every recomputation, the preparation of the model included; how many. */
static cvy_status bound_all(const cvy_model *model, const cvy_machine *machine, int64_t ranks, int64_t *count_out)
{
    cvy_oracle_options options = make_options(ranks);
    cvy_variants variants = {.ranks = ranks, .batch = options.batch};
    cvy_bound *bound = NULL;
    cvy_blocks blocks = {0};
    CVY_REQUIRE(ranks <= cvy_machine_devices(machine), CVY_ERR_INPUT,
                "%" PRId64 " ranks, machine %s has %" PRId64 " devices", ranks, machine->name,
                cvy_machine_devices(machine));
    cvy_status status = cvy_model_count_stages(model, &variants.max_stages);
    CVY_TRY(status);
    CVY_TRY_GOTO(status, done, cvy_bound_create(model, machine, &options, &bound));
    CVY_TRY_GOTO(status, done, cvy_blocks_list(model, ranks, false, BLOCKS, &blocks));
    *count_out = 0;
    for (int i = 0; i < blocks.count; i++) {
        variants.block = &blocks.block[i];
        cvy_variants_begin(&variants);
        bool possible = cvy_bound_enter(bound, variants.block, NULL) == CVY_OK;
        while (possible && cvy_variants_next(&variants)) {
            for (int recompute = CVY_RECOMPUTE_NONE; recompute <= CVY_RECOMPUTE_ALL; recompute++) {
                (void)cvy_bound_estimate(bound, &variants.strategy, (cvy_recompute)recompute);
                (*count_out)++;
            }
        }
    }
done:
    cvy_blocks_clear(&blocks);
    cvy_bound_destroy(&bound);
    return status;
}

static cvy_status measure_bounds(const cvy_model *model, const cvy_machine *machine, int64_t ranks)
{
    double seconds[ROUNDS];
    int64_t count = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double begin_s = cvy_clock_s();
        CVY_TRY(bound_all(model, machine, ranks, &count));
        seconds[i] = cvy_clock_s() - begin_s;
    }
    cvy_sort_doubles(seconds, ROUNDS);
    printf("%-6" PRId64 " ranks: %" PRId64 " configurations bounded in %.3f s: %.0f a second\n", ranks, count,
           seconds[ROUNDS / 2], (double)count / seconds[ROUNDS / 2]);
    return CVY_OK;
}

static cvy_status measure_search(const cvy_model *model, const cvy_machine *machine, int64_t ranks)
{
    cvy_oracle_options options = make_options(ranks);
    cvy_search_options what = {.ranks = ranks, .mix = true};
    cvy_oracle *oracle = NULL;
    cvy_search *search = NULL;
    double begin_s = cvy_clock_s();
    cvy_status status = cvy_oracle_create(model, machine, &options, &oracle);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_search_create(oracle, &what, &search));
    printf("%-6" PRId64 " ranks: searched in %.3f s: %d strategies estimated, %" PRId64 " bounded\n", ranks,
           cvy_clock_s() - begin_s, search->simulations, search->configurations);
done:
    cvy_search_destroy(&search);
    cvy_oracle_destroy(&oracle);
    return status;
}

int main(int count, char **words)
{
    static const int64_t ranks[] = {64, 1024};
    cvy_model *model = NULL;
    cvy_machine *machine = NULL;
    cvy_status status = cvy_model_open(count > 1 ? words[1] : "resnet50", &model);
    status = status == CVY_OK ? cvy_machine_open(count > 2 ? words[2] : "abci", &machine) : status;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks && status == CVY_OK; i++) {
        status = measure_bounds(model, machine, ranks[i]);
        status = status == CVY_OK ? measure_search(model, machine, ranks[i]) : status;
    }
    if (status != CVY_OK) {
        fprintf(stderr, "search: %s\n", cvy_error_message());
    }
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
    return status != CVY_OK;
}
