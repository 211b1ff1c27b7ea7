/* Quantities with units as people write them: "25 GB/s", "1.5 us", "16 GiB". The unit must be there and be right. */
#ifndef CVY_BASE_QUANTITY_H
#define CVY_BASE_QUANTITY_H

#include <stdbool.h>

/** What is measured, and the unit of the number that stands for it. */
typedef enum cvy_quantity {
    CVY_QUANTITY_TIME,      /**< seconds: ns, us, ms, s, min, h */
    CVY_QUANTITY_SIZE,      /**< bytes: B, kB … EB (powers of 1000), KiB … PiB (powers of 1024) */
    CVY_QUANTITY_BANDWIDTH, /**< bytes a second: those of sizes with /s, and kbit/s … Tbit/s */
    CVY_QUANTITY_RATE,      /**< floating-point operations a second: FLOP/s with k … E */
    CVY_QUANTITY_PRICE,     /**< US dollars an hour: USD/h */
    CVY_QUANTITY_COUNT
} cvy_quantity;

/** Room for one printed quantity. */
enum { CVY_QUANTITY_TEXT = 48 };

/**
 * Read a number, decimal, blanks or none, and its unit; nothing may follow.
 *
 * @param[in]  text       may be NULL, which is no quantity
 * @param[out] value_out  finite, of either sign, in the base unit; untouched on failure
 * @return false where a number, or a unit of @p kind, is missing, or where it is too large for a double
 */
bool cvy_quantity_parse(const char *text, cvy_quantity kind, double *value_out);

/**
 * Print the shortest text that cvy_quantity_parse() reads back to the same bits.
 *
 * @param[in] value  finite
 * @param[in] text   room for CVY_QUANTITY_TEXT bytes
 * @return @p text
 */
const char *cvy_quantity_print(double value, cvy_quantity kind, char *text);

/** What is expected, for messages: "a bandwidth with its unit, as 25 GB/s or 100 Gbit/s". */
const char *cvy_quantity_expected(cvy_quantity kind);

#endif
