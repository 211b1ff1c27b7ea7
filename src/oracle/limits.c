/*
 * The eleven rules, one row each. Kahira et al. find limits by looking at measured and modelled times side by side; a
 * plan has no measured ones, so each rule is a ratio of figures of one estimate. Where communication runs beside
 * computation, only what sticks out limits. Rules of exchanges have 10 % and that of the update 5 %, as the other rules
 * of time have 10 %; of memory and of ranks it is the half: less is left than is in use.
 */
#include "oracle/limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/limits_internal.h"

void cvy_limits_append(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
}

#define TIME_THRESHOLD 0.10

static double divide(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

/* ---- communication ---- */

/* What sticks out of an iteration, and what it is a part of: "31 ms of 250 ms an iteration; …". */
static void say_communication(const cvy_estimate *e, double exposed_s, const cvy_communication *all, cvy_measure *m)
{
    char exposed[CVY_UNIT_TEXT], iteration[CVY_UNIT_TEXT], seconds[CVY_UNIT_TEXT], bytes[CVY_UNIT_TEXT];
    char beside[2 * CVY_UNIT_TEXT] = "";
    if (all->seconds > 1.005 * exposed_s) {
        snprintf(beside, sizeof beside, " of %s in all", cvy_print_seconds(all->seconds, seconds));
    }
    m->share = divide(exposed_s, e->iteration_s);
    snprintf(m->what, sizeof m->what, "%s%s stick out of %s an iteration; a rank sends %s, latency is %.0f %%",
             cvy_print_seconds(exposed_s, exposed), beside, cvy_print_seconds(e->iteration_s, iteration),
             cvy_print_bytes(all->bytes, bytes), 100 * divide(all->latency_s, all->seconds));
}

static cvy_status measure_gradient_exchange(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    say_communication(e, e->part_s[CVY_PHASE_GRADIENT_EXCHANGE], &e->communication[CVY_PHASE_GRADIENT_EXCHANGE], m);
    return CVY_OK;
}

static cvy_status measure_layerwise(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    cvy_communication all = e->communication[CVY_PHASE_REDISTRIBUTE];
    all.seconds -= e->transfer.seconds;
    all.latency_s -= e->transfer.latency_s;
    all.bytes -= e->transfer.bytes;
    say_communication(e, e->part_s[CVY_PHASE_REDISTRIBUTE] - e->transfer_s, &all, m);
    return CVY_OK;
}

static cvy_status measure_point_to_point(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    cvy_communication all = e->communication[CVY_PHASE_HALO];
    all.seconds += e->transfer.seconds;
    all.latency_s += e->transfer.latency_s;
    all.bytes += e->transfer.bytes;
    say_communication(e, e->part_s[CVY_PHASE_HALO] + e->transfer_s, &all, m);
    return CVY_OK;
}

static cvy_status measure_congestion(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    if (e->exposed_communication_s <= TIME_THRESHOLD * e->iteration_s) {
        return CVY_OK; /* no more than that could be saved */
    }
    cvy_estimate alone;
    char shared[CVY_UNIT_TEXT], iteration[CVY_UNIT_TEXT];
    CVY_TRY(cvy_limits_estimate_alone(now, &alone));
    double shared_s = alone.feasible ? e->iteration_s - alone.iteration_s : 0.0;
    m->share = divide(shared_s, e->iteration_s);
    snprintf(m->what, sizeof m->what, "flows that share links take %s longer than each would alone, of %s an iteration",
             cvy_print_seconds(shared_s, shared), cvy_print_seconds(e->iteration_s, iteration));
    return CVY_OK;
}

static cvy_status measure_io(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    char io[CVY_UNIT_TEXT], iteration[CVY_UNIT_TEXT], rate[CVY_UNIT_TEXT];
    const cvy_storage *storage = &now->machine->storage;
    m->share = divide(e->part_s[CVY_PHASE_IO], e->iteration_s);
    snprintf(m->what, sizeof m->what, "ranks wait %s of %s an iteration for %s",
             cvy_print_seconds(e->part_s[CVY_PHASE_IO], io), cvy_print_seconds(e->iteration_s, iteration),
             e->managed_memory ? "input, and for tensors that are paged" : "their input");
    if (storage->read_Bps > 0) {
        cvy_limits_append(m->what, sizeof m->what, "; a node reads %s/s", cvy_print_bytes(storage->read_Bps, rate));
    }
    return CVY_OK;
}

/* ---- memory ---- */

static cvy_status measure_redundancy(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    char redundant[CVY_UNIT_TEXT], total[CVY_UNIT_TEXT];
    m->share = divide((double)e->redundant_bytes, (double)e->total_bytes);
    snprintf(m->what, sizeof m->what, "%s of weights, gradients and optimizer state are on other ranks, too, of %s",
             cvy_print_bytes((double)e->redundant_bytes, redundant), cvy_print_bytes((double)e->total_bytes, total));
    return CVY_OK;
}

static cvy_status measure_fragmentation(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    char arena[CVY_UNIT_TEXT], live[CVY_UNIT_TEXT];
    m->share = e->live_bytes > 0 ? (double)e->transient_bytes / (double)e->live_bytes - 1.0 : 0.0;
    snprintf(m->what, sizeof m->what, "buffers of an iteration take %s, at most %s of them live at once",
             cvy_print_bytes((double)e->transient_bytes, arena), cvy_print_bytes((double)e->live_bytes, live));
    return CVY_OK;
}

/* ---- computation ---- */

static cvy_status measure_update(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)now;
    char update[CVY_UNIT_TEXT], compute[CVY_UNIT_TEXT];
    double compute_s = e->part_s[CVY_PHASE_FORWARD] + e->part_s[CVY_PHASE_RECOMPUTE] + e->part_s[CVY_PHASE_BACKWARD] +
                       e->part_s[CVY_PHASE_UPDATE];
    m->share = divide(e->part_s[CVY_PHASE_UPDATE], compute_s);
    snprintf(m->what, sizeof m->what, "updating weights takes %s of %s of computation",
             cvy_print_seconds(e->part_s[CVY_PHASE_UPDATE], update), cvy_print_seconds(compute_s, compute));
    return CVY_OK;
}

