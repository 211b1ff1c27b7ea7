/* Surveys of machines that are laws: what is measured, how often, in which order, and what is said of noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/pace.h"
#include "fake_meter.h"
#include "folder.h"

static const cvy_shape_limits limits = {.block = 8, .least_bytes = 4096, .most_bytes = 32e6, .most_flop = 1e9};

/* Survey for some rounds, with a journal in memory. */
static void survey_fake(fake_machine *machine, int rounds, double budget_s, cvy_kernel_survey *survey)
{
    const cvy_meter meter = make_fake_meter(machine);
    cvy_kernel_survey_options options = {.seed = 5, .limits = limits, .budget_s = budget_s, .rounds = rounds};
    assert_int_equal(cvy_journal_open(NULL, 1, &options.journal), CVY_OK);
    assert_int_equal(cvy_kernel_survey_run(&meter, &options, survey), CVY_OK);
    cvy_journal_close(&options.journal);
}

/* Two rounds measure twice what a family has in one, in all of its passes; passes of a shape share its number. */
static void test_each_round_has_a_shape_of_each_family(void **state)
{
    (void)state;
    static fake_machine machine;
    cvy_kernel_survey survey;
    int shapes[64] = {0};
    machine = (fake_machine){.measured = 0};
    survey_fake(&machine, 2, 1e9, &survey);
    assert_int_equal(survey.rows, 2 * count_round());
    assert_int_equal(survey.rounds, 2);
    assert_int_equal(survey.refused, 0);
    for (int i = 0; i < survey.rows; i++) {
        assert_true(survey.row[i].time.seconds == law_of_bytes(&machine, &survey.row[i].op));
        assert_int_equal(survey.row[i].shape % cvy_shape_families(), survey.row[i].family);
        shapes[survey.row[i].family]++;
    }
    for (int i = 0; i < cvy_shape_families(); i++) {
        const cvy_shape_family *family = cvy_shape_family_get(i);
        assert_int_equal(shapes[i], 2 * family->shapes * __builtin_popcount(family->passes));
    }
    cvy_kernel_survey_clear(&survey);
}

/* The order is the seed's, not the table's: the three passes of a convolution do not stand first. */
static void test_the_order_is_shuffled_and_the_same_twice(void **state)
{
    (void)state;
    static fake_machine one, other;
    cvy_kernel_survey survey;
    one = other = (fake_machine){.measured = 0};
    survey_fake(&one, 1, 1e9, &survey);
    int moved = 0;
    for (int i = 1; i < survey.rows; i++) {
        moved += survey.row[i].family < survey.row[i - 1].family;
    }
    assert_true(moved > count_round() / 4);
    cvy_kernel_survey_clear(&survey);
    survey_fake(&other, 1, 1e9, &survey);
    assert_memory_equal(one.hash, other.hash, sizeof one.hash);
    cvy_kernel_survey_clear(&survey);
}

/* Whatever the budget, the first round is whole; then no kernel is begun once it is spent. */
static void test_a_budget_ends_the_survey(void **state)
{
    (void)state;
    static fake_machine machine;
    cvy_kernel_survey survey;
    machine = (fake_machine){.measured = 0};
    survey_fake(&machine, 100, 0.0, &survey);
    assert_int_equal(survey.rows, count_round() + 1);
    cvy_kernel_survey_clear(&survey);
    machine = (fake_machine){.measured = 0};
    survey_fake(&machine, 100, 3.0, &survey);
    assert_true(survey.spent_s >= 3.0 && survey.spent_s < 3.5);
    cvy_kernel_survey_clear(&survey);
}

/* ---- noise ---- */

/* A probe that goes from 2 ms to 2.6 ms over 120 of them. */
static double law_of_drift(const fake_machine *machine) { return 2e-3 * (1.0 + 0.3 * machine->probed / 120.0); }

/* Every fourth probe takes twice as long, once there are some. */
static double law_of_company(const fake_machine *machine)
{
    return machine->probed > 20 && machine->probed % 4 == 0 ? 4e-3 : 2e-3;
}

