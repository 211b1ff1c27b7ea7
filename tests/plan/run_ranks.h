/*
 * Schedules of all ranks, run in one process in double on the yardstick: each rank goes through its steps as far as it
 * comes; messages wait in queues, a collective runs when all of its group have come to it. What is sent, and where it
 * goes, is read from the steps, and who has which elements from the buffers: as a runtime would.
 */
#ifndef CVY_TESTS_PLAN_RUN_RANKS_H
#define CVY_TESTS_PLAN_RUN_RANKS_H

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "plan/distribution.h"
#include "plan/plan.h"

enum { MAX_RANKS = 16, MAX_QUEUED = 256 };

/* A value for each element of the batch, of labels and of parameters, by its number in the whole tensor. */
typedef double (*feed)(const void *context, const cvy_buffer *buffer, int64_t element);

/* A rank under way. */
typedef struct rank_run {
    const cvy_plan *plan;
    const cvy_schedule *s;
    unsigned char *memory[2]; /* transient, persistent */
    int at;
    bool posted;
} rank_run;

typedef struct message_data {
    int count;
    double *value;
} message_data;

typedef struct world_run {
    int ranks, iterations; /* 0: one */
    cvy_mesh mesh;
    rank_run rank[MAX_RANKS];
    message_data *queue[MAX_RANKS][MAX_RANKS]; /* by sender and receiver */
    int queued[MAX_RANKS][MAX_RANKS], taken[MAX_RANKS][MAX_RANKS];
    cvy_backend_chain chain;
    cvy_run run;
    feed feed;
    const void *context;
    double loss; /* of all steps that look at one, of all ranks */
} world_run;

static inline void *find_memory(const rank_run *r, const cvy_buffer *b)
{
    return r->memory[b->persistent] + b->offset;
}

/* The index, in a dimension of the whole tensor, of local index @p i. */
static inline int64_t find_index(const cvy_buffer *b, int dim, int64_t i)
{
    if (b->stretches.count == 0 || b->stretched != dim) {
        return b->local[dim].begin + i;
    }
    int k = 0;
    for (; i >= b->stretches.at[k].end - b->stretches.at[k].begin; k++) {
        i -= b->stretches.at[k].end - b->stretches.at[k].begin;
    }
    return b->stretches.at[k].begin + i;
}

/* An element: its place in memory, in elements, and its number in the whole tensor; -1 beyond it. */
typedef struct element {
    int64_t offset, number;
    int64_t index[CVY_MAX_DIMS]; /* in the whole tensor */
} element;

static inline element get_element(const cvy_buffer *b, const cvy_layout *layout, int64_t e)
{
    element found = {0};
    int64_t local[CVY_MAX_DIMS];
    bool inside = true;
    for (int dim = b->tensor.shape.dims - 1; dim >= 0; dim--) {
        local[dim] = e % b->tensor.shape.extent[dim];
        e /= b->tensor.shape.extent[dim];
        found.index[dim] = find_index(b, dim, local[dim]);
        inside = inside && found.index[dim] < b->global.extent[dim];
    }
    found.offset = cvy_layout_offset(layout, local);
    for (int dim = 0; dim < b->tensor.shape.dims; dim++) {
        found.number = found.number * b->global.extent[dim] + found.index[dim];
    }
    found.number = inside ? found.number : -1;
    return found;
}

static inline double load(const cvy_buffer *b, const void *memory, int64_t offset)
{
    return b->tensor.dtype == CVY_I32   ? ((const int32_t *)memory)[offset]
           : b->tensor.dtype == CVY_F32 ? (double)((const float *)memory)[offset]
                                        : ((const double *)memory)[offset];
}

static inline void store(const cvy_buffer *b, void *memory, int64_t offset, double value)
{
    if (b->tensor.dtype == CVY_I32) {
        ((int32_t *)memory)[offset] = (int32_t)value;
    } else if (b->tensor.dtype == CVY_F32) {
        ((float *)memory)[offset] = (float)value;
    } else {
        ((double *)memory)[offset] = value;
    }
}

