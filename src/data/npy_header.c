/*
 * NPY: the magic word, a version, the header's length (2 bytes in version 1, 4 in versions 2 and 3), and the header, a
 * Python dictionary such as
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * with its three keys in any order, padded by blanks to a newline. Of Python no more is understood than that. What it
 * says is believed only after the length of the file has borne it out.
 */
#include "data/npy_header.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are read as they lie in the file");

enum { MAGIC_BYTES = 6, MAX_HEADER_BYTES = 1 << 16, TYPE_TEXT = 16 };

static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    const char *descr;
    int bytes;
} types[] = {
    [CVY_ARRAY_U8] = {"|u1", 1},  [CVY_ARRAY_I32] = {"<i4", 4}, [CVY_ARRAY_I64] = {"<i8", 8},
    [CVY_ARRAY_F32] = {"<f4", 4}, [CVY_ARRAY_F64] = {"<f8", 8},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* What is left of the dictionary, and what has been read of it. */
typedef struct header {
    const char *at, *end;
    char descr[TYPE_TEXT];
    bool fortran, has_descr, has_order, has_shape;
    cvy_shape shape;
} header;

int64_t cvy_array_type_bytes(cvy_array_type type) { return types[type].bytes; }

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t')) {
        h->at++;
    }
}

/* Take a word of punctuation, or a name, where it comes next. */
static bool take(header *h, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0) {
        return false;
    }
    h->at += length;
    return true;
}

/* Take a text in quotes of either kind, without escapes. */
static bool take_text(header *h, char *text, size_t room)
{
    char quote = take(h, "'") ? '\'' : take(h, "\"") ? '"' : '\0';
    size_t length = 0;
    while (quote && h->at < h->end && *h->at != quote && *h->at != '\\' && length + 1 < room) {
        text[length++] = *h->at++;
    }
    text[length] = '\0';
    return quote && h->at < h->end && *h->at++ == quote;
}

/* Take a whole number; false where there is none, or it is beyond 63 bits. */
static bool take_number(header *h, int64_t *number_out)
{
    int64_t number = 0;
    skip_blanks(h);
    const char *first = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (!cvy_mul_i64(number, 10, &number) || !cvy_add_i64(number, *h->at - '0', &number)) {
            return false;
        }
    }
    *number_out = number;
    return h->at > first;
}

/* "(3, 4)", "(3,)" */
static bool take_shape(header *h)
{
    if (!take(h, "(")) {
        return false;
    }
    while (!take(h, ")")) {
        if (h->shape.dims == CVY_MAX_DIMS || !take_number(h, &h->shape.extent[h->shape.dims])) {
            return false;
        }
        h->shape.dims++;
        if (!take(h, ",")) {
            return take(h, ")");
        }
    }
    return true;
}

static bool take_entry(header *h)
{
    char key[TYPE_TEXT];
    if (!take_text(h, key, sizeof key) || !take(h, ":")) {
        return false;
    }
    if (strcmp(key, "descr") == 0 && !h->has_descr) {
        return h->has_descr = take_text(h, h->descr, sizeof h->descr);
    }
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->fortran = take(h, "True");
        return h->has_order = h->fortran || take(h, "False");
    }
    if (strcmp(key, "shape") == 0 && !h->has_shape) {
        return h->has_shape = take_shape(h);
    }
    return false;
}

static bool take_dictionary(header *h)
{
    bool fine = take(h, "{");
    while (fine && !take(h, "}")) {
        fine = take_entry(h);
        if (fine && !take(h, ",")) {
            fine = take(h, "}");
            break;
        }
    }
    return fine && h->has_descr && h->has_order && h->has_shape && take(h, "\n") && h->at == h->end;
}

static cvy_status find_type(const char *name, const char *descr, cvy_array_type *type_out)
{
    char word[CVY_WORD_TEXT];
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i].descr, descr) == 0) {
            *type_out = (cvy_array_type)i;
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_DATA,
                    "%s: elements are of type '%s', expected |u1, <i4, <i8, <f4 or <f8 (uint8, int32, int64, float32, "
                    "float64)", name, cvy_print_word(descr, word));
}