static void report_fake(double (*probe_s)(const fake_machine *machine), cvy_noise_report *report)
{
    static fake_machine machine;
    cvy_noise noise = {0};
    machine = (fake_machine){.probed = 0};
    for (; machine.probed < 120; machine.probed++) {
        assert_int_equal(cvy_noise_add(&noise, probe_s(&machine)), CVY_OK);
    }
    assert_int_equal(cvy_noise_sum_up(&noise, report), CVY_OK);
    cvy_noise_clear(&noise);
}

/* Medians of the quarters: probes 15 and 105 of 120, 1.0375 and 1.2625 of the first; 21.7 % apart. */
static void test_a_drift_is_told(void **state)
{
    (void)state;
    char text[CVY_NOISE_TEXT];
    cvy_noise_report report;
    report_fake(law_of_drift, &report);
    assert_true(report.drift > 0.20 && report.drift < 0.24);
    assert_non_null(strstr(cvy_noise_print(&report, text), "became 22 % slower"));
    report_fake(law_of_calm, &report);
    assert_string_equal(cvy_noise_print(&report, text), "");
    assert_true(report.drift == 0.0 && report.disturbed == 0.0 && report.spread == 0.0);
}

/* Of probes 21 to 119 every fourth: 24, 28, …, 116 are 24 of 120. */
static void test_company_is_told(void **state)
{
    (void)state;
    char text[CVY_NOISE_TEXT];
    cvy_noise_report report;
    report_fake(law_of_company, &report);
    assert_true(report.disturbed > 0.199 && report.disturbed < 0.201);
    assert_string_equal(cvy_noise_print(&report, text), "20 % of the probes say that something else ran here");
}

static void test_few_probes_say_nothing(void **state)
{
    (void)state;
    char text[CVY_NOISE_TEXT];
    cvy_noise noise = {0};
    cvy_noise_report report;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(cvy_noise_add(&noise, i + 1.0), CVY_OK);
        assert_false(cvy_noise_disturbs(&noise, 1e9));
    }
    assert_int_equal(cvy_noise_sum_up(&noise, &report), CVY_OK);
    assert_int_equal(report.probes, 7);
    assert_string_equal(cvy_noise_print(&report, text), "");
    cvy_noise_clear(&noise);
}

/* Every other op is measured while the machine takes three times as long for anything. */
static double law_of_spells(const fake_machine *machine) { return machine->measured % 2 ? 3.0 : 1.0; }

static double law_of_slow_bytes(const fake_machine *machine, const cvy_op *op)
{
    return law_of_bytes(machine, op) * law_of_spells(machine);
}

/* All rows are told at one pace: that of the middle of the time, in which slow spells count three times. */
static void test_slow_spells_are_taken_out(void **state)
{
    (void)state;
    static fake_machine machine;
    cvy_kernel_survey survey;
    double time[2] = {0.0, 0.0};
    machine = (fake_machine){.op_s = law_of_slow_bytes, .beside_s = law_of_spells};
    survey_fake(&machine, 2, 1e9, &survey);
    for (int i = 0; i < survey.rows; i++) {
        time[i % 2] += law_of_bytes(&machine, &survey.row[i].op) * (i % 2 ? 3.0 : 1.0);
    }
    for (int i = 0; i < survey.rows; i++) {
        double expected = law_of_bytes(&machine, &survey.row[i].op) * (time[1] > time[0] ? 3.0 : 1.0);
        assert_true(fabs(survey.row[i].time.seconds / expected - 1.0) < 1e-9);
    }
    assert_true(survey.interruptions == 0.0);
    cvy_kernel_survey_clear(&survey);
}

/*
 * The probe takes 1 ms, its mean 1.2: interruptions add a fifth. A kernel of 10 us that came out as such was not
 * interrupted, one of 60 ms was: 50 ms are its own; of one of 2.5 ms half of them are counted, 2.5 / 1.1.
 */
