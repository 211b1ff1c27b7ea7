/* Networks whose law is known: pieces come back, and the oracle gives the seconds that were measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/network.h"
#include "folder.h"
#include "oracle/collective.h"

enum { POINTS = 10 };

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

/* 64 bytes to 16 MB, by fours. */
static void measure_law(double (*law)(double bytes), cvy_network_point *point)
{
    double bytes = 64.0;
    for (int i = 0; i < POINTS; i++, bytes *= 4.0) {
        point[i] = (cvy_network_point){.bytes = bytes, .seconds = law(bytes)};
    }
}

/* 5 us and 2 GB/s. */
static double law_of_a_line(double bytes) { return 5e-6 + bytes / 2e9; }

/* Up to 16 kB 2 us and 1 GB/s, as messages that are copied; above, 30 us and 8 GB/s. */
static double law_of_two_ways(double bytes) { return bytes <= 16384.0 ? 2e-6 + bytes / 1e9 : 30e-6 + bytes / 8e9; }

static void test_a_line_is_one_piece(void **state)
{
    (void)state;
    cvy_network_point point[POINTS];
    cvy_network_piece piece[CVY_NETWORK_PIECES];
    measure_law(law_of_a_line, point);
    assert_int_equal(cvy_network_fit(point, POINTS, piece), 1);
    assert_near(piece[0].constant_s, 5e-6, 1e-9);
    assert_near(piece[0].s_per_byte, 0.5e-9, 1e-9);
    assert_true(piece[0].residual < 1e-9);
}

static void test_two_ways_are_two_pieces(void **state)
{
    (void)state;
    cvy_network_point point[POINTS];
    cvy_network_piece piece[CVY_NETWORK_PIECES];
    measure_law(law_of_two_ways, point);
    assert_int_equal(cvy_network_fit(point, POINTS, piece), 2);
    assert_true(piece[0].up_to_bytes == 16384.0);
    assert_near(piece[0].constant_s, 2e-6, 1e-9);
    assert_near(piece[0].s_per_byte, 1e-9, 1e-9);
    assert_near(piece[1].constant_s, 30e-6, 1e-9);
    assert_near(piece[1].s_per_byte, 0.125e-9, 1e-9);
}

/* What falls is taken for even, and one point for a constant: no line falls or begins below 0. */
static void test_no_line_falls(void **state)
{
    (void)state;
    const cvy_network_point falling[] = {{64, 2e-6, 0}, {256, 1.9e-6, 0}, {1024, 1.95e-6, 0}};
    const cvy_network_point steep[] = {{64, 1e-6, 0}, {256, 5e-6, 0}, {1024, 21e-6, 0}};
    cvy_network_piece piece[CVY_NETWORK_PIECES];
    assert_int_equal(cvy_network_fit(falling, 3, piece), 1);
    assert_true(piece[0].s_per_byte == 0.0 && piece[0].constant_s > 1.9e-6 && piece[0].constant_s < 2e-6);
    for (int i = 0; i < cvy_network_fit(steep, 3, piece); i++) {
        assert_true(piece[i].constant_s >= 0.0 && piece[i].s_per_byte > 0.0);
    }
    assert_int_equal(cvy_network_fit(falling, 1, piece), 1);
    assert_true(piece[0].constant_s == 2e-6 && piece[0].s_per_byte == 0.0);
}

/* ---- in a machine file ---- */

static cvy_network_curve *add_curve(cvy_network_profile *profile, cvy_collective collective, int ranks,
                                    double (*law)(double bytes))
{
    cvy_network_curve *curve = &profile->curve[profile->curves++];
    *curve = (cvy_network_curve){.collective = collective, .ranks = ranks, .groups = 1, .flows = 1, .points = POINTS};
    measure_law(law, curve->point);
    curve->pieces = cvy_network_fit(curve->point, POINTS, curve->piece);
    return curve;
}

/* Half of the rate both ways, and a third of all ranks' in groups. */
static double law_of_both_ways(double bytes) { return 6e-6 + bytes / 1e9; }
static double law_of_groups(double bytes) { return 4e-6 + bytes / 6e9; }