/* Whether the count of bytes bears out type and shape. */
static cvy_status check_length(const char *name, const cvy_array *array, int64_t body_bytes)
{
    char text[CVY_SHAPE_TEXT];
    int64_t bytes = cvy_array_type_bytes(array->type);
    bool fits = true;
    CVY_REQUIRE(array->shape.dims >= 1, CVY_ERR_DATA, "%s: a single number, expected an array of samples", name);
    cvy_shape_print(&array->shape, text);
    for (int i = 0; i < array->shape.dims; i++) {
        CVY_REQUIRE(array->shape.extent[i] > 0, CVY_ERR_DATA, "%s: the header says %s elements: none", name, text);
        fits = fits && cvy_mul_i64(bytes, array->shape.extent[i], &bytes);
    }
    CVY_REQUIRE(fits && bytes == body_bytes, CVY_ERR_DATA,
                "%s: the header says %s elements of %" PRId64 " bytes, but %" PRId64 " bytes follow it", name, text,
                cvy_array_type_bytes(array->type), body_bytes);
    return CVY_OK;
}

/* Where the dictionary begins and how long it is. */
static cvy_status find_dictionary(const char *name, const unsigned char *data, int64_t bytes, int64_t *first_out,
                                  int64_t *length_out)
{
    CVY_REQUIRE(bytes >= MAGIC_BYTES + 4 && memcmp(data, magic, MAGIC_BYTES) == 0, CVY_ERR_DATA,
                "%s: not an NPY array: it does not begin with \\x93NUMPY and a version", name);
    int major = data[MAGIC_BYTES], wide = major > 1;
    CVY_REQUIRE(major >= 1 && major <= 3 && data[MAGIC_BYTES + 1] == 0, CVY_ERR_DATA,
                "%s: NPY version %d.%d, expected 1.0, 2.0 or 3.0", name, major, data[MAGIC_BYTES + 1]);
    *first_out = MAGIC_BYTES + 2 + (wide ? 4 : 2);
    const unsigned char *size = data + MAGIC_BYTES + 2;
    *length_out = size[0] | size[1] << 8;
    if (wide) {
        CVY_REQUIRE(bytes >= *first_out, CVY_ERR_DATA, "%s: cut short within its header", name);
        *length_out |= (int64_t)size[2] << 16 | (int64_t)size[3] << 24;
    }
    CVY_REQUIRE(*length_out <= MAX_HEADER_BYTES && *length_out <= bytes - *first_out, CVY_ERR_DATA,
                "%s: a header of %" PRId64 " bytes in a file of %" PRId64, name, *length_out, bytes);
    return CVY_OK;
}

cvy_status cvy_npy_parse_header(const char *name, const unsigned char *data, int64_t bytes, cvy_array *array_out)
{
    char word[CVY_WORD_TEXT], text[CVY_WORD_TEXT];
    int64_t first, length;
    cvy_array array = {.type = CVY_ARRAY_U8};
    CVY_TRY(find_dictionary(name, data, bytes, &first, &length));
    header h = {.at = (const char *)data + first, .end = (const char *)data + first + length};
    if (!take_dictionary(&h)) {
        size_t shown = (size_t)cvy_min_i64(length, (int64_t)sizeof text - 1);
        memcpy(text, data + first, shown);
        text[shown] = '\0';
        return cvy_fail(CVY_ERR_DATA, "%s: a header with descr, fortran_order and shape was expected, found %s", name,
                        cvy_print_word(text, word));
    }
    CVY_TRY(find_type(name, h.descr, &array.type));
    CVY_REQUIRE(!h.fortran, CVY_ERR_DATA, "%s: in Fortran order; save it in C order (numpy.ascontiguousarray)", name);
    array.shape = h.shape;
    CVY_TRY(check_length(name, &array, bytes - first - length));
    array.body = data + first + length;
    *array_out = array;
    return CVY_OK;
}