static inline void fill(const world_run *w, const rank_run *r, int buffer)
{
    const cvy_buffer *b = &r->s->buffer[buffer];
    cvy_layout layout = cvy_tensor_layout(&b->tensor);
    for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
        element at = get_element(b, &layout, e);
        store(b, find_memory(r, b), at.offset, at.number < 0 ? 0.0 : w->feed(w->context, b, at.number));
    }
}

static inline bool is_in_box(const cvy_buffer *b, const element *at, const cvy_message *m)
{
    bool inside = true;
    for (int axis = 0; axis < 3; axis++) {
        int dim = b->tensor.shape.dims - 3 + axis;
        bool whole = m->rows[axis].end == m->rows[axis].begin || dim < 2;
        inside = inside && (whole || (at->index[dim] >= m->rows[axis].begin && at->index[dim] < m->rows[axis].end));
    }
    return inside;
}

/* Pack what a message takes of a buffer. */
static inline message_data pack(const rank_run *r, const cvy_buffer *b, const cvy_message *m)
{
    cvy_layout layout = cvy_tensor_layout(&b->tensor);
    message_data data = {0, calloc((size_t)(m->bytes / 8) + 1, sizeof(double))};
    for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
        element at = get_element(b, &layout, e);
        if (is_in_box(b, &at, m)) {
            assert_true(data.count < m->bytes / 8);
            data.value[data.count++] = load(b, find_memory(r, b), at.offset);
        }
    }
    assert_int_equal(8 * data.count, m->bytes);
    return data;
}

static inline void unpack(const rank_run *r, const cvy_buffer *b, const cvy_message *m, const message_data *data,
                          bool sum)
{
    cvy_layout layout = cvy_tensor_layout(&b->tensor);
    int next = 0;
    for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
        element at = get_element(b, &layout, e);
        if (is_in_box(b, &at, m)) {
            double before = sum ? load(b, find_memory(r, b), at.offset) : 0.0;
            store(b, find_memory(r, b), at.offset, before + data->value[next++]);
        }
    }
    assert_int_equal(next, data->count);
    assert_int_equal(8 * data->count, m->bytes);
}

static inline bool run_exchange(world_run *w, int rank)
{
    rank_run *r = &w->rank[rank];
    const cvy_step *step = &r->s->step[r->at];
    const cvy_exchange *e = &r->s->exchange[step->exchange];
    const cvy_use *use = &r->s->use[step->first_use];
    bool two = step->uses > 1 && r->s->buffer[use[1].buffer].role != CVY_BUFFER_COMMUNICATION;
    const cvy_buffer *source = &r->s->buffer[use[0].buffer], *target = &r->s->buffer[use[two].buffer];
    int need[MAX_RANKS] = {0};
    bool there = true;
    for (int i = 0; i < e->messages; i++) {
        const cvy_message *m = &r->s->message[e->first_message + i];
        int peer = (int)cvy_mesh_peer(&w->mesh, rank, m->peer_offset);
        assert_true(peer >= 0);
        if (!m->receive && !r->posted) {
            assert_true(w->queued[rank][peer] < MAX_QUEUED);
            w->queue[rank][peer][w->queued[rank][peer]++] = pack(r, source, m);
        }
        need[peer] += m->receive;
    }
    r->posted = true;
    for (int peer = 0; peer < w->ranks; peer++) {
        there = there && w->taken[peer][rank] + need[peer] <= w->queued[peer][rank];
    }
    for (int i = 0; there && i < e->messages; i++) {
        const cvy_message *m = &r->s->message[e->first_message + i];
        int peer = (int)cvy_mesh_peer(&w->mesh, rank, m->peer_offset);
        if (m->receive) {
            unpack(r, target, m, &w->queue[peer][rank][w->taken[peer][rank]++], e->sum);
        }
    }
    return there;
}

/* What a member has of a whole tensor joins, or is added to, what others have. */
static inline void spread_out(const rank_run *r, const cvy_buffer *b, bool sum, double *whole)
{
    cvy_layout layout = cvy_tensor_layout(&b->tensor);
    for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
        element at = get_element(b, &layout, e);
        if (at.number >= 0) { /* a sample that counts for nothing has no number */
            whole[at.number] = load(b, find_memory(r, b), at.offset) + (sum ? whole[at.number] : 0.0);
        }
    }
}