/* While the slowest stage is busy, the mean one is so for 1 / (1 + balance) of that. */
static cvy_status measure_balance(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    char idle[CVY_UNIT_TEXT], iteration[CVY_UNIT_TEXT], bubble[CVY_UNIT_TEXT], wait[CVY_UNIT_TEXT];
    double stops_s = e->part_s[CVY_TIME_BUBBLE] + e->part_s[CVY_TIME_WAIT];
    double idle_s = stops_s + (e->iteration_s - stops_s) * e->balance / (1.0 + e->balance);
    m->share = divide(idle_s, e->iteration_s);
    if (now->question->strategy.mesh.size[CVY_AXIS_STAGE] == 1) {
        snprintf(m->what, sizeof m->what, "ranks wait %s of %s an iteration for the slowest one",
                 cvy_print_seconds(idle_s, idle), cvy_print_seconds(e->iteration_s, iteration));
        return CVY_OK;
    }
    snprintf(m->what, sizeof m->what,
             "an average rank stands idle %s of %s: slowest stage %.0f %% over the mean, bubble %s, wait %s",
             cvy_print_seconds(idle_s, idle), cvy_print_seconds(e->iteration_s, iteration), 100 * e->balance,
             cvy_print_seconds(e->part_s[CVY_TIME_BUBBLE], bubble), cvy_print_seconds(e->part_s[CVY_TIME_WAIT], wait));
    return CVY_OK;
}

static cvy_status measure_computation(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    char each[CVY_UNIT_TEXT], once[CVY_UNIT_TEXT];
    const int64_t ranks = now->question->strategy.mesh.ranks;
    m->share = e->serial_flop > 0 ? e->flop / e->serial_flop - 1.0 : 0.0;
    snprintf(m->what, sizeof m->what, "%s on each of %" PRId64 " rank%s, %s if nothing were done twice",
             cvy_print_si(e->flop, "FLOP", each), ranks, ranks == 1 ? "" : "s",
             cvy_print_si(e->serial_flop, "FLOP", once));
    return CVY_OK;
}

/* ---- scaling ---- */

static cvy_status measure_ranks(const cvy_limits_case *now, const cvy_estimate *e, cvy_measure *m)
{
    (void)e;
    double most = 0.0;
    CVY_TRY(cvy_limits_most_ranks(now, &most, m->what));
    m->share = divide((double)now->question->strategy.mesh.ranks, most);
    return CVY_OK;
}

/* ---- the rules ---- */

