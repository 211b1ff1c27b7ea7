/*
 * Bytes from rank to rank in an iteration. Messages are those of the schedule, which says them relative to a rank; a
 * message that it receives is one that its like on the other side sends. Collectives are taken to go round a ring of
 * their group, whatever a library makes of them: an all-reduce twice, others once.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "report/parts.h"
#include "report/sections.h"

enum { MOST_CELLS = 32, MOST_RANKS = 8192, MOST_WAYS = 64, LABEL_TEXT = 48 };

/* Bytes between blocks of ranks. */
typedef struct matrix {
    const cvy_mesh *mesh;
    int64_t ranks; /* that are looked at, the first ones */
    int64_t block; /* ranks of a cell */
    int cells;
    double *bytes; /* cells x cells: from, to */
} matrix;

static void add_bytes(matrix *m, int64_t from, int64_t to, double bytes)
{
    if (from >= 0 && to >= 0 && from != to && from < m->ranks && to < m->ranks) {
        m->bytes[from / m->block * m->cells + to / m->block] += bytes;
    }
}

/* ---- messages ---- */

/* A way from any rank to another, relative. */
typedef struct way {
    int offset[CVY_AXES];
    double bytes;
} way;

/* Add a way, or raise the bytes of the same one: both ends say it. */
static void note_way(const cvy_message *message, way *ways, int *count)
{
    way next = {.bytes = (double)message->bytes};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        next.offset[axis] = message->receive ? -message->peer_offset[axis] : message->peer_offset[axis];
    }
    for (int i = 0; i < *count; i++) {
        if (memcmp(ways[i].offset, next.offset, sizeof next.offset) == 0) {
            ways[i].bytes = fmax(ways[i].bytes, next.bytes);
            return;
        }
    }
    if (*count < MOST_WAYS) {
        ways[(*count)++] = next;
    }
}

static void add_messages(matrix *m, const cvy_schedule *s, const cvy_exchange *exchange, int64_t stage, double times)
{
    way ways[MOST_WAYS];
    int count = 0;
    for (int i = 0; i < exchange->messages; i++) {
        const cvy_message *message = &s->message[exchange->first_message + i];
        if (!message->receive || message->peer_offset[CVY_AXIS_STAGE] == 0) { /* the stage that sends has it */
            note_way(message, ways, &count);
        }
    }
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        if (cvy_mesh_coordinate(m->mesh, rank, CVY_AXIS_STAGE) != stage) {
            continue;
        }
        for (int i = 0; i < count; i++) {
            add_bytes(m, rank, cvy_mesh_peer(m->mesh, rank, ways[i].offset), times * ways[i].bytes);
        }
    }
}

/* ---- collectives ---- */

static void add_ring(matrix *m, const cvy_exchange *exchange, int64_t stage, double times)
{
    const int64_t p = cvy_mesh_group_size(m->mesh, exchange->axes);
    const double rounds = exchange->collective == CVY_COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0;
    const double bytes = rounds * times * (double)exchange->bytes * (double)(p - 1) / (double)p;
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        if (cvy_mesh_coordinate(m->mesh, rank, CVY_AXIS_STAGE) == stage) {
            int64_t place = cvy_mesh_group_place(m->mesh, exchange->axes, rank);
            add_bytes(m, rank, cvy_mesh_group_member(m->mesh, exchange->axes, rank, (place + 1) % p), bytes);
        }
    }
}

static void add_rank(matrix *m, const cvy_trace_rank *rank, int64_t stage)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        const cvy_exchange *exchange = s->step[i].exchange >= 0 ? &s->exchange[s->step[i].exchange] : NULL;
        if (exchange && exchange->messages > 0) {
            add_messages(m, s, exchange, stage, rank->times[i]);
        } else if (exchange && cvy_mesh_group_size(m->mesh, exchange->axes) > 1) {
            add_ring(m, exchange, stage, rank->times[i]);
        }
    }
}

/* ---- shown ---- */

