/*
 * The work is a product of matrices in the cache, again and again. All ranks begin it together and the time of each is
 * gathered: by the median of its single products it says how much longer computing takes while all compute (cores that
 * are shared, quotas, what else runs), and by the slowest rank of each round how long the others wait. Then an
 * all-reduce goes on beside it, and makes progress between pieces of it.
 */
#include "calibrate/beside.h"

#include <math.h>
#include <stdio.h>

#include "backend/measure.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/pulse.h"
#include "calibrate/peaks.h"

enum { SIZE = 384, ROUNDS = 15, EXCHANGES = 7, MOST_PRODUCTS = 512, SOURCE = 120 };

static const double round_s = 0.05;    /* of work: a step of a training */
static const double piece_s = 0.002;   /* of work between two looks at an exchange: a kernel or two of backward */
static const double exchange_s = 0.1;  /* at most, of the all-reduce */
static const double quartiles = 1.349; /* of a normal distribution, apart, in standard deviations */

/* What is computed. */
typedef struct bench {
    cvy_comm *comm;
    cvy_kernel *kernel;
    cvy_arena arena;
    void *operand[CVY_MAX_OPERANDS], *scratch;
    double product_s; /* of one, alone */
} bench;

static cvy_status make_product(const cvy_backend_chain *chain, bench *b)
{
    static const cvy_tensor square = {.shape = {2, {SIZE, SIZE}}, .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_W, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &square));
    CVY_TRY(cvy_kernel_create(chain, &op, &b->kernel));
    return cvy_kernel_take_memory(b->kernel, &b->arena, b->operand, &b->scratch);
}

/* Products one behind the other: seconds of all, and the median of one. */
static cvy_status compute(bench *b, int products, double *whole_out, double *one_out)
{
    static const cvy_run run = {.samples = SIZE, .loss_scale = 1.0, .update = 1};
    double each[MOST_PRODUCTS], start_s = cvy_clock_s(), before_s = start_s;
    for (int i = 0; i < products; i++) {
        CVY_TRY(cvy_kernel_run(b->kernel, b->operand, b->scratch, &run));
        double now_s = cvy_clock_s();
        each[i] = now_s - before_s;
        before_s = now_s;
    }
    *whole_out = before_s - start_s;
    cvy_sort_doubles(each, products);
    *one_out = each[products / 2];
    cvy_pulse_beat();
    return CVY_OK;
}

static int count_products(const bench *b, double seconds)
{
    return (int)fmax(1.0, fmin(MOST_PRODUCTS, seconds / fmax(b->product_s, 1e-9)));
}

static cvy_status meet(const bench *b)
{
    double nothing = 0.0;
    return cvy_comm_all_reduce(b->comm, &nothing, 1, CVY_F64, CVY_REDUCE_MAX);
}

/* ---- all ranks at once ---- */

void cvy_beside_sum_up(const double *seconds, const double *expected_s, int rounds, int ranks, cvy_beside *beside)
{
    double lockstep[ROUNDS], ahead[ROUNDS], alone[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        double mean = 0.0, most = 0.0, by = 0.0;
        for (int r = 0; r < ranks; r++) {
            double s = seconds[i * ranks + r];
            mean += s / ranks;
            by += s / expected_s[i * ranks + r] / ranks;
            most = fmax(most, s);
        }
        lockstep[i] = by;
        ahead[i] = most / mean - 1.0;
        alone[i] = mean;
    }
    cvy_sort_doubles(lockstep, rounds);
    cvy_sort_doubles(ahead, rounds);
    cvy_sort_doubles(alone, rounds);
    double apart = (alone[3 * (rounds - 1) / 4] - alone[(rounds - 1) / 4]) / alone[rounds / 2];
    beside->rounds = rounds;
    beside->lockstep = fmax(1.0, lockstep[rounds / 2]);
    beside->spread = ranks > 1 ? ahead[rounds / 2] / sqrt(2.0 * log(ranks)) : apart / quartiles;
}

static cvy_status measure_lockstep(bench *b, cvy_beside *beside)
{
    int ranks = cvy_comm_ranks(b->comm), rank = cvy_comm_rank(b->comm), products = MOST_PRODUCTS / 16;
    double whole_s, *all = cvy_calloc((size_t)ranks * ROUNDS * 2, sizeof *all);
    cvy_status status = cvy_comm_agree(b->comm, all ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, compute(b, products, &whole_s, &b->product_s)); /* warms up */
    products = count_products(b, round_s);
    for (int i = 0; i < ROUNDS; i++) {
        CVY_TRY_GOTO(status, done, meet(b));
        CVY_TRY_GOTO(status, done, compute(b, products, &whole_s, &b->product_s));
        all[i * ranks + rank] = whole_s;
        all[(ROUNDS + i) * ranks + rank] = products * b->product_s;
    }
    CVY_TRY_GOTO(status, done, cvy_comm_all_reduce(b->comm, all, ranks * ROUNDS * 2, CVY_F64, CVY_REDUCE_SUM));
    cvy_beside_sum_up(all, all + ROUNDS * ranks, ROUNDS, ranks, beside);
done:
    cvy_free(all);
    return status;
}

/* ---- beside an exchange ---- */

/* The largest all-reduce that is not too long. */
static int64_t find_bytes(const cvy_network_profile *network)
{
    int64_t bytes = 0;
    for (int i = 0; i < network->curves; i++) {
        const cvy_network_curve *curve = &network->curve[i];
        for (int k = 0; curve->collective == CVY_COLLECTIVE_ALL_REDUCE && k < curve->points; k++) {
            bool fits = curve->groups == 1 && (k == 0 || curve->point[k].seconds <= exchange_s);
            bytes = fits ? (int64_t)curve->point[k].bytes : bytes;
        }
    }
    return bytes;
}

