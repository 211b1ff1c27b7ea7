/*
 * Tables of measured kernels: text, a line a kernel, and in memory a hash table in open addressing (Knuth, "The art of
 * computer programming", volume 3, 6.4, algorithm L). Files are of outside origin: a line that is not right is refused
 * with its number, and memory follows the size of the file.
 */
#include "oracle/compute_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/quantity.h"

enum { LIMIT_BYTES = 64 << 20, KEY_DIGITS = 16, LEAST_CAPACITY = 16 };

static const double MOST_ERROR = 10.0;

static const char title[] = "convoy-kernel-table,2";
static const char columns[] = "key,distance,seconds,error,op";

/* The same work whatever these are: decay, epsilon, which layer draws, and where, where the slice begins. */
uint64_t cvy_kernel_key(const cvy_op *op)
{
    cvy_op seen = *op;
    switch (op->kind) {
    case CVY_OP_BATCH_NORM: seen.params.norm = (cvy_op_params_norm){0}; break;
    case CVY_OP_DROPOUT:
    case CVY_OP_STOCHASTIC_DEPTH:
        seen.params.dropout = (cvy_op_params_dropout){.probability = op->params.dropout.probability};
        break;
    case CVY_OP_LEAKY_RELU: seen.params.activation.slope = 0.0; break;
    case CVY_OP_SOFTMAX_CROSS_ENTROPY:
    case CVY_OP_SOFT_DICE: seen.params.loss = (cvy_op_params_loss){0}; break;
    case CVY_OP_SLICE: seen.params.slice.first = 0; break;
    case CVY_OP_GROUP_NORM: seen.params.group.epsilon = 0.0; break;
    case CVY_OP_SQUARE_SUM:
    case CVY_OP_CLIP: seen.params.squares = (cvy_op_params_squares){0}; break;
    case CVY_OP_AVERAGE: seen.params.average.decay = 0.0; break;
    case CVY_OP_SGD:
    case CVY_OP_ADAMW:
    case CVY_OP_ADAM:
    case CVY_OP_LARS:
    case CVY_OP_LAMB_DIRECTION:
    case CVY_OP_LAMB: seen.params.optimizer = (cvy_op_params_optimizer){0}; break;
    default: break;
    }
    return cvy_op_hash(&seen);
}

/* ---- in memory ---- */

/* An op may be there at several distances: these are places of the same key, with none that is empty between. */
static cvy_kernel_entry *find_place(cvy_kernel_entry *entry, int64_t capacity, const cvy_kernel_entry *wanted)
{
    uint64_t mask = (uint64_t)capacity - 1, at = wanted->key & mask;
    while (entry[at].time.seconds > 0.0 &&
           (entry[at].key != wanted->key || entry[at].time.distance_bytes != wanted->time.distance_bytes)) {
        at = (at + 1) & mask;
    }
    return &entry[at];
}

static double find_gap(double one_bytes, double other_bytes)
{
    return fabs(log(fmax(one_bytes, 1.0) / fmax(other_bytes, 1.0)));
}

const cvy_kernel_entry *cvy_kernel_table_next(const cvy_kernel_table *table, uint64_t key,
                                              const cvy_kernel_entry *before)
{
    uint64_t mask = (uint64_t)table->capacity - 1, at = before ? (uint64_t)(before - table->entry) + 1 : key;
    if (table->capacity == 0) {
        return NULL;
    }
    for (at &= mask; table->entry[at].time.seconds > 0.0; at = (at + 1) & mask) {
        if (table->entry[at].key == key) {
            return &table->entry[at];
        }
    }
    return NULL;
}

const cvy_kernel_entry *cvy_kernel_table_find(const cvy_kernel_table *table, uint64_t key, double distance_bytes)
{
    const cvy_kernel_entry *nearest = cvy_kernel_table_next(table, key, NULL), *entry = nearest;
    while (entry && (entry = cvy_kernel_table_next(table, key, entry))) {
        bool nearer = find_gap(entry->time.distance_bytes, distance_bytes) <
                      find_gap(nearest->time.distance_bytes, distance_bytes);
        nearest = nearer ? entry : nearest;
    }
    return nearest;
}

