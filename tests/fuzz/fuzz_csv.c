/* Tables: any bytes are a table whose every cell is one line of text, or a refusal. */
#include "base/csv.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_csv *csv = NULL;
    double real;
    int64_t whole;
    cvy_status status = cvy_csv_load(fuzz_put("table.csv", data, size), &csv);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!csv);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(csv->rows >= 0 && csv->columns >= 1 && csv->columns <= CVY_CSV_MAX_COLUMNS);
    for (int column = 0; column < csv->columns; column++) {
        FUZZ_REQUIRE(cvy_csv_find(csv, cvy_csv_name(csv, column)) == column);
        for (int row = 0; row < csv->rows; row++) {
            FUZZ_REQUIRE(cvy_utf8_is_line(cvy_csv_cell(csv, row, column), CVY_CSV_MAX_CELL));
            FUZZ_REQUIRE(cvy_csv_get_real(csv, row, column, 0, 1, &real) != CVY_OK || (real >= 0 && real <= 1));
            FUZZ_REQUIRE(cvy_csv_get_int(csv, row, column, 0, 9, &whole) != CVY_OK || (whole >= 0 && whole <= 9));
        }
    }
    cvy_csv_destroy(&csv);
    return 0;
}