static const char *name_cell(const matrix *m, int cell, char *text)
{
    int64_t first = cell * m->block, last = first + m->block - 1;
    if (m->block == 1) {
        snprintf(text, LABEL_TEXT, "%d", cell);
    } else {
        snprintf(text, LABEL_TEXT, "%" PRId64 "-%" PRId64, first, last < m->ranks ? last : m->ranks - 1);
    }
    return text;
}

static cvy_status draw(cvy_page *page, const matrix *m)
{
    char text[MOST_CELLS][LABEL_TEXT], title[64], caption[240];
    const char *label[MOST_CELLS];
    double value[MOST_CELLS * MOST_CELLS], most = 0.0;
    for (int i = 0; i < m->cells * m->cells; i++) {
        most = fmax(most, m->bytes[i]);
    }
    const cvy_scale scale = cvy_scale_bytes(most);
    for (int i = 0; i < m->cells * m->cells; i++) {
        value[i] = m->bytes[i] > 0.0 ? scale.factor * m->bytes[i] : NAN;
    }
    for (int i = 0; i < m->cells; i++) {
        label[i] = name_cell(m, i, text[i]);
    }
    snprintf(title, sizeof title, "%s an iteration", scale.unit);
    snprintf(caption, sizeof caption, "From the rank of the row to that of the column, as the schedule has it; "
             "collectives as rings over their groups.%s%s",
             m->block > 1 ? " A cell is a block of ranks; inside one is on the diagonal." : "",
             m->ranks < m->mesh->ranks ? " Of the first 8,192 ranks." : "");
    const cvy_chart chart = {.kind = CVY_CHART_HEAT, .title = "Communication between ranks", .x_title = "to rank",
                             .y_title = "from rank", .points = m->cells, .label = label, .rows = m->cells,
                             .row = label, .value = value, .value_title = title};
    return cvy_page_draw(page, &chart, caption);
}

static void add_table(cvy_page *page, const matrix *m)
{
    static const cvy_page_column column[] = {{.name = "from"}, {.name = "sends", .number = true},
                                             {.name = "receives", .number = true}, {.name = "to", .words = true}};
    char text[LABEL_TEXT], unit[CVY_UNIT_TEXT];
    cvy_page_begin_table(page, column, 4, "Bytes by rank");
    for (int i = 0; i < m->cells; i++) {
        double out = 0.0, in = 0.0;
        cvy_text to = {0};
        for (int k = 0; k < m->cells; k++) {
            double bytes = m->bytes[i * m->cells + k];
            out += bytes;
            in += m->bytes[k * m->cells + i];
            if (bytes > 0.0) {
                cvy_text_add(&to, "%s%s: %s", to.length ? ", " : "", name_cell(m, k, text),
                             cvy_print_bytes(bytes, unit));
            }
        }
        cvy_page_cell(page, "%s", name_cell(m, i, text));
        cvy_page_cell(page, "%s", cvy_print_bytes(out, unit));
        cvy_page_cell(page, "%s", cvy_print_bytes(in, unit));
        cvy_page_cell(page, "%s", to.data ? to.data : "-");
        cvy_text_destroy(&to);
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_traffic(cvy_page *page, const cvy_trace *trace)
{
    const cvy_mesh *mesh = &trace->distribution->strategy.mesh;
    matrix m = {.mesh = mesh, .ranks = mesh->ranks < MOST_RANKS ? mesh->ranks : MOST_RANKS};
    m.block = (m.ranks + MOST_CELLS - 1) / MOST_CELLS;
    m.cells = (int)((m.ranks + m.block - 1) / m.block);
    if (mesh->ranks == 1) {
        return CVY_OK;
    }
    m.bytes = cvy_calloc((size_t)m.cells * (size_t)m.cells, sizeof *m.bytes);
    if (!m.bytes) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < trace->ranks; i++) {
        add_rank(&m, &trace->rank[i], i);
    }
    cvy_page_section(page, "traffic", "Communication");
    cvy_status status = draw(page, &m);
    add_table(page, &m);
    cvy_free(m.bytes);
    return status;
}