static inline void take_in(const rank_run *r, const cvy_buffer *b, const double *whole)
{
    cvy_layout layout = cvy_tensor_layout(&b->tensor);
    for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
        element at = get_element(b, &layout, e);
        store(b, find_memory(r, b), at.offset, at.number >= 0 ? whole[at.number] : 0.0);
    }
}

/* Chan's formulas, member by member: a mean and a variance of so many elements. */
static inline void merge(const rank_run *const *member, int members, const cvy_buffer *const (*pair)[2])
{
    for (int64_t c = 0; c < cvy_shape_elements(&pair[0][0]->tensor.shape); c++) {
        double count = 0, mean = 0, squares = 0;
        for (int i = 0; i < members; i++) {
            double n = (double)member[i]->s->exchange[member[i]->s->step[member[i]->at].exchange].count;
            double m = load(pair[i][0], find_memory(member[i], pair[i][0]), c);
            double v = load(pair[i][1], find_memory(member[i], pair[i][1]), c);
            if (n > 0) {
                double d = m - mean;
                mean += d * n / (count + n);
                squares += v * n + d * d * count * n / (count + n);
                count += n;
            }
        }
        for (int i = 0; i < members; i++) {
            store(pair[i][0], find_memory(member[i], pair[i][0]), c, mean);
            store(pair[i][1], find_memory(member[i], pair[i][1]), c, squares / count);
        }
    }
}

static inline const cvy_buffer *get_use(const rank_run *r, int i)
{
    return &r->s->buffer[r->s->use[r->s->step[r->at].first_use + i].buffer];
}

/* Buffers that a collective moves: not the one in which elements travel. */
static inline int count_moved(const rank_run *r)
{
    int uses = r->s->step[r->at].uses;
    return get_use(r, uses - 1)->role == CVY_BUFFER_COMMUNICATION ? uses - 1 : uses;
}

static inline void run_moves(const rank_run *const *member, int members, const cvy_exchange *e)
{
    const rank_run *first = member[0];
    bool in_place = first->s->use[first->s->step[first->at].first_use].access == CVY_ACCESS_UPDATE;
    int moved = count_moved(member[0]);
    for (int k = 0; k < (in_place ? moved : 1); k++) {
        const cvy_buffer *b = get_use(member[0], k);
        double *whole = calloc((size_t)cvy_shape_elements(&b->global), sizeof *whole);
        for (int i = 0; i < members; i++) {
            spread_out(member[i], get_use(member[i], k), e->sum, whole);
        }
        for (int i = 0; i < members; i++) {
            take_in(member[i], get_use(member[i], in_place ? k : 1), whole);
        }
        free(whole);
    }
}

static inline bool run_collective(world_run *w, int rank)
{
    const rank_run *r = &w->rank[rank], *member[MAX_RANKS];
    const cvy_exchange *e = &r->s->exchange[r->s->step[r->at].exchange];
    const cvy_buffer *pair[MAX_RANKS][2];
    int members = (int)cvy_mesh_group_size(&w->mesh, e->axes);
    for (int i = 0; i < members; i++) {
        const rank_run *m = &w->rank[cvy_mesh_group_member(&w->mesh, e->axes, rank, i)];
        const cvy_step *step = m->at < m->s->steps ? &m->s->step[m->at] : NULL;
        if (!step || step->kind != CVY_STEP_COLLECTIVE || m->s->exchange[step->exchange].axes != e->axes) {
            return false;
        }
        member[i] = m;
        for (int k = 0; k < 2 && e->merge; k++) {
            pair[i][k] = get_use(m, k);
        }
    }
    if (e->merge) {
        merge(member, members, (const cvy_buffer *const(*)[2])pair);
    } else {
        run_moves(member, members, e);
    }
    for (int i = 0; i < members; i++) {
        w->rank[cvy_mesh_group_member(&w->mesh, e->axes, rank, i)].at++;
    }
    return true;
}