static cvy_status grow(cvy_kernel_table *table)
{
    int64_t capacity = table->capacity ? 2 * table->capacity : LEAST_CAPACITY;
    cvy_kernel_entry *entry = cvy_calloc((size_t)capacity, sizeof *entry);
    if (!entry) {
        return CVY_ERR_MEMORY;
    }
    for (int64_t i = 0; i < table->capacity; i++) {
        if (table->entry[i].time.seconds > 0.0) {
            *find_place(entry, capacity, &table->entry[i]) = table->entry[i];
        }
    }
    cvy_free(table->entry);
    table->entry = entry;
    table->capacity = capacity;
    return CVY_OK;
}

static cvy_status add_entry(cvy_kernel_table *table, const cvy_kernel_entry *entry)
{
    if (2 * (table->entries + 1) > table->capacity) {
        CVY_TRY(grow(table));
    }
    cvy_kernel_entry *place = find_place(table->entry, table->capacity, entry);
    if (place->time.seconds <= 0.0) {
        *place = *entry;
        table->entries++;
    }
    return CVY_OK;
}

void cvy_kernel_table_clear(cvy_kernel_table *table)
{
    cvy_free(table->entry);
    *table = (cvy_kernel_table){0};
}

/* ---- in a file ---- */

/* A file under way. */
typedef struct reader {
    const char *path;
    char *next; /* behind the line under way; NULL at the end */
    int64_t line;
} reader;

static cvy_status fail(const reader *in, const char *found, const char *expected)
{
    char word[CVY_WORD_TEXT];
    return cvy_fail(CVY_ERR_INPUT, "%s:%" PRId64 ": found '%s', expected %s", in->path, in->line,
                    cvy_print_word(found, word), expected);
}

/* The next line, ended where its break was; NULL behind the last. */
static char *next_line(reader *in)
{
    char *line = in->next;
    if (!line || !*line) {
        return NULL;
    }
    char *end = line + strcspn(line, "\r\n");
    char *rest = end + (end[0] == '\r' && end[1] == '\n');
    in->next = *rest ? rest + 1 : NULL;
    *end = '\0';
    in->line++;
    return line;
}

/* The next line, which is @p name, a comma and a value. */
static cvy_status next_value(reader *in, const char *name, const char *expected, const char **value_out)
{
    const char *line = next_line(in);
    size_t length = strlen(name);
    if (!line || strncmp(line, name, length) != 0 || line[length] != ',') {
        in->line += !line;
        return fail(in, line ? line : "the end", expected);
    }
    *value_out = line + length + 1;
    return CVY_OK;
}

static cvy_status next_quantity(reader *in, const char *name, cvy_quantity kind, double *value_out)
{
    char expected[120];
    const char *text = NULL;
    double value = 0.0;
    snprintf(expected, sizeof expected, "'%s,' and %s", name, cvy_quantity_expected(kind));
    CVY_TRY(next_value(in, name, expected, &text));
    if (!cvy_quantity_parse(text, kind, &value) || !(value >= 1.0 && value <= 1e18)) {
        return fail(in, text, expected);
    }
    *value_out = value;
    return CVY_OK;
}

static cvy_status next_fixed(reader *in, const char *words)
{
    char expected[80];
    const char *line = next_line(in);
    snprintf(expected, sizeof expected, "'%s'", words);
    in->line += !line;
    return line && strcmp(line, words) == 0 ? CVY_OK : fail(in, line ? line : "the end", expected);
}

static cvy_status read_head(reader *in, cvy_precision *precision_out, cvy_roof *roof_out)
{
    const char *name = NULL;
    int precision = 0;
    CVY_TRY(next_fixed(in, title));
    CVY_TRY(next_value(in, "precision", "'precision,' and a name, as fp32", &name));
    while (precision < CVY_PRECISION_COUNT && strcmp(name, cvy_precision_name((cvy_precision)precision)) != 0) {
        precision++;
    }
    if (precision == CVY_PRECISION_COUNT) {
        return fail(in, name, "a precision: fp64, fp32, tf32, fp16 or bf16");
    }
    *precision_out = (cvy_precision)precision;
    CVY_TRY(next_quantity(in, "peak", CVY_QUANTITY_RATE, &roof_out->flop_per_s));
    CVY_TRY(next_quantity(in, "bandwidth", CVY_QUANTITY_BANDWIDTH, &roof_out->Bps));
    return next_fixed(in, columns);
}

