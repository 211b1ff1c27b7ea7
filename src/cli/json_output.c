/* One object a command, on one line, keys in the order of the contract. */
#include "cli/json_output.h"

#include <math.h>
#include <stdio.h>

json_t *cli_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *cli_json_profile(const cvy_profile_row *row, int rows)
{
    json_t *list = json_array();
    for (int i = 0; i < rows; i++) {
        json_t *object = json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:i, s:i, s:o}", "step", row[i].name, "algorithm",
                                   row[i].algorithm, "calls", (json_int_t)row[i].calls, "seconds",
                                   cli_json_number(row[i].seconds), "flop", cli_json_number(row[i].flop), "bytes",
                                   cli_json_number(row[i].bytes), "rank", row[i].rank, "ranks", row[i].ranks,
                                   "least_s", cli_json_number(row[i].least_s));
        if (row[i].predicted_s > 0.0) {
            json_object_set_new(object, "predicted_s", cli_json_number(row[i].predicted_s));
        }
        json_array_append_new(list, object);
    }
    return list;
}

json_t *cli_json_steps(const cvy_profile_row *row, int rows, double wall_s)
{
    json_t *list = cli_json_profile(row, rows);
    for (int i = 0; i < rows; i++) {
        json_t *object = json_array_get(list, (size_t)i);
        json_object_set_new(object, "share", cli_json_number(wall_s > 0.0 ? row[i].seconds / wall_s : 0.0));
        json_object_set_new(object, "floor_s", cli_json_number(row[i].floor_s));
    }
    return list;
}

cvy_status cli_json_print(json_t *object)
{
    CVY_REQUIRE(object, CVY_ERR_MEMORY, "no memory for the JSON of the result");
    int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    CVY_REQUIRE(!failed && putchar('\n') != EOF, CVY_ERR_IO, "standard output: the result could not be written");
    return CVY_OK;
}