/* Write a profile into a machine file, and read that. */
static cvy_machine *make_machine(const char *folder, const cvy_network_profile *profile)
{
    cvy_machine *machine = cvy_calloc(1, sizeof *machine), *loaded = NULL;
    cvy_text text = {0};
    assert_non_null(machine);
    machine->name = machine->summary = machine->device.name = "net";
    machine->device = (cvy_device){.name = "d", .cores = 1, .vector_bits = 256, .memory_bytes = 1 << 30,
                                   .memory_Bps = 1e9, .peak_flop_per_s = {[CVY_PRECISION_FP32] = 1e9}};
    machine->execution.lockstep = machine->execution.exchange_slowdown = machine->execution.compute_slowdown = 1.0;
    assert_int_equal(cvy_network_fill(profile, "2026-01-02", machine), CVY_OK);
    cvy_machine_print(machine, &text);
    const char *path = test_path(folder, "net.yaml");
    assert_true(put_test_file(path, text.data, text.length));
    cvy_text_destroy(&text);
    cvy_machine_destroy(&machine);
    assert_int_equal(cvy_machine_load(path, &loaded), CVY_OK);
    return loaded;
}

/* 4 ranks of a node; messages a line, reductions two ways. */
static cvy_network_profile make_profile(void)
{
    cvy_network_profile profile = {.nodes = 1, .node_ranks = 4, .bucket_bytes = 4 << 20};
    add_curve(&profile, CVY_COLLECTIVE_POINT_TO_POINT, 2, law_of_a_line);
    add_curve(&profile, CVY_COLLECTIVE_POINT_TO_POINT, 4, law_of_both_ways)->both = true;
    add_curve(&profile, CVY_COLLECTIVE_ALL_REDUCE, 4, law_of_two_ways);
    add_curve(&profile, CVY_COLLECTIVE_ALL_GATHER, 4, law_of_a_line);
    add_curve(&profile, CVY_COLLECTIVE_REDUCE_SCATTER, 4, law_of_two_ways);
    add_curve(&profile, CVY_COLLECTIVE_ALL_TO_ALL, 4, law_of_both_ways);
    add_curve(&profile, CVY_COLLECTIVE_BROADCAST, 4, law_of_two_ways);
    add_curve(&profile, CVY_COLLECTIVE_ALL_REDUCE, 2, law_of_groups)->groups = 2;
    return profile;
}

/* The rule that holds for a size, by the order of the file; its seconds by the oracle's formula of its algorithm. */
static double price(const cvy_machine *machine, cvy_collective collective, int ranks, double bytes)
{
    for (int i = 0; i < machine->collectives; i++) {
        const cvy_collective_rule *rule = &machine->collective[i];
        if (rule->collective == (int)collective && (rule->up_to_bytes == 0 || bytes <= (double)rule->up_to_bytes) &&
            (rule->up_to_ranks == 0 || ranks <= rule->up_to_ranks)) {
            const cvy_wiring wiring = {.ranks = ranks, .nodes = 1, .inner = {rule->latency_s, rule->bandwidth_Bps}};
            return cvy_collective_find(collective, (cvy_algorithm)rule->algorithm)->estimate_s(&wiring, bytes);
        }
    }
    fail_msg("no rule of %s", cvy_collective_name(collective));
    return 0.0;
}

/* The first rule of messages for a traffic. */
static const cvy_collective_rule *find_messages(const cvy_machine *machine, cvy_traffic traffic)
{
    for (int i = 0; i < machine->collectives; i++) {
        const cvy_collective_rule *rule = &machine->collective[i];
        bool applies = rule->traffic == (int)traffic || rule->traffic == CVY_ANY;
        if (rule->collective == CVY_COLLECTIVE_POINT_TO_POINT && applies) {
            return rule;
        }
    }
    fail_msg("no rule of messages");
    return NULL;
}

