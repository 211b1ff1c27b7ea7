/* What is compared is a row of a table; each row becomes a word, and each rank gets the words of all. */
#include "runtime/alike.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/memory.h"

typedef enum row_type { TEXT, INT, I64, U64, REAL, BOOL } row_type;

typedef struct row {
    const char *name;
    size_t offset;
    row_type type;
} row;

#define ROW(member, type) {#member, offsetof(cvy_train_options, member), type}

/* Not those of a place: threads, folders that the first rank alone uses, and where the data lie. */
static const row rows[] = {
    ROW(data_kind, TEXT),        ROW(train_samples, I64),    ROW(test_samples, I64),     ROW(mean, TEXT),
    ROW(std, TEXT),              ROW(crop_padding, I64),     ROW(hflip, REAL),           ROW(batch, I64),
    ROW(epochs, I64),            ROW(steps, I64),            ROW(seed, U64),             ROW(backend, TEXT),
    ROW(layout, TEXT),           ROW(recompute, TEXT),       ROW(micro_batches, INT),    ROW(double_precision, BOOL),
    ROW(optimizer, INT),         ROW(learning_rate, REAL),   ROW(rate_base_size, I64),   ROW(momentum, REAL),
    ROW(beta1, REAL),            ROW(beta2, REAL),           ROW(epsilon, REAL),         ROW(weight_decay, REAL),
    ROW(trust, REAL),            ROW(clip_norm, REAL),       ROW(clip_value, REAL),      ROW(ema, REAL),
    ROW(no_decay_norms, BOOL),   ROW(rate, INT),             ROW(warmup_epochs, REAL),   ROW(step_epochs, REAL),
    ROW(gamma, REAL),            ROW(milestones, TEXT),      ROW(power, REAL),           ROW(out, TEXT),
    ROW(resume, TEXT),           ROW(weights, TEXT),         ROW(checkpoint_every, I64), ROW(strategy, TEXT),
    ROW(plan, TEXT),             ROW(sync_norms, TEXT),      ROW(bucket_bytes, I64),     ROW(overlap, BOOL),
    ROW(shard_optimizer, BOOL),  ROW(timeout_s, REAL),       ROW(deterministic_kernels, BOOL),
};

enum { ROWS = sizeof rows / sizeof rows[0], DATA_WORDS = 3 };

static uint64_t hash_text(const char *text)
{
    return text ? cvy_hash_text(cvy_hash_byte(CVY_HASH_INIT, 1), text) : CVY_HASH_INIT;
}

static uint64_t hash_row(const row *r, const cvy_train_options *options)
{
    const void *at = (const char *)options + r->offset;
    switch (r->type) {
    case TEXT: return hash_text(*(const char *const *)at);
    case INT: return (uint64_t)*(const int *)at;
    case I64: return (uint64_t)*(const int64_t *)at;
    case U64: return *(const uint64_t *)at;
    case REAL: return cvy_hash_real(CVY_HASH_INIT, *(const double *)at);
    case BOOL: return *(const bool *)at;
    }
    return 0;
}

/* The first word of a rank that is not the first rank's. */
typedef struct odd {
    int rank, word; /* -1: all are alike */
    uint64_t found, expected;
} odd;

static cvy_status find_odd(cvy_comm *comm, const uint64_t *mine, int words, odd *odd_out)
{
    int ranks = cvy_comm_ranks(comm);
    uint64_t *all = cvy_calloc((size_t)ranks * (size_t)words, sizeof *all);
    cvy_status status = cvy_comm_agree(comm, all ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    status = cvy_comm_gather_bytes(comm, mine, words * (int64_t)sizeof *mine, all);
    *odd_out = (odd){.rank = 0, .word = -1};
    for (int i = words; status == CVY_OK && odd_out->word < 0 && i < ranks * words; i++) {
        if (all[i] != all[i % words]) {
            *odd_out = (odd){i / words, i % words, all[i], all[i % words]};
        }
    }
done:
    cvy_free(all);
    return status;
}

cvy_status cvy_alike_options(cvy_comm *comm, const cvy_model *model, const cvy_train_options *options)
{
    uint64_t word[ROWS + 1];
    odd o;
    for (int i = 0; i < ROWS; i++) {
        word[i] = hash_row(&rows[i], options);
    }
    word[ROWS] = cvy_model_hash(model);
    CVY_TRY(find_odd(comm, word, ROWS + 1, &o));
    CVY_REQUIRE(o.word < ROWS, CVY_ERR_INPUT, "rank %d has another model than rank 0", o.rank);
    CVY_REQUIRE(o.word < 0, CVY_ERR_INPUT, "rank %d has another option %s than rank 0: all ranks take the same", o.rank,
                rows[o.word].name);
    return CVY_OK;
}

cvy_status cvy_alike_data(cvy_comm *comm, const cvy_data *data)
{
    const int64_t *count = cvy_data_get_info(data)->count;
    const uint64_t word[DATA_WORDS] = {hash_text(cvy_data_kind_name(data)), (uint64_t)count[CVY_SPLIT_TRAIN],
                                       (uint64_t)count[CVY_SPLIT_TEST]};
    odd o;
    CVY_TRY(find_odd(comm, word, DATA_WORDS, &o));
    CVY_REQUIRE(o.word != 0, CVY_ERR_DATA, "rank %d finds data of another kind than rank 0", o.rank);
    CVY_REQUIRE(o.word < 0, CVY_ERR_DATA,
                "rank %d finds %llu %s samples where rank 0 finds %llu: do all nodes have the same data?", o.rank,
                (unsigned long long)o.found, o.word == 1 ? "training" : "test", (unsigned long long)o.expected);
    return CVY_OK;
}

/* What a member of a group does along it. */
static uint64_t hash_order(const cvy_plan *plan, unsigned axes, int stream)
{
    uint64_t hash = CVY_HASH_INIT;
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        const cvy_schedule *s = &plan->schedule[kind];
        for (int i = 0; i < s->steps; i++) {
            const cvy_step *step = &s->step[i];
            const cvy_exchange *x = step->exchange >= 0 ? &s->exchange[step->exchange] : NULL;
            if (x && step->kind == CVY_STEP_COLLECTIVE && x->axes == axes && step->stream == stream) {
                hash = cvy_hash_word(hash, (uint64_t)kind);
                hash = cvy_hash_word(hash, (uint64_t)x->collective);
                hash = cvy_hash_word(hash, (uint64_t)step->layer);
                hash = cvy_hash_word(hash, (uint64_t)step->micro_batch);
                hash = cvy_hash_word(hash, x->sum * 2u + x->merge);
            }
        }
    }
    return hash;
}

cvy_status cvy_alike_order(const cvy_groups *groups, const cvy_plan *plan)
{
    cvy_status status = CVY_OK;
    for (unsigned axes = 0; axes < 1 << CVY_AXES; axes++) {
        for (int stream = 0; stream < CVY_STREAM_COUNT; stream++) {
            odd o;
            uint64_t word = hash_order(plan, axes, stream);
            if (!groups->along[axes][stream]) {
                continue;
            }
            CVY_TRY(find_odd(groups->along[axes][stream], &word, 1, &o));
            if (o.word >= 0 && status == CVY_OK) {
                int64_t member = cvy_mesh_group_member(&groups->mesh, axes, groups->rank, o.rank);
                status = cvy_fail(CVY_ERR_RANK, "rank %lld has other communication than the first of its group",
                                  (long long)member);
            }
        }
    }
    return status;
}
