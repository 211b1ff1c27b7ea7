/* Tables from outside: what RFC 4180 says, names for columns, and one line for whatever is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/memory.h"
#include "folder.h"

static cvy_status load(void **state, const char *text, size_t bytes, cvy_csv **csv_out)
{
    const char *path = test_path(*state, "table.csv");
    assert_true(put_test_file(path, text, bytes));
    return cvy_csv_load(path, csv_out);
}

static cvy_csv *read_table(void **state, const char *text)
{
    cvy_csv *csv = NULL;
    if (load(state, text, strlen(text), &csv) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return csv;
}

static void test_cells_are_found_by_the_name_of_their_column(void **state)
{
    cvy_csv *csv = read_table(state, "a,b,c\n1,two,\n,,3\n");
    assert_int_equal(csv->columns, 3);
    assert_int_equal(csv->rows, 2);
    assert_int_equal(cvy_csv_find(csv, "b"), 1);
    assert_int_equal(cvy_csv_find(csv, "d"), -1);
    assert_string_equal(cvy_csv_name(csv, 2), "c");
    assert_string_equal(cvy_csv_cell(csv, 0, 1), "two");
    assert_string_equal(cvy_csv_cell(csv, 0, 2), "");
    assert_string_equal(cvy_csv_cell(csv, 1, 0), "");
    assert_string_equal(cvy_csv_cell(csv, 1, 2), "3");
    cvy_csv_destroy(&csv);
    assert_null(csv);
    cvy_csv_destroy(&csv);
}

/* A mark of byte order, line ends of two characters, an empty line, no line end at the end. */
static void test_other_programs_tables_are_read(void **state)
{
    cvy_csv *csv = read_table(state, "\xef\xbb\xbf"
                              "name,\"the \"\"note\"\"\"\r\n\r\n\"a,b\",\"\"\r\nx,\"y\"");
    assert_int_equal(csv->rows, 2);
    assert_string_equal(cvy_csv_name(csv, 0), "name");
    assert_string_equal(cvy_csv_name(csv, 1), "the \"note\"");
    assert_string_equal(cvy_csv_cell(csv, 0, 0), "a,b");
    assert_string_equal(cvy_csv_cell(csv, 0, 1), "");
    assert_string_equal(cvy_csv_cell(csv, 1, 1), "y");
    assert_int_equal(cvy_csv_fail(csv, 1, "%s", "wrong"), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "table.csv:4: wrong"));
    cvy_csv_destroy(&csv);
}

static void test_numbers_are_read_whole_and_within_bounds(void **state)
{
    cvy_csv *csv = read_table(state, "x\n2.5\n12\nnan\n1e999\n3 \n\"\"\n99999999999999999999\n");
    double real = 0;
    int64_t whole = 0;
    assert_int_equal(cvy_csv_get_real(csv, 0, 0, 0, 10, &real), CVY_OK);
    assert_true(real == 2.5);
    assert_int_equal(cvy_csv_get_int(csv, 1, 0, 1, 12, &whole), CVY_OK);
    assert_int_equal(whole, 12);
    assert_int_equal(cvy_csv_get_int(csv, 1, 0, 1, 11, &whole), CVY_ERR_INPUT);
    assert_int_equal(cvy_csv_get_int(csv, 0, 0, 1, INT32_MAX, &whole), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "a whole number from 1 to 2147483647")); /* not 2.14748e+09 */
    for (int row = 2; row < csv->rows; row++) {
        assert_int_equal(cvy_csv_get_real(csv, row, 0, 0, 1e9, &real), CVY_ERR_INPUT);
        assert_int_equal(cvy_csv_get_int(csv, row, 0, 0, INT64_MAX, &whole), CVY_ERR_INPUT);
    }
    assert_true(real == 2.5 && whole == 12);
    cvy_csv_destroy(&csv);
}

static void test_what_is_no_table_is_told_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } broken[] = {
        {"", "expected a table"},
        {"\n\r\n", "expected a table"},
        {"a,b\n1\n", ":2: found 1 cell, expected 2"},
        {"a,b\n1,2\n1,2,3\n", ":3: found 3 cells, expected 2"},
        {"a,b,a\n", ":1: two columns are named 'a'"},
        {"a\n\"1\n2\n", ":2: a quote that does not close"},
        {"a\n1\"2\n", ":2: a quote inside a cell"},
        {"a\n\"1\"2\n", ":2: words behind a closing quote"},
        {"a\n\"1\n2\"\n", ":2: a cell that is too long, or no line"},
        {"a\nb\rc\n", ":2: a carriage return"},
        {"a\n\xff\n", ":2: a cell that is too long, or no line"},
        {"a\n\x1b[2J\n", ":2: a cell that is too long, or no line"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cvy_csv *csv = NULL;
        assert_int_equal(load(state, broken[i].text, strlen(broken[i].text), &csv), CVY_ERR_INPUT);
        assert_null(csv);
        if (!strstr(cvy_error_message(), broken[i].words)) {
            fail_msg("'%s' lacks '%s'", cvy_error_message(), broken[i].words);
        }
    }
    cvy_csv *csv = NULL;
    assert_int_equal(load(state, "a\n\0\n", 4, &csv), CVY_ERR_INPUT);
    assert_int_equal(cvy_csv_load("no-such-file.csv", &csv), CVY_ERR_INPUT);
}

static void test_size_has_a_limit(void **state)
{
    cvy_csv *csv = NULL;
    char commas[CVY_CSV_MAX_COLUMNS + 1], cell[CVY_CSV_MAX_CELL + 4] = "a\n";
    memset(commas, ',', sizeof commas);
    assert_int_equal(load(state, commas, sizeof commas, &csv), CVY_ERR_INPUT);
    memset(cell + 2, 'x', CVY_CSV_MAX_CELL + 1);
    assert_int_equal(load(state, cell, CVY_CSV_MAX_CELL + 3, &csv), CVY_ERR_INPUT);
    assert_int_equal(load(state, cell, CVY_CSV_MAX_CELL + 2, &csv), CVY_OK);
    assert_int_equal(strlen(cvy_csv_cell(csv, 0, 0)), CVY_CSV_MAX_CELL);
    cvy_csv_destroy(&csv);
}

/* Every allocation fails once, and nothing is lost or left. */
static void test_a_lack_of_memory_is_passed_up(void **state)
{
    cvy_csv *csv = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    const char *path = test_path(*state, "few.csv");
    assert_true(put_test_file(path, "a,b\n1,2\n3,4\n", 12));
    for (int64_t count = 0; status != CVY_OK && count < 100; count++) {
        cvy_memory_fail_after(count);
        status = cvy_csv_load(path, &csv);
        assert_true((status == CVY_OK) == (csv != NULL));
    }
    cvy_memory_fail_after(-1);
    assert_int_equal(status, CVY_OK);
    cvy_csv_destroy(&csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_are_found_by_the_name_of_their_column),
        cmocka_unit_test(test_other_programs_tables_are_read),
        cmocka_unit_test(test_numbers_are_read_whole_and_within_bounds),
        cmocka_unit_test(test_what_is_no_table_is_told_with_its_line),
        cmocka_unit_test(test_size_has_a_limit),
        cmocka_unit_test(test_a_lack_of_memory_is_passed_up),
    };
    return cmocka_run_group_tests(tests, create_test_folder, remove_test_folder);
}