/* A number up to the next comma, within bounds; *at moves behind the comma. */
static bool parse_number(char **at, double minimum, double maximum, double *value_out)
{
    char *end = NULL;
    size_t length = strspn(*at, "0123456789.eE+-"); /* no blanks, no hexadecimal, no infinity */
    double value = strtod(*at, &end);
    if (length == 0 || end != *at + length || *end != ',' || !(value >= minimum && value <= maximum)) {
        return false;
    }
    *at = end + 1;
    *value_out = value;
    return true;
}

static cvy_status parse_row(const reader *in, char *line, cvy_kernel_entry *entry)
{
    char *at = line + KEY_DIGITS + 1;
    if (strspn(line, "0123456789abcdef") != KEY_DIGITS || line[KEY_DIGITS] != ',') {
        return fail(in, line, "a key of 16 hexadecimal digits and a comma");
    }
    entry->key = strtoull(line, NULL, 16);
    if (!parse_number(&at, 0.0, 1e18, &entry->time.distance_bytes)) {
        return fail(in, at, "a distance of 0 to 1e18 bytes and a comma");
    }
    if (!parse_number(&at, 1e-12, 1e6, &entry->time.seconds)) {
        return fail(in, at, "seconds from 1e-12 to 1e6 and a comma");
    }
    if (!parse_number(&at, 0.0, MOST_ERROR, &entry->time.error)) {
        return fail(in, at, "a relative error from 0 to 10 and a comma");
    }
    return CVY_OK;
}

static cvy_status read_rows(reader *in, cvy_kernel_entry *entry, bool wanted, cvy_kernel_table *table)
{
    for (char *line = next_line(in); line; line = next_line(in)) {
        CVY_TRY(parse_row(in, line, entry));
        if (wanted) {
            CVY_TRY(add_entry(table, entry));
        }
    }
    return CVY_OK;
}

cvy_status cvy_kernel_table_load(const char *path, cvy_precision precision, cvy_kernel_table *table)
{
    char *data = NULL;
    size_t bytes = 0;
    cvy_precision found = precision;
    cvy_kernel_entry entry = {0};
    cvy_status status = cvy_file_read(path, LIMIT_BYTES, CVY_ERR_INPUT, &data, &bytes);
    CVY_TRY(status);
    reader in = {.path = path, .next = data};
    CVY_REQUIRE_GOTO(status, done, strlen(data) == bytes, CVY_ERR_INPUT, "%s: a zero byte, expected text", path);
    CVY_TRY_GOTO(status, done, read_head(&in, &found, &entry.roof));
    CVY_TRY_GOTO(status, done, read_rows(&in, &entry, found == precision, table));
done:
    cvy_free(data);
    return status;
}

void cvy_kernel_table_begin(const cvy_device *device, cvy_precision precision, cvy_text *text)
{
    char peak[CVY_QUANTITY_TEXT], bandwidth[CVY_QUANTITY_TEXT];
    cvy_text_add(text, "%s\nprecision,%s\npeak,%s\nbandwidth,%s\n%s\n", title, cvy_precision_name(precision),
                 cvy_quantity_print(device->peak_flop_per_s[precision], CVY_QUANTITY_RATE, peak),
                 cvy_quantity_print(device->memory_Bps, CVY_QUANTITY_BANDWIDTH, bandwidth), columns);
}

void cvy_kernel_table_add(const cvy_op *op, const cvy_kernel_time *time, cvy_text *text)
{
    char line[CVY_OP_TEXT];
    cvy_text_add(text, "%0*" PRIx64 ",%.0f,%.6g,%.3g,%s\n", KEY_DIGITS, cvy_kernel_key(op), time->distance_bytes,
                 time->seconds, fmin(time->error, MOST_ERROR), cvy_op_print(op, line));
}
