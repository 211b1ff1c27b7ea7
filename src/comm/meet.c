/*
 * Coming together before anything else, with a time-out: what is collective waits for ever for a rank that never comes,
 * and does not say for whom. Each rank sends a byte to the first, which answers when it has heard of all.
 */
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/comm_internal.h"

enum { POLL_NS = 1000000, WORD_BYTES = 1, NAMED_RANKS = 8 };
static const double answer_s = 1; /* that others wait longer than the first rank, which names who is late */

/* Wait for one transfer until a moment of the clock. */
static cvy_status wait_until(cvy_transfer *transfer, double end_s, bool *done_out)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    CVY_TRY(cvy_transfer_test(transfer, done_out));
    while (!*done_out && cvy_clock_s() < end_s) {
        nanosleep(&pause, NULL);
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
    cvy_transfer **call, **answer;
    bool *came;
    unsigned char *word;
} meeting;

static cvy_status prepare(cvy_comm *comm, meeting *m)
{
    const int64_t bytes = WORD_BYTES;
    bool first = cvy_comm_rank(comm) == 0;
    size_t room = (size_t)m->ranks;
    m->call = cvy_calloc(room, sizeof(cvy_transfer *));
    m->answer = cvy_calloc(room, sizeof(cvy_transfer *));
    m->came = cvy_calloc(room, sizeof *m->came);
    m->word = cvy_calloc(2 * room, WORD_BYTES);
    if (!m->call || !m->answer || !m->came || !m->word) {
        return CVY_ERR_MEMORY;
    }
    for (int i = first ? 1 : 0; i < (first ? m->ranks : 1); i++) {
        cvy_transfer_spec spec = {.kind = first ? CVY_TRANSFER_RECEIVE : CVY_TRANSFER_SEND, .dtype = CVY_U8,
                                  .count = &bytes, .peer = i, .source = &m->word[2 * i], .target = &m->word[2 * i]};
        CVY_TRY(cvy_transfer_create(comm, &spec, &m->call[i]));
        spec.kind = first ? CVY_TRANSFER_SEND : CVY_TRANSFER_RECEIVE;
        spec.source = spec.target = &m->word[2 * i + 1];
        CVY_TRY(cvy_transfer_create(comm, &spec, &m->answer[i]));
    }
    return CVY_OK;
}

/* The first rank: hear of all, then answer all. */
static cvy_status gather_ranks(const meeting *m, double timeout_s)
{
    double end_s = cvy_clock_s() + timeout_s;
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(cvy_transfer_begin(m->call[i]));
    }
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(wait_until(m->call[i], end_s, &m->came[i]));
    }
    CVY_TRY(word_absence(m->came, m->ranks, timeout_s));
    for (int i = 1; i < m->ranks; i++) {
        CVY_TRY(cvy_transfer_run(m->answer[i]));
    }
    return CVY_OK;
}

static cvy_status come(const meeting *m, double timeout_s)
{
    bool done;
    char within[CVY_UNIT_TEXT];
    CVY_TRY(cvy_transfer_begin(m->call[0]));
    CVY_TRY(cvy_transfer_begin(m->answer[0]));
    CVY_TRY(wait_until(m->answer[0], cvy_clock_s() + timeout_s + answer_s, &done));
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
    cvy_free(m->word);
}

cvy_status cvy_comm_meet(cvy_comm *comm, double timeout_s)
{
    meeting m = {.ranks = cvy_comm_ranks(comm)};
    if (m.ranks == 1) {
        return CVY_OK;
    }
    cvy_status status = prepare(comm, &m);
    if (status == CVY_OK) {
        status = cvy_comm_rank(comm) == 0 ? gather_ranks(&m, timeout_s) : come(&m, timeout_s);
    }
    if (status != CVY_ERR_RANK) { /* else some are under way for ever */
        clear(&m);
    }
    return status;
}