static inline void run_op(world_run *w, const rank_run *r, const cvy_step *step)
{
    const cvy_op *op = &r->s->op[step->op];
    cvy_interval samples = cvy_schedule_micro_batch(r->s, step->micro_batch);
    int64_t has = r->s->samples.end - r->s->samples.begin;
    void *operand[CVY_MAX_OPERANDS];
    cvy_kernel *kernel = NULL;
    cvy_run run = w->run;
    run.sample_first = r->s->samples.begin + samples.begin;
    run.samples = cvy_min_i64(samples.end, has) - cvy_min_i64(samples.begin, has);
    for (int i = 0; i < op->operands; i++) {
        operand[i] = find_memory(r, &r->s->buffer[r->s->use[step->first_use + i].buffer]);
    }
    if (cvy_kernel_create(&w->chain, op, &kernel) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    void *scratch = calloc(cvy_kernel_scratch_bytes(kernel) + 64, 1);
    if (cvy_kernel_run(kernel, operand, scratch, &run) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    free(scratch);
    cvy_kernel_destroy(&kernel);
}

static inline void run_control(world_run *w, const rank_run *r, const cvy_step *step)
{
    for (int i = 0; i < step->uses; i++) {
        const cvy_use *use = &r->s->use[step->first_use + i];
        const cvy_buffer *b = &r->s->buffer[use->buffer];
        if (use->access == CVY_ACCESS_WRITE) {
            fill(w, r, use->buffer);
        } else if (b->content == CVY_CONTENT_LOSS) {
            w->loss += ((const double *)find_memory(r, b))[0];
        }
    }
}

/* One step of a rank, or a whole group's collective. False where it has to wait, or is at its end. */
static inline bool run_step(world_run *w, int rank)
{
    rank_run *r = &w->rank[rank];
    if (r->at >= r->s->steps) {
        return false;
    }
    const cvy_step *step = &r->s->step[r->at];
    if (step->kind == CVY_STEP_COLLECTIVE) {
        return run_collective(w, rank);
    }
    if (step->kind == CVY_STEP_EXCHANGE && !run_exchange(w, rank)) {
        return false;
    }
    if (step->op >= 0) {
        run_op(w, r, step);
    } else if (step->kind == CVY_STEP_CONTROL) {
        run_control(w, r, step);
    }
    r->at++;
    r->posted = false;
    return true;
}

static inline void run_iteration(world_run *w)
{
    for (int i = 0; i < w->ranks; i++) {
        w->rank[i].at = 0;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < w->ranks; i++) {
            while (run_step(w, i)) {
                moved = true;
            }
        }
    }
    for (int i = 0; i < w->ranks; i++) {
        assert_int_equal(w->rank[i].at, w->rank[i].s->steps); /* nobody waits for ever */
    }
}

/* Run iterations; parameters are fed before them and stay in memory. */
static inline void run_world(world_run *w, cvy_plan *const *plan, cvy_schedule_kind kind)
{
    for (int i = 0; i < w->ranks; i++) {
        w->rank[i] = (rank_run){.plan = plan[i], .s = &plan[i]->schedule[kind]};
        w->rank[i].memory[0] = calloc((size_t)plan[i]->transient_bytes + 64, 1);
        w->rank[i].memory[1] = calloc((size_t)plan[i]->persistent_bytes + 64, 1);
        for (int k = 0; k < plan[i]->persistent_buffers; k++) {
            if (w->rank[i].s->buffer[k].content == CVY_CONTENT_PARAMETER) {
                fill(w, &w->rank[i], k);
            }
        }
        for (int k = 0; k < w->ranks; k++) {
            w->queue[i][k] = calloc(MAX_QUEUED, sizeof(message_data));
            w->queued[i][k] = w->taken[i][k] = 0;
        }
    }
    int64_t first = w->run.update;
    for (int i = 0; i == 0 || i < w->iterations; i++) {
        w->run.update = first + i;
        run_iteration(w);
    }
}

static inline void close_world(world_run *w)
{
    for (int i = 0; i < w->ranks; i++) {
        free(w->rank[i].memory[0]);
        free(w->rank[i].memory[1]);
        for (int k = 0; k < w->ranks; k++) {
            assert_int_equal(w->queued[i][k], w->taken[i][k]);
            for (int m = 0; m < w->queued[i][k]; m++) {
                free(w->queue[i][k][m].value);
            }
            free(w->queue[i][k]);
        }
    }
}

#endif