static void test_what_interrupts_is_told_apart(void **state)
{
    (void)state;
    const double seconds[] = {1e-5, 6e-2, 2.5e-3}, expected[] = {1e-5 / (1.0 + 0.2 * 0.002), 5e-2, 2.5e-3 / 1.1};
    cvy_pace pace = {0};
    for (int i = 0; i < 3; i++) {
        const cvy_metered metered = {.time.seconds = seconds[i], .probe = {1e-3, 1.2e-3}, .took_s = i + 1.0};
        assert_int_equal(cvy_pace_add(&pace, &metered), CVY_OK);
    }
    cvy_pace_settle(&pace);
    assert_true(cvy_pace_probe_s(&pace) == 1e-3);
    assert_true(fabs(cvy_pace_interruptions(&pace) - 0.2) < 1e-9);
    for (int i = 0; i < 3; i++) {
        const cvy_metered metered = {.time.seconds = 2.0 * seconds[i], .probe = {2e-3, 2e-3}}; /* in a slow moment */
        assert_true(fabs(cvy_pace_correct(&pace, &metered).seconds / expected[i] - 1.0) < 1e-9);
    }
    const cvy_metered alone = {.time.seconds = 0.5};
    assert_true(cvy_pace_correct(&pace, &alone).seconds == 0.5); /* nobody looked */
    cvy_pace_clear(&pace);
}

/* Of 10 s the probe took 490 us or less in 6: a spell of 871 us moves nothing. With 5 s of 500 us it is 6 of 15. */
static void test_the_usual_pace_is_that_of_half_the_time(void **state)
{
    (void)state;
    static const double probe_s[] = {871e-6, 490e-6, 480e-6, 495e-6, 500e-6}, took_s[] = {1, 4, 2, 3, 5};
    cvy_pace pace = {0};
    cvy_pace_settle(&pace);
    assert_true(cvy_pace_probe_s(&pace) == 0.0);
    for (int i = 0; i < 5; i++) {
        const cvy_metered metered = {.probe = {probe_s[i], probe_s[i]}, .took_s = took_s[i]};
        assert_int_equal(cvy_pace_add(&pace, &metered), CVY_OK);
        if (i == 3) {
            cvy_pace_settle(&pace);
            assert_true(cvy_pace_probe_s(&pace) == 490e-6);
        }
    }
    cvy_pace_settle(&pace);
    assert_true(cvy_pace_probe_s(&pace) == 495e-6);
    cvy_pace_clear(&pace);
}

/* ---- going on ---- */

static char *read_text(const char *path, size_t *bytes)
{
    char *data = NULL;
    assert_int_equal(cvy_file_read(path, 1 << 20, CVY_ERR_IO, &data, bytes), CVY_OK);
    return data;
}

static void survey_with(const char *path, fake_machine *machine, cvy_kernel_survey *survey)
{
    const cvy_meter meter = make_fake_meter(machine);
    cvy_kernel_survey_options options = {.seed = 5, .limits = limits, .budget_s = 1e9, .rounds = 1};
    assert_int_equal(cvy_journal_open(path, 77, &options.journal), CVY_OK);
    assert_int_equal(cvy_kernel_survey_run(&meter, &options, survey), CVY_OK);
    cvy_journal_close(&options.journal);
}

/* Lines behind the head. */
static int count_rows(const char *data, size_t bytes)
{
    int lines = -1;
    for (size_t i = 0; i < bytes; i++) {
        lines += data[i] == '\n';
    }
    return lines < 0 ? 0 : lines;
}

