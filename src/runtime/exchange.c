/* Running a bound step: pack, move, unpack. */
#include "runtime/exchange.h"

#include <string.h>

#include "base/memory.h"

void cvy_exchange_clear(cvy_exchange_run *run)
{
    for (int i = 0; i < run->transfers; i++) {
        cvy_transfer_destroy(&run->transfer[i]);
    }
    cvy_free(run->transfer);
    cvy_free(run->pack);
    cvy_free(run->unpack);
    *run = (cvy_exchange_run){0};
}

static double load(cvy_dtype dtype, const void *from, int64_t i)
{
    return dtype == CVY_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static void store(cvy_dtype dtype, void *to, int64_t i, double value)
{
    if (dtype == CVY_F32) {
        ((float *)to)[i] = (float)value;
    } else {
        ((double *)to)[i] = value;
    }
}

static void pack_moments(const cvy_moments *m)
{
    for (int64_t c = 0; c < m->channels; c++) {
        m->packed[3 * c] = (double)m->count;
        m->packed[3 * c + 1] = m->count > 0 ? load(m->dtype, m->mean, c) : 0.0;
        m->packed[3 * c + 2] = m->count > 0 ? load(m->dtype, m->variance, c) * (double)m->count : 0.0;
    }
}

static void unpack_moments(const cvy_moments *m)
{
    for (int64_t c = 0; c < m->channels; c++) {
        double count = m->packed[3 * c];
        store(m->dtype, m->mean, c, m->packed[3 * c + 1]);
        store(m->dtype, m->variance, c, count > 0.0 ? m->packed[3 * c + 2] / count : 0.0);
    }
}

static void pack_all(const cvy_exchange_run *run)
{
    for (int i = 0; i < run->packs; i++) {
        cvy_pack_run(&run->pack[i]);
    }
    if (run->moments.packed) {
        pack_moments(&run->moments);
    }
}

static void unpack_all(const cvy_exchange_run *run)
{
    if (run->clear) {
        memset(run->clear, 0, run->clear_bytes);
    }
    for (int i = 0; i < run->unpacks; i++) {
        cvy_pack_run_back(&run->unpack[i], run->add);
    }
    if (run->moments.packed) {
        unpack_moments(&run->moments);
    }
}

cvy_status cvy_exchange_begin(cvy_exchange_run *run)
{
    pack_all(run);
    run->under_way = true;
    for (int i = 0; i < run->transfers; i++) {
        CVY_TRY(cvy_transfer_begin(run->transfer[i]));
    }
    return CVY_OK;
}

cvy_status cvy_exchange_progress(cvy_exchange_run *run)
{
    bool done = true;
    for (int i = 0; done && i < run->transfers; i++) {
        CVY_TRY(cvy_transfer_test(run->transfer[i], &done));
    }
    return CVY_OK;
}

cvy_status cvy_exchange_finish(cvy_exchange_run *run)
{
    if (!run->under_way) {
        return CVY_OK;
    }
    run->under_way = false;
    for (int i = 0; i < run->transfers; i++) {
        CVY_TRY(cvy_transfer_wait(run->transfer[i]));
    }
    unpack_all(run);
    return CVY_OK;
}

cvy_status cvy_exchange_run_whole(cvy_exchange_run *run)
{
    if (run->transfers != 1) { /* messages cross: none may wait for another one */
        CVY_TRY(cvy_exchange_begin(run));
        return cvy_exchange_finish(run);
    }
    pack_all(run);
    CVY_TRY(cvy_transfer_run(run->transfer[0]));
    unpack_all(run);
    return CVY_OK;
}