static void test_the_oracle_gives_what_was_measured(void **state)
{
    const cvy_network_profile profile = make_profile();
    cvy_machine *machine = make_machine(*state, &profile);
    assert_int_equal(machine->levels, 1);
    assert_int_equal(machine->devices_per_node, 4);
    assert_int_equal(machine->level[0].endpoints, 4);
    assert_near(machine->level[0].latency_s, law_of_a_line(64.0), 1e-3);
    assert_near(machine->level[0].bandwidth_Bps, 2e9, 1e-3);
    assert_true(machine->level[0].burst_bytes == 0);
    assert_true(machine->execution.bucket_bytes == 4 << 20);
    for (double bytes = 64.0; bytes < 16e6; bytes *= 4.0) { /* figures are written with four digits */
        assert_near(price(machine, CVY_COLLECTIVE_ALL_REDUCE, 4, bytes), law_of_two_ways(bytes), 2e-3);
        assert_near(price(machine, CVY_COLLECTIVE_REDUCE_SCATTER, 4, bytes), law_of_two_ways(bytes), 2e-3);
        assert_near(price(machine, CVY_COLLECTIVE_ALL_GATHER, 4, bytes), law_of_a_line(bytes), 2e-3);
        assert_near(price(machine, CVY_COLLECTIVE_ALL_TO_ALL, 4, bytes), law_of_both_ways(bytes), 2e-3);
        assert_near(price(machine, CVY_COLLECTIVE_BROADCAST, 4, bytes), law_of_two_ways(bytes), 2e-3);
        assert_near(price(machine, CVY_COLLECTIVE_ALL_REDUCE, 2, bytes), law_of_groups(bytes), 2e-3);
    }
    cvy_machine_destroy(&machine);
}

/* Halos go both ways, what passes between stages one way. */
static void test_halos_are_messages_both_ways(void **state)
{
    const cvy_network_profile profile = make_profile();
    cvy_machine *machine = make_machine(*state, &profile);
    assert_near(find_messages(machine, CVY_TRAFFIC_SPACE)->bandwidth_Bps, 1e9, 1e-3);
    assert_near(find_messages(machine, CVY_TRAFFIC_LAYERS)->bandwidth_Bps, 2e9, 1e-3);
    cvy_machine_destroy(&machine);
}

/* Links that save up half of the time show twice their rate one way: what both ways say holds for all. */
static void test_one_way_is_not_believed_of_links_that_save_up(void **state)
{
    cvy_network_profile profile = make_profile();
    profile.burst_bytes = 500000;
    cvy_machine *machine = make_machine(*state, &profile);
    assert_true(machine->level[0].burst_bytes == 500000);
    assert_near(machine->level[0].bandwidth_Bps, 1e9, 1e-3);
    assert_near(find_messages(machine, CVY_TRAFFIC_LAYERS)->bandwidth_Bps, 1e9, 1e-3);
    cvy_machine_destroy(&machine);
}

/* 2 nodes of 2 ranks: ranks a node apart are 2 groups over the node's link, of which each gets half. */
static void test_groups_across_nodes_share_the_link(void **state)
{
    cvy_network_profile profile = {.nodes = 2, .node_ranks = 2};
    for (int i = 0; i < 4; i++) {
        cvy_network_curve *curve = add_curve(&profile, CVY_COLLECTIVE_POINT_TO_POINT, 2, law_of_a_line);
        curve->level = i / 2;
        curve->both = i % 2;
        curve->flows = i == 3 ? 2 : 1;
    }
    cvy_network_curve *curve = add_curve(&profile, CVY_COLLECTIVE_ALL_REDUCE, 2, law_of_a_line);
    curve->level = 1;
    curve->groups = curve->flows = 2;
    cvy_machine *machine = make_machine(*state, &profile);
    assert_true(machine->nodes == 2 && machine->devices_per_node == 2 && machine->levels == 2);
    for (int i = 0; i < machine->collectives; i++) {
        const cvy_collective_rule *rule = &machine->collective[i];
        if (rule->collective == CVY_COLLECTIVE_ALL_REDUCE) {
            assert_int_equal(rule->up_to_ranks, 2);
            assert_int_equal(rule->level, 1);
            assert_near(rule->bandwidth_Bps, 2 * 2e9, 1e-3); /* 2 (p - 1) / p = 1 of the buffer is sent */
        }
    }
    cvy_machine_destroy(&machine);
}

/* One rank has no network. */
static void test_one_rank_measures_nothing(void **state)
{
    (void)state;
    const int node[] = {0};
    cvy_network_profile profile;
    assert_int_equal(cvy_network_measure(NULL, node, 1e6, &profile), CVY_OK);
    assert_int_equal(profile.curves, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_one_piece),
        cmocka_unit_test(test_two_ways_are_two_pieces),
        cmocka_unit_test(test_no_line_falls),
        cmocka_unit_test_setup_teardown(test_the_oracle_gives_what_was_measured, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_halos_are_messages_both_ways, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_one_way_is_not_believed_of_links_that_save_up, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_groups_across_nodes_share_the_link, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_one_rank_measures_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
