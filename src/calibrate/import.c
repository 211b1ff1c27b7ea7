/*
 * A row is a shape as a survey draws them, and the op of its pass. Rows that differ in pass and time alone are of one
 * shape, which cross-validation holds out as a whole.
 */
#include "calibrate/import.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/csv.h"
#include "base/hash.h"
#include "base/memory.h"
#include "machine/machine.h"

/* Columns of whole numbers, by their place in `number`. */
typedef enum column { N, C, D, H, W, F, KD, KH, KW, STRIDE, PAD, GROUPS, BIAS, COLUMNS } column;

static const struct {
    const char *name;
    int64_t least, usual;
} columns[COLUMNS] = {[N] = {"n", 1, 1},   [C] = {"c", 1, 1},           [D] = {"d", 1, 1},     [H] = {"h", 1, 1},
                      [W] = {"w", 1, 1},   [F] = {"f", 1, 1},           [KD] = {"kd", 1, 1},   [KH] = {"kh", 1, 1},
                      [KW] = {"kw", 1, 1}, [STRIDE] = {"stride", 1, 1}, [PAD] = {"pad", 0, 0}, [GROUPS] = {"g", 1, 1},
                      [BIAS] = {"bias", 0, 0}};

/* Plain formats need no blocks. */
enum { BLOCK = 8, MOST_ROWS = 65536, LARGEST = 1 << 30 };

static const double longest_s = 3600.0;

typedef struct reader {
    cvy_csv *csv;
    int kernel, pass, seconds, error; /* columns; -1: absent */
    int column[COLUMNS];
    uint64_t *shape; /* of each row so far: a hash of what is no pass and no time */
} reader;

/* ---- names ---- */

static cvy_status find_kind(const reader *r, int row, cvy_op_kind *kind_out)
{
    const char *name = cvy_csv_cell(r->csv, row, r->kernel);
    for (int i = 0; i < CVY_KERNEL_COUNT; i++) {
        if (strcmp(name, cvy_kernel_name(i)) == 0) {
            *kind_out = i < CVY_OP_KIND_COUNT ? (cvy_op_kind)i : CVY_OP_CONVOLUTION;
            return CVY_OK;
        }
    }
    return cvy_csv_fail(r->csv, row, "kernel: found '%s', expected one as in machine files, such as convolution", name);
}

static cvy_status find_pass(const reader *r, int row, cvy_op_pass *pass_out)
{
    const char *name = cvy_csv_cell(r->csv, row, r->pass);
    for (int i = 0; i < CVY_PASS_COUNT; i++) {
        if (strcmp(name, cvy_op_pass_name((cvy_op_pass)i)) == 0) {
            *pass_out = (cvy_op_pass)i;
            return CVY_OK;
        }
    }
    return cvy_csv_fail(r->csv, row, "pass: found '%s', expected one such as forward or backward-data", name);
}

static cvy_status find_columns(reader *r)
{
    const char *const names[] = {"kernel", "pass", "seconds"};
    int *const places[] = {&r->kernel, &r->pass, &r->seconds};
    for (int i = 0; i < 3; i++) {
        *places[i] = cvy_csv_find(r->csv, names[i]);
        CVY_REQUIRE(*places[i] >= 0, CVY_ERR_INPUT, "%s: no column '%s'", r->csv->file, names[i]);
    }
    r->error = cvy_csv_find(r->csv, "error");
    for (int i = 0; i < COLUMNS; i++) {
        r->column[i] = cvy_csv_find(r->csv, columns[i].name);
    }
    return CVY_OK;
}

/* ---- a row ---- */

static bool has_cell(const reader *r, int row, int place)
{
    return place >= 0 && *cvy_csv_cell(r->csv, row, place);
}

static cvy_status read_numbers(const reader *r, int row, int64_t number[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        number[i] = columns[i].usual;
        if (has_cell(r, row, r->column[i])) {
            CVY_TRY(cvy_csv_get_int(r->csv, row, r->column[i], columns[i].least, LARGEST, &number[i]));
        }
    }
    return CVY_OK;
}

static void set_window(const int64_t number[COLUMNS], int space_dims, cvy_op_params_window *params)
{
    params->groups = number[GROUPS];
    for (int axis = 0; axis < 3; axis++) {
        bool flat = axis == 0 && space_dims == 2;
        params->window.kernel[axis] = flat ? 1 : number[KD + axis];
        params->window.stride[axis] = flat ? 1 : number[STRIDE];
        params->window.dilation[axis] = 1;
        params->window.before[axis] = params->window.after[axis] = flat ? 0 : number[PAD];
    }
}