/* A journal that ends at any byte has the rows that are whole, and takes another one behind them. */
static void test_a_journal_cut_at_any_byte_goes_on(void **state)
{
    static fake_machine machine;
    cvy_kernel_survey survey;
    size_t bytes;
    const char *path = test_path(*state, "journal");
    machine = (fake_machine){.measured = 0};
    survey_with(path, &machine, &survey);
    char *data = read_text(path, &bytes);
    assert_int_equal(count_rows(data, bytes), survey.rows);
    while (count_rows(data, bytes) > 8) { /* each byte of a few rows says as much as of many */
        bytes--;
    }
    for (size_t cut = 0; cut <= bytes; cut++) {
        cvy_journal *journal = NULL;
        assert_true(put_test_file(path, data, cut));
        assert_int_equal(cvy_journal_open(path, 77, &journal), CVY_OK);
        assert_int_equal(cvy_journal_rows(journal), count_rows(data, cut));
        assert_int_equal(cvy_journal_add(journal, &survey.row[0].op, &survey.row[0].metered, 1.0), CVY_OK);
        cvy_journal_close(&journal);
        assert_int_equal(cvy_journal_open(path, 77, &journal), CVY_OK);
        assert_int_equal(cvy_journal_rows(journal), count_rows(data, cut) + 1);
        cvy_journal_close(&journal);
    }
    cvy_kernel_survey_clear(&survey);
    cvy_free(data);
}

/* What the journal has is not measured again, and the survey is the same as in one go. */
static void test_a_survey_that_was_killed_goes_on(void **state)
{
    static fake_machine machine;
    cvy_kernel_survey whole, again;
    size_t bytes;
    const char *path = test_path(*state, "journal");
    machine = (fake_machine){.measured = 0};
    survey_with(path, &machine, &whole);
    char *data = read_text(path, &bytes);
    for (size_t cut = 0; cut < bytes; cut += bytes / 5) {
        machine = (fake_machine){.measured = 0};
        assert_true(put_test_file(path, data, cut));
        survey_with(path, &machine, &again);
        assert_int_equal(machine.measured, whole.rows - count_rows(data, cut));
        assert_int_equal(again.rows, whole.rows);
        for (int i = 0; i < again.rows; i++) {
            assert_true(cvy_op_hash(&again.row[i].op) == cvy_op_hash(&whole.row[i].op));
            double ratio = again.row[i].time.seconds / whole.row[i].time.seconds;
            assert_true(ratio > 1.0 - 1e-8 && ratio < 1.0 + 1e-8); /* nine digits are written */
        }
        cvy_kernel_survey_clear(&again);
    }
    cvy_kernel_survey_clear(&whole);
    cvy_free(data);
}

/* Of another machine nothing is taken over; what is no journal is left alone; a damaged row ends what is believed. */
static void test_what_a_journal_is_not(void **state)
{
    static fake_machine machine;
    cvy_kernel_survey survey;
    cvy_journal *journal = NULL;
    size_t bytes;
    const char *path = test_path(*state, "journal");
    machine = (fake_machine){.measured = 0};
    survey_with(path, &machine, &survey);
    char *data = read_text(path, &bytes);
    data[bytes / 2] ^= 1;
    assert_true(put_test_file(path, data, bytes));
    assert_int_equal(cvy_journal_open(path, 77, &journal), CVY_OK);
    assert_int_equal(cvy_journal_rows(journal), count_rows(data, bytes / 2));
    cvy_journal_close(&journal);
    assert_int_equal(cvy_journal_open(path, 78, &journal), CVY_OK);
    assert_int_equal(cvy_journal_rows(journal), 0);
    cvy_journal_close(&journal);
    assert_true(put_test_file(path, "my notes\n", 9));
    assert_int_equal(cvy_journal_open(path, 78, &journal), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "no journal of a calibration"));
    cvy_kernel_survey_clear(&survey);
    cvy_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_round_has_a_shape_of_each_family),
        cmocka_unit_test(test_the_order_is_shuffled_and_the_same_twice),
        cmocka_unit_test(test_a_budget_ends_the_survey),
        cmocka_unit_test(test_a_drift_is_told),
        cmocka_unit_test(test_company_is_told),
        cmocka_unit_test(test_few_probes_say_nothing),
        cmocka_unit_test(test_slow_spells_are_taken_out),
        cmocka_unit_test(test_what_interrupts_is_told_apart),
        cmocka_unit_test(test_the_usual_pace_is_that_of_half_the_time),
        cmocka_unit_test_setup_teardown(test_a_journal_cut_at_any_byte_goes_on, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_survey_that_was_killed_goes_on, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_what_a_journal_is_not, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