/* Seconds of an exchange alone and beside pieces of work, and how many of these there were. */
static cvy_status exchange_once(bench *b, cvy_transfer *transfer, double seconds[2], double *products_out)
{
    int each = count_products(b, piece_s), products = 0;
    double start_s, piece, one;
    bool done = false;
    CVY_TRY(meet(b));
    start_s = cvy_clock_s();
    CVY_TRY(cvy_transfer_run(transfer));
    seconds[0] = cvy_clock_s() - start_s;
    CVY_TRY(meet(b));
    start_s = cvy_clock_s();
    CVY_TRY(cvy_transfer_begin(transfer));
    while (!done) {
        CVY_TRY(compute(b, each, &piece, &one));
        CVY_TRY(cvy_transfer_test(transfer, &done));
        products += each;
    }
    seconds[1] = cvy_clock_s() - start_s;
    *products_out = products;
    return CVY_OK;
}

static cvy_status measure_exchange(bench *b, double usual_s, float *buffer, int64_t elements, cvy_beside *beside)
{
    cvy_transfer *transfer = NULL;
    cvy_transfer_spec spec = {.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = CVY_F32, .reduction = CVY_REDUCE_SUM,
                              .target = buffer, .count = &elements};
    double exchange[EXCHANGES], computing[EXCHANGES];
    cvy_status status = cvy_comm_agree(b->comm, cvy_transfer_create(b->comm, &spec, &transfer));
    CVY_TRY_GOTO(status, done, status);
    for (int i = 0; i < EXCHANGES; i++) {
        double seconds[2], products;
        CVY_TRY_GOTO(status, done, exchange_once(b, transfer, seconds, &products));
        double late_s = usual_s * count_products(b, piece_s) / 2.0; /* it was done half a piece ago, on average */
        exchange[i] = fmax(seconds[1] - late_s, 0.0) / seconds[0];
        computing[i] = seconds[1] / (products * usual_s);
    }
    CVY_TRY_GOTO(status, done, cvy_comm_all_reduce(b->comm, exchange, EXCHANGES, CVY_F64, CVY_REDUCE_MAX));
    CVY_TRY_GOTO(status, done, cvy_comm_all_reduce(b->comm, computing, EXCHANGES, CVY_F64, CVY_REDUCE_MAX));
    cvy_sort_doubles(exchange, EXCHANGES);
    cvy_sort_doubles(computing, EXCHANGES);
    beside->exchange_slowdown = fmax(1.0, exchange[EXCHANGES / 2]);
    beside->compute_slowdown = fmax(1.0, computing[EXCHANGES / 2]);
done:
    cvy_transfer_destroy(&transfer);
    return status;
}

static cvy_status measure_all(bench *b, const cvy_network_profile *network, cvy_beside *beside)
{
    CVY_TRY(measure_lockstep(b, beside));
    int64_t bytes = network ? find_bytes(network) : 0;
    if (cvy_comm_ranks(b->comm) == 1 || bytes == 0) {
        return CVY_OK;
    }
    float *buffer = cvy_calloc((size_t)bytes / sizeof *buffer, sizeof *buffer);
    cvy_status status = cvy_comm_agree(b->comm, buffer ? CVY_OK : CVY_ERR_MEMORY);
    if (status == CVY_OK) {
        double usual_s = b->product_s * beside->lockstep;
        status = measure_exchange(b, usual_s, buffer, bytes / (int64_t)sizeof *buffer, beside);
    }
    cvy_free(buffer);
    return status;
}

cvy_status cvy_beside_measure(cvy_comm *comm, const cvy_backend_chain *chain, const cvy_network_profile *network,
                              cvy_beside *beside_out)
{
    bench b = {.comm = comm};
    cvy_beside beside = {0};
    cvy_status status = cvy_comm_agree(comm, make_product(chain, &b));
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, measure_all(&b, network, &beside));
    *beside_out = beside;
done:
    cvy_arena_destroy(&b.arena);
    cvy_kernel_destroy(&b.kernel);
    return status;
}

/* ---- in a machine file ---- */

static cvy_status fill(double *figure, double value, const char *source, cvy_machine *m)
{
    *figure = cvy_round_figure(value);
    return cvy_machine_set_source(m, figure, source);
}

cvy_status cvy_beside_fill(const cvy_beside *beside, const char *date, cvy_machine *m)
{
    char rounds[SOURCE], exchanges[SOURCE];
    if (beside->rounds == 0) {
        return CVY_OK;
    }
    snprintf(rounds, sizeof rounds, "%d rounds of %.0f ms of work, %s", beside->rounds, 1e3 * round_s, date);
    snprintf(exchanges, sizeof exchanges, "an all-reduce that makes progress each %.0f ms, %s", 1e3 * piece_s, date);
    CVY_TRY(fill(&m->device.spread, beside->spread, rounds, m));
    double lockstep = beside->lockstep / (1.0 + m->device.interruptions); /* which kernels have already */
    CVY_TRY(fill(&m->execution.lockstep, fmax(1.0, lockstep), rounds, m));
    if (beside->exchange_slowdown > 0.0) {
        m->execution.overlap = true; /* as convoy train does */
        CVY_TRY(fill(&m->execution.exchange_slowdown, beside->exchange_slowdown, exchanges, m));
        CVY_TRY(fill(&m->execution.compute_slowdown, beside->compute_slowdown, exchanges, m));
    }
    return CVY_OK;
}
