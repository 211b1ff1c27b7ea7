/*
 * Coming together before anything else, with a time-out: what is collective waits for ever for a rank that never comes,
 * and does not say for whom. Each rank sends what it has to say to the first, which answers with all when it has heard
 * of all.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/comm_internal.h"

enum { POLL_NS = 1000000, NAMED_RANKS = 8, LATEST_TURN = 3 };
static const double turn_s = 3;  /* that a rank waits longer than the one before it: the first names who is late */
static const double pause_s = 0.1; /* a longer one was a stop of this process, which is to blame nobody */

/* Wait for one transfer, as long as there is time left. */
static cvy_status wait_within(cvy_transfer *transfer, double *left_s, bool *done_out)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    double last_s = cvy_clock_s();
    CVY_TRY(cvy_transfer_test(transfer, done_out));
    while (!*done_out && *left_s > 0) {
        nanosleep(&pause, NULL);
        double now_s = cvy_clock_s();
        *left_s -= now_s - last_s < pause_s ? now_s - last_s : pause_s;
        last_s = now_s;
        CVY_TRY(cvy_transfer_test(transfer, done_out));
    }
    return CVY_OK;
}

static cvy_status word_absence(const bool *came, int ranks, double timeout_s)
{
    char within[CVY_UNIT_TEXT];
    cvy_text list = {0};
    int count = 0;
    for (int i = 1; i < ranks; i++) {
        if (!came[i] && count++ < NAMED_RANKS) {
            cvy_text_add(&list, count > 1 ? ", %d" : "%d", i);
        }
    }
    cvy_print_seconds(timeout_s, within);
    cvy_status status = CVY_OK;
    if (count > 0) {
        status = cvy_fail(CVY_ERR_RANK, "rank%s %s%s did not come to the start of the run within %s",
                          count > 1 ? "s" : "", list.data ? list.data : "", count > NAMED_RANKS ? ", ..." : "", within);
    }
    cvy_text_destroy(&list);
    return status;
}

/* The transfers of the first rank with all others, or of another one with the first. */
typedef struct meeting {
    int ranks;
    const void *mine;
    int64_t bytes; /* of what each says */
    unsigned char *all;
    cvy_transfer **call, **answer;
    bool *came;
} meeting;

static cvy_status prepare(cvy_comm *comm, meeting *m)
{
    const int64_t all_bytes = m->ranks * m->bytes;
    bool first = cvy_comm_rank(comm) == 0;
    size_t room = (size_t)m->ranks;
    m->call = cvy_calloc(room, sizeof(cvy_transfer *));
    m->answer = cvy_calloc(room, sizeof(cvy_transfer *));
    m->came = cvy_calloc(room, sizeof *m->came);
    if (!m->call || !m->answer || !m->came) {
        return CVY_ERR_MEMORY;
    }
    for (int i = first ? 1 : 0; i < (first ? m->ranks : 1); i++) {
        cvy_transfer_spec spec = {.kind = first ? CVY_TRANSFER_RECEIVE : CVY_TRANSFER_SEND, .dtype = CVY_U8,
                                  .count = &m->bytes, .peer = i, .source = m->mine, .target = m->all + i * m->bytes};
        CVY_TRY(cvy_transfer_create(comm, &spec, &m->call[i]));
        spec.kind = first ? CVY_TRANSFER_SEND : CVY_TRANSFER_RECEIVE;
        spec.count = &all_bytes;
        spec.source = spec.target = m->all;
        CVY_TRY(cvy_transfer_create(comm, &spec, &m->answer[i]));
    }
    return CVY_OK;
}

/* The first rank: hear of all, then answer all. */
static cvy_status gather_ranks(const meeting *m, double timeout_s)
{
    double left_s = timeout_s;
    memcpy(m->all, m->mine, (size_t)m->bytes);
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(cvy_transfer_begin(m->call[i]));
    }
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(wait_within(m->call[i], &left_s, &m->came[i]));
    }
    CVY_TRY(word_absence(m->came, m->ranks, timeout_s));
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(cvy_transfer_run(m->answer[i]));
    }
    return CVY_OK;
}

static cvy_status come(const meeting *m, int rank, double timeout_s)
{
    bool done;
    double left_s = timeout_s + turn_s * (rank < LATEST_TURN ? rank : LATEST_TURN);
    char within[CVY_UNIT_TEXT];
    CVY_TRY(cvy_transfer_begin(m->call[0]));
    CVY_TRY(cvy_transfer_begin(m->answer[0]));
    CVY_TRY(wait_within(m->answer[0], &left_s, &done));
    CVY_REQUIRE(done, CVY_ERR_RANK, "rank 0 did not come to the start of the run within %s",
                cvy_print_seconds(timeout_s, within));
    return cvy_transfer_wait(m->call[0]);
}

static void clear(meeting *m)
{
    for (int i = 0; i < m->ranks; i++) {
        if (m->call && m->answer) {
            cvy_transfer_destroy(&m->call[i]);
            cvy_transfer_destroy(&m->answer[i]);
        }
    }
    cvy_free(m->call);
    cvy_free(m->answer);
    cvy_free(m->came);
}

cvy_status cvy_comm_gather_within(cvy_comm *comm, double timeout_s, const void *mine, int64_t bytes, void *all_out)
{
    meeting m = {.ranks = cvy_comm_ranks(comm), .mine = mine, .bytes = bytes, .all = all_out};
    if (m.ranks == 1) {
        memcpy(all_out, mine, (size_t)bytes);
        return CVY_OK;
    }
    cvy_status status = prepare(comm, &m);
    if (status != CVY_OK) {
        (void)cvy_comm_lose(comm, status);
    } else {
        status = cvy_comm_rank(comm) == 0 ? gather_ranks(&m, timeout_s) : come(&m, cvy_comm_rank(comm), timeout_s);
    }
    if (status != CVY_ERR_RANK) { /* else some are under way for ever */
        clear(&m);
    }
    return status;
}