/* Constants that take no time are the usual ones. */
static void set_params(const int64_t number[COLUMNS], cvy_drawn_shape *shape)
{
    cvy_op *op = &shape->op;
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE:
        set_window(number, shape->x.dims - 2, &op->params.window);
        op->params.window.count_padding = op->kind == CVY_OP_POOL_AVERAGE;
        break;
    case CVY_OP_BATCH_NORM:
        op->params.norm = (cvy_op_params_norm){.epsilon = 1e-5, .momentum = 0.1, .merged = 1,
                                               .count = cvy_shape_elements(&shape->x) / shape->x.extent[1] + 1};
        break;
    case CVY_OP_GROUP_NORM:
        op->params.group = (cvy_op_params_group_norm){.epsilon = 1e-5, .groups = number[GROUPS]};
        break;
    case CVY_OP_DROPOUT:
        op->params.dropout.probability = 0.5;
        break;
    case CVY_OP_LOCAL_RESPONSE_NORM:
        op->params.response = (cvy_op_params_response){.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1.0};
        break;
    default:
        if (op->pass == CVY_PASS_UPDATE) {
            op->params.optimizer = (cvy_op_params_optimizer){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999,
                                                             .epsilon = 1e-8, .trust = 1e-3, .slots = 2};
        }
    }
}

/* n of an optimizer; n c without positions; n c h w, or n c d h w where d is given. */
static cvy_shape make_input(const reader *r, int row, cvy_op_pass pass, const int64_t number[COLUMNS])
{
    bool mapped = has_cell(r, row, r->column[H]) || has_cell(r, row, r->column[W]);
    if (pass == CVY_PASS_UPDATE) {
        return CVY_SHAPE(number[N]);
    }
    if (!mapped) {
        return CVY_SHAPE(number[N], number[C]);
    }
    return has_cell(r, row, r->column[D]) ? CVY_SHAPE(number[N], number[C], number[D], number[H], number[W])
                                          : CVY_SHAPE(number[N], number[C], number[H], number[W]);
}

/* The number of the shape: that of the first row which has it. */
static int find_shape(reader *r, int row, cvy_op_kind kind, const int64_t number[COLUMNS])
{
    uint64_t hash = cvy_hash_word(CVY_HASH_INIT, (uint64_t)kind);
    int first = 0;
    for (int i = 0; i < COLUMNS; i++) {
        hash = cvy_hash_word(hash, (uint64_t)number[i]);
    }
    r->shape[row] = hash;
    while (r->shape[first] != hash) {
        first++;
    }
    return first;
}

static cvy_status read_row(reader *r, int row, cvy_kernel_survey_row *out)
{
    int64_t number[COLUMNS];
    cvy_drawn_shape shape = {.input = CVY_FORMAT_PLAIN, .output = CVY_FORMAT_PLAIN};
    cvy_op_pass pass = CVY_PASS_FORWARD;
    CVY_TRY(find_kind(r, row, &shape.op.kind));
    CVY_TRY(find_pass(r, row, &pass));
    CVY_TRY(read_numbers(r, row, number));
    CVY_TRY(cvy_csv_get_real(r->csv, row, r->seconds, 1e-9, longest_s, &out->time.seconds));
    if (has_cell(r, row, r->error)) {
        CVY_TRY(cvy_csv_get_real(r->csv, row, r->error, 0.0, 10.0, &out->time.error));
    }
    shape.op.pass = pass;
    shape.x = make_input(r, row, pass, number);
    shape.filters = number[F];
    shape.biased = number[BIAS] > 0;
    if (cvy_shape_check(&shape.x, "input") != CVY_OK) {
        return cvy_csv_fail(r->csv, row, "%s", cvy_error_message());
    }
    set_params(number, &shape);
    if (cvy_shape_make_op(&shape, pass, BLOCK, &out->op) != CVY_OK) {
        return cvy_csv_fail(r->csv, row, "%s", cvy_error_message());
    }
    out->shape = find_shape(r, row, shape.op.kind, number);
    return CVY_OK;
}

/* ---- the table ---- */

static cvy_status read_rows(reader *r, cvy_kernel_survey *survey)
{
    int rows = r->csv->rows;
    CVY_REQUIRE(rows > 0, CVY_ERR_INPUT, "%s: no kernel in it", r->csv->file);
    CVY_REQUIRE(rows <= MOST_ROWS, CVY_ERR_INPUT, "%s: found %d kernels, expected %d at most", r->csv->file, rows,
                (int)MOST_ROWS);
    r->shape = cvy_calloc((size_t)rows, sizeof *r->shape);
    survey->row = cvy_calloc((size_t)rows, sizeof *survey->row);
    if (!r->shape || !survey->row) {
        return CVY_ERR_MEMORY;
    }
    survey->capacity = rows;
    for (int i = 0; i < rows; i++) {
        CVY_TRY(read_row(r, i, &survey->row[i]));
        survey->rows++;
    }
    return CVY_OK;
}

cvy_status cvy_import_kernels(const char *path, cvy_kernel_survey *survey_out)
{
    reader r = {.csv = NULL};
    cvy_status status = cvy_csv_load(path, &r.csv);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, find_columns(&r));
    status = read_rows(&r, survey_out);
done:
    cvy_free(r.shape);
    cvy_csv_destroy(&r.csv);
    return status;
}