static const cvy_limit_rule rules[CVY_MAX_LIMITS] = {
    {"gradient exchange",
     TIME_THRESHOLD,
     {CVY_CHANGE_LINK_BANDWIDTH, CVY_CHANGE_LINK_LATENCY, CVY_CHANGE_OVERLAP, CVY_CHANGE_COUNT},
     measure_gradient_exchange},
    {"layer-wise communication",
     TIME_THRESHOLD,
     {CVY_CHANGE_LINK_BANDWIDTH, CVY_CHANGE_LINK_LATENCY, CVY_CHANGE_COUNT},
     measure_layerwise},
    {"P2P communication",
     TIME_THRESHOLD,
     {CVY_CHANGE_LINK_BANDWIDTH, CVY_CHANGE_LINK_LATENCY, CVY_CHANGE_COUNT},
     measure_point_to_point},
    {"network congestion", TIME_THRESHOLD, {CVY_CHANGE_LINK_BANDWIDTH, CVY_CHANGE_COUNT}, measure_congestion},
    {"I/O and staging",
     TIME_THRESHOLD,
     {CVY_CHANGE_STORAGE, CVY_CHANGE_LINK_BANDWIDTH, CVY_CHANGE_STAGING, CVY_CHANGE_COUNT},
     measure_io},
    {"memory redundancy", 0.50, {CVY_CHANGE_SHARDING, CVY_CHANGE_COUNT}, measure_redundancy},
    {"fragmentation", TIME_THRESHOLD, {CVY_CHANGE_COUNT}, measure_fragmentation},
    {"weight update", 0.05, {CVY_CHANGE_MEMORY_BANDWIDTH, CVY_CHANGE_SHARDING, CVY_CHANGE_COUNT}, measure_update},
    {"workload balance", TIME_THRESHOLD, {CVY_CHANGE_MICRO_BATCHES, CVY_CHANGE_COUNT}, measure_balance},
    {"computation redundancy",
     TIME_THRESHOLD,
     {CVY_CHANGE_KEEPING, CVY_CHANGE_PEAK, CVY_CHANGE_MEMORY_BANDWIDTH, CVY_CHANGE_COUNT},
     measure_computation},
    {"number of ranks", 0.50, {CVY_CHANGE_BATCH, CVY_CHANGE_COUNT}, measure_ranks},
};

/* What is farthest over its threshold comes first; equal ones stay in the order of the table. */
static cvy_limit *insert_limit(cvy_limit *limits, int count, double over)
{
    int place = count;
    for (; place > 0 && over > limits[place - 1].share / limits[place - 1].threshold; place--) {
        limits[place] = limits[place - 1];
    }
    return &limits[place];
}

static cvy_status find_limits(cvy_what_ifs *what_ifs, bool what_if, cvy_limit *limits_out, int *count_out)
{
    int count = 0;
    for (int i = 0; i < CVY_MAX_LIMITS; i++) {
        const cvy_limit_rule *rule = &rules[i];
        cvy_measure measure = {.share = 0.0};
        CVY_TRY(rule->measure(&what_ifs->now, what_ifs->estimate, &measure));
        if (measure.share > rule->threshold) {
            cvy_limit *limit = insert_limit(limits_out, count++, measure.share / rule->threshold);
            *limit = (cvy_limit){.name = rule->name, .share = measure.share, .threshold = rule->threshold};
            memcpy(limit->what, measure.what, sizeof limit->what);
            if (what_if) {
                CVY_TRY(cvy_limits_lift(what_ifs, rule, limit));
            }
        }
    }
    *count_out = count;
    return CVY_OK;
}

static cvy_limits_case describe_case(const cvy_oracle *oracle, const cvy_estimate_question *question)
{
    return (cvy_limits_case){.oracle = oracle, .model = cvy_oracle_get_model(oracle),
                             .machine = cvy_oracle_get_machine(oracle), .options = cvy_oracle_get_options(oracle),
                             .question = question};
}

static cvy_status find_limits_of(const cvy_limits_case *now, const cvy_estimate *estimate, bool what_if,
                                 cvy_limit *limits_out, int *count_out)
{
    if (!estimate->feasible) {
        *count_out = 0;
        return CVY_OK;
    }
    cvy_what_ifs *what_ifs = cvy_calloc(1, sizeof *what_ifs);
    if (!what_ifs) {
        return CVY_ERR_MEMORY;
    }
    what_ifs->now = *now;
    what_ifs->estimate = estimate;
    cvy_status status = find_limits(what_ifs, what_if, limits_out, count_out);
    cvy_free(what_ifs);
    return status;
}

cvy_status cvy_limits_find(cvy_oracle *oracle, const cvy_estimate_question *question, const cvy_estimate *estimate,
                           bool what_if, cvy_limit *limits_out, int *count_out)
{
    const cvy_limits_case now = describe_case(oracle, question);
    return find_limits_of(&now, estimate, what_if, limits_out, count_out);
}

cvy_status cvy_limits_find_kept(cvy_oracle *oracle, const cvy_estimate_question *question,
                                const cvy_estimate *estimate, cvy_kept_plans *kept, cvy_limit *limits_out,
                                int *count_out)
{
    cvy_limits_case now = describe_case(oracle, question);
    now.kept = kept;
    return find_limits_of(&now, estimate, false, limits_out, count_out);
}
