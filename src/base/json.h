/*
 * JSON files of outside origin, over jansson: size limited, keys unique, and every wrong value told as
 * "FILE: KEY: found, expected". What has no number in JSON has a text that reads back to the same bits: infinities, and
 * words of 64 bits.
 */
#ifndef CVY_BASE_JSON_H
#define CVY_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** Where values come from, for messages, and what a failure is to be. */
typedef struct cvy_json_source {
    const char *file;    /**< borrowed */
    cvy_status status;   /**< CVY_ERR_CHECKPOINT, CVY_ERR_INPUT, … */
} cvy_json_source;

/**
 * Load a file that holds one object or array.
 *
 * @param[in]  limit_bytes  a longer file is refused before it is read
 * @param[out] json_out     a new reference: json_decref()
 * @retval source->status   "FILE:LINE:COLUMN: cause", or why the file cannot be read
 */
cvy_status cvy_json_load(const cvy_json_source *source, size_t limit_bytes, json_t **json_out);

/** Parse text as cvy_json_load() does a file; the text may hold zero bytes, which are refused. */
cvy_status cvy_json_parse(const cvy_json_source *source, const char *text, size_t bytes, json_t **json_out);

/**
 * Parse one value, of whatever type, out of a longer text.
 *
 * @param[in]     bytes     of the whole text
 * @param[in]     most      bytes that the value may have: memory is taken in proportion
 * @param[in,out] at        where the value, or blanks before it, begins; moves behind it on success
 * @param[out]    json_out  a new reference: json_decref()
 * @retval source->status   "FILE: byte N: cause"
 */
cvy_status cvy_json_parse_at(const cvy_json_source *source, const char *text, size_t bytes, size_t most, size_t *at,
                             json_t **json_out);

/** Save with two spaces of indentation, aside, synced and renamed. */
cvy_status cvy_json_save(const char *path, const json_t *json, cvy_status status);

/** Read a member of @p object; bounds inclusive. @retval source->status absent, of another type or out of bounds */
cvy_status cvy_json_get_int(const json_t *object, const char *key, const cvy_json_source *source, int64_t minimum,
                            int64_t maximum, int64_t *value_out);

/** As cvy_json_get_int(); a whole number and what cvy_json_real() makes are fine too, NaN is not. */
cvy_status cvy_json_get_real(const json_t *object, const char *key, const cvy_json_source *source, double minimum,
                             double maximum, double *value_out);

cvy_status cvy_json_get_bool(const json_t *object, const char *key, const cvy_json_source *source, bool *value_out);

/** 16 hexadecimal digits, as cvy_json_word() makes them. */
cvy_status cvy_json_get_word(const json_t *object, const char *key, const cvy_json_source *source,
                             uint64_t *value_out);

/** @param[out] text_out  borrowed from @p object */
cvy_status cvy_json_get_text(const json_t *object, const char *key, const cvy_json_source *source,
                             const char **text_out);

/**
 * Read a member that is an object or an array.
 *
 * @param[in]  type       JSON_OBJECT or JSON_ARRAY
 * @param[out] child_out  borrowed from @p object
 */
cvy_status cvy_json_get_child(const json_t *object, const char *key, const cvy_json_source *source, json_type type,
                              const json_t **child_out);

/** A new number that reads back to the same bits; the texts "inf", "-inf" or "nan" where it is not finite. */
json_t *cvy_json_real(double value);

/** A new text of 16 hexadecimal digits: JSON's integers have a sign. */
json_t *cvy_json_word(uint64_t value);

#endif
