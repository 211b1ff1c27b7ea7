/* Meshes against nested loops over coordinates; strategy strings against the contract of the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/strategy.h"

static cvy_mesh make_mesh(const int64_t size[CVY_AXES], const cvy_axis *order)
{
    cvy_mesh mesh;
    assert_int_equal(cvy_mesh_setup(size, order, &mesh), CVY_OK);
    return mesh;
}

/* Six loops, slowest outside, count the ranks. */
static void check_numbering(const cvy_mesh *mesh, const cvy_axis order[CVY_AXES])
{
    int64_t at[CVY_AXES], expected[CVY_AXES], found[CVY_AXES], rank = 0;
    for (at[0] = 0; at[0] < mesh->size[order[0]]; at[0]++)
        for (at[1] = 0; at[1] < mesh->size[order[1]]; at[1]++)
            for (at[2] = 0; at[2] < mesh->size[order[2]]; at[2]++)
                for (at[3] = 0; at[3] < mesh->size[order[3]]; at[3]++)
                    for (at[4] = 0; at[4] < mesh->size[order[4]]; at[4]++)
                        for (at[5] = 0; at[5] < mesh->size[order[5]]; at[5]++) {
                            for (int i = 0; i < CVY_AXES; i++) {
                                expected[order[i]] = at[i];
                            }
                            cvy_mesh_coordinates(mesh, rank, found);
                            assert_memory_equal(found, expected, sizeof found);
                            assert_int_equal(cvy_mesh_rank(mesh, expected), rank++);
                        }
    assert_int_equal(rank, mesh->ranks);
}

/* Members of a rank's group: all ranks, in order, whose other coordinates are the same. */
static void check_groups(const cvy_mesh *mesh, unsigned axes)
{
    for (int64_t rank = 0; rank < mesh->ranks; rank++) {
        int64_t mine[CVY_AXES], other[CVY_AXES], place = 0;
        cvy_mesh_coordinates(mesh, rank, mine);
        for (int64_t candidate = 0; candidate < mesh->ranks; candidate++) {
            cvy_mesh_coordinates(mesh, candidate, other);
            bool member = true;
            for (int axis = 0; axis < CVY_AXES; axis++) {
                member = member && (axes >> axis & 1 || mine[axis] == other[axis]);
            }
            if (member) {
                assert_int_equal(cvy_mesh_group_member(mesh, axes, rank, place), candidate);
                assert_int_equal(cvy_mesh_group_place(mesh, axes, candidate), place);
                place++;
            }
        }
        assert_int_equal(cvy_mesh_group_size(mesh, axes), place);
    }
}

static void check_peers(const cvy_mesh *mesh)
{
    for (int64_t from = 0; from < mesh->ranks; from++) {
        for (int64_t to = 0; to < mesh->ranks; to++) {
            int offset[CVY_AXES];
            cvy_mesh_offset(mesh, from, to, offset);
            assert_int_equal(cvy_mesh_peer(mesh, from, offset), to);
        }
    }
}

static const int64_t sizes[3][CVY_AXES] = {{2, 3, 1, 2, 1, 2}, {1, 1, 1, 1, 1, 1}, {1, 4, 2, 1, 3, 1}};
static const cvy_axis orders[2][CVY_AXES] = {{0, 1, 2, 3, 4, 5}, {4, 1, 5, 0, 3, 2}};

static void test_numbering_groups_and_peers_follow_the_order_of_axes(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int order = 0; order < 2; order++) {
            cvy_mesh mesh = make_mesh(sizes[i], orders[order]);
            check_numbering(&mesh, orders[order]);
            check_peers(&mesh);
            for (unsigned axes = 0; axes < 1u << CVY_AXES; axes++) {
                check_groups(&mesh, axes);
            }
        }
    }
}

/* Canonical 2,3,1,2,1,2: the rank before stage 0, and the one behind sample 2, do not exist. */
static void test_the_grid_does_not_wrap(void **state)
{
    (void)state;
    cvy_mesh mesh = make_mesh(sizes[0], NULL);
    assert_int_equal(cvy_mesh_peer(&mesh, 0, (int[CVY_AXES]){-1, 0, 0, 0, 0, 0}), -1);
    assert_int_equal(cvy_mesh_peer(&mesh, 11, (int[CVY_AXES]){0, 1, 0, 0, 0, 0}), -1);
    assert_int_equal(cvy_mesh_peer(&mesh, 11, (int[CVY_AXES]){1, -2, 0, 0, 0, -1}), 14); /* 12 + 0 + 2 + 0 */
    assert_int_equal(cvy_mesh_group_size(&mesh, CVY_AXIS_SPACE), 2);
}

static void test_meshes_of_impossible_sizes_are_refused(void **state)
{
    (void)state;
    cvy_mesh mesh;
    assert_int_equal(cvy_mesh_setup((int64_t[CVY_AXES]){1, 0, 1, 1, 1, 1}, NULL, &mesh), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "sample=0 ranks, expected at least 1");
    int64_t large = INT64_C(1) << 62;
    assert_int_equal(cvy_mesh_setup((int64_t[CVY_AXES]){1, 4, 1, large, 1, 1}, NULL, &mesh), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "with height=4611686018427387904 a mesh of more than 2147483647 ranks");
    assert_int_equal(cvy_mesh_setup((int64_t[CVY_AXES]){1, 1 << 16, 1, 1 << 15, 1, 1}, NULL, &mesh), CVY_ERR_INPUT);
}

static const int64_t image[3] = {1, 224, 256};

static cvy_strategy parse(const char *text, int64_t ranks)
{
    cvy_strategy strategy;
    cvy_status status = cvy_strategy_parse(text, ranks, image, &strategy);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return strategy;
}

/* What is written, ranks, what is printed, the family. */
static const struct {
    const char *text;
    int64_t ranks;
    const char *printed, *family;
} strings[] = {
    {"serial", 1, "serial", "serial"},
    {"data", 64, "data", "data"},
    {"data", 1, "serial", "serial"},
    {"spatial", 4, "width=4", "spatial"}, /* 224 x 256: the width is the longest */
    {"filter", 4, "filter", "filter"},
    {"channel", 4, "channel", "channel"},
    {"alternating", 4, "alternating", "alternating"},
    {"pipeline", 4, "pipeline", "pipeline"},
    {"pipeline,micro-batches=8,pipeline=gpipe", 4, "pipeline,micro-batches=8,pipeline=gpipe", "pipeline"},
    {"sample=64", 64, "data", "data"},
    {"channel=4", 4, "alternating", "alternating"},
    {"channel=4,channel-cut=filter", 4, "filter", "filter"},
    {"channel-cut=channel,channel=4", 4, "channel", "channel"},
    {"sample=4,height=2,channel=2,stage=2", 32, "sample=4,height=2,channel=2,stage=2",
     "data+spatial+alternating+pipeline"},
    {"channel=2,sample=4,channel-cut=filter", 8, "channel=2,sample=4,channel-cut=filter", "data+filter"},
    {"sample=2,height=1,channel=2,channel-cut=channel", 4, "sample=2,channel=2,channel-cut=channel", "data+channel"},
    {"sample=2,stage=1,pipeline=gpipe", 2, "data", "data"},
    {"sample=2,stage=3,pipeline=1f1b", 6, "sample=2,stage=3", "data+pipeline"},
    {"height=2,width=2,depth=2", 8, "height=2,width=2,depth=2", "spatial"},
    {"serial,micro-batches=4", 1, "serial,micro-batches=4", "serial"},
    {"auto", 17, "auto", "auto"},
};

static void test_strings_are_read_and_printed_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        char text[CVY_STRATEGY_TEXT];
        cvy_strategy strategy = parse(strings[i].text, strings[i].ranks);
        assert_string_equal(cvy_strategy_print(&strategy, text), strings[i].printed);
        cvy_strategy again = parse(text, strings[i].ranks);
        assert_memory_equal(again.mesh.size, strategy.mesh.size, sizeof again.mesh.size);
        assert_memory_equal(again.mesh.stride, strategy.mesh.stride, sizeof again.mesh.stride);
        assert_memory_equal(again.mesh.order, strategy.mesh.order, sizeof again.mesh.order);
        assert_int_equal(again.channel_cut, strategy.channel_cut);
        assert_int_equal(again.pipeline, strategy.pipeline);
        assert_int_equal(again.micro_batches, strategy.micro_batches);
        assert_int_equal(again.automatic, strategy.automatic);
        assert_string_equal(cvy_strategy_family(&strategy, text), strings[i].family);
    }
}

static void test_a_string_fills_the_strategy(void **state)
{
    (void)state;
    cvy_strategy s = parse("sample=4,height=2,channel=2,stage=2,channel-cut=filter,micro-batches=8,pipeline=gpipe", 32);
    static const int64_t size[CVY_AXES] = {2, 4, 1, 2, 1, 2};
    static const cvy_axis order[4] = {CVY_AXIS_SAMPLE, CVY_AXIS_HEIGHT, CVY_AXIS_CHANNEL, CVY_AXIS_STAGE};
    assert_memory_equal(s.mesh.size, size, sizeof size);
    assert_memory_equal(s.mesh.order, order, sizeof order);
    assert_int_equal(s.mesh.stride[CVY_AXIS_SAMPLE], 8);
    assert_int_equal(s.mesh.stride[CVY_AXIS_STAGE], 1);
    assert_int_equal(s.channel_cut, CVY_CHANNEL_CUT_FILTER);
    assert_int_equal(s.pipeline, CVY_PIPELINE_GPIPE);
    assert_int_equal(s.micro_batches, 8);
    assert_false(s.automatic);
}

/* A volume that is deepest is cut in depth; of equal extents the first. */
static void test_spatial_cuts_the_longest_axis(void **state)
{
    (void)state;
    static const struct {
        int64_t space[3];
        cvy_axis axis;
    } cases[] = {{{1, 224, 224}, CVY_AXIS_HEIGHT}, {{128, 64, 64}, CVY_AXIS_DEPTH}, {{64, 64, 64}, CVY_AXIS_DEPTH},
                 {{2, 3, 4}, CVY_AXIS_WIDTH},      {{4, 3, 5}, CVY_AXIS_WIDTH},     {{1, 1, 1}, CVY_AXIS_DEPTH}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cvy_strategy strategy;
        assert_int_equal(cvy_strategy_parse("spatial", 3, cases[i].space, &strategy), CVY_OK);
        assert_int_equal(strategy.mesh.size[cases[i].axis], 3);
    }
}

static const struct {
    const char *text;
    int64_t ranks;
    const char *message;
} mistakes[] = {
    {"dat", 4, "strategy dat: unknown strategy 'dat'; did you mean 'data'?"},
    {"sampel=4", 4, "strategy sampel=4: unknown axis or option 'sampel'; did you mean 'sample'?"},
    {"height=2,hight=2", 4, "strategy height=2,hight=2: unknown axis or option 'hight'; did you mean 'height'?"},
    {"zzzzzz", 4, "strategy zzzzzz: unknown strategy 'zzzzzz', expected auto, serial, data, spatial, filter, channel, "
                  "alternating, pipeline or axes such as sample=4,channel=2"},
    {"sample=4", 8, "strategy sample=4: sample=4 is 4 ranks, expected 8"},
    {"serial", 8, "strategy serial: serial is 1 rank, expected 8"},
    {"sample=0", 1, "strategy sample=0: sample=0, expected a whole number from 1 to 2147483647"},
    {"sample=", 1, "strategy sample=: sample=, expected a whole number from 1 to 2147483647"},
    {"sample=4x", 4, "strategy sample=4x: sample=4x, expected a whole number from 1 to 2147483647"},
    {"sample=-4", 4, "strategy sample=-4: sample=-4, expected a whole number from 1 to 2147483647"},
    {"sample=99999999999999999999", 4,
     "strategy sample=99999999999999999999: sample=99999999999999999999, expected a whole number from 1 to 2147483647"},
    {"sample=2,sample=2", 4, "strategy sample=2,sample=2: 'sample' is given twice"},
    {"sample=65536,height=65536", 4,
     "strategy sample=65536,height=65536: with height=65536 a mesh of more than 2147483647 ranks"},
    {"sample", 4, "strategy sample: 'sample' needs a value: sample=2"},
    {"data,filter", 4, "strategy data,filter: 'filter' is a whole strategy and comes first; mixes are written as axes"},
    {"data,height=2", 4, "strategy data,height=2: 'data' puts all ranks on one axis, and height is given too"},
    {"filter,channel-cut=filter", 4,
     "strategy filter,channel-cut=filter: 'filter' says how channels are cut, and channel-cut is given too"},
    {"sample=4,channel-cut=filter", 4,
     "strategy sample=4,channel-cut=filter: channel-cut without channel=N: no channels are cut"},
    {"sample=4,pipeline=gpipe", 4,
     "strategy sample=4,pipeline=gpipe: pipeline=gpipe without stage=N: there are no stages"},
    {"stage=4,pipeline=gpip", 4, "strategy stage=4,pipeline=gpip: unknown pipeline 'gpip'; did you mean 'gpipe'?"},
    {"channel=4,channel-cut=yellow", 4,
     "strategy channel=4,channel-cut=yellow: unknown channel-cut 'yellow', expected alternate or filter or channel"},
    {"", 4, "strategy : an empty word, expected a strategy, axis=N or option=VALUE"},
    {"sample=4,", 4, "strategy sample=4,: an empty word, expected a strategy, axis=N or option=VALUE"},
    {"auto,micro-batches=2", 4, "strategy auto,micro-batches=2: 'auto' chooses everything and stands alone"},
    {"data", 0, "strategy data: 0 ranks, expected 1 to 2147483647"},
};

static void test_mistakes_get_one_clear_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        cvy_strategy strategy, kept;
        memset(&strategy, 7, sizeof strategy);
        memset(&kept, 7, sizeof kept);
        assert_int_equal(cvy_strategy_parse(mistakes[i].text, mistakes[i].ranks, image, &strategy), CVY_ERR_INPUT);
        assert_string_equal(cvy_error_message(), mistakes[i].message);
        assert_memory_equal(&strategy, &kept, sizeof kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbering_groups_and_peers_follow_the_order_of_axes),
        cmocka_unit_test(test_the_grid_does_not_wrap),
        cmocka_unit_test(test_meshes_of_impossible_sizes_are_refused),
        cmocka_unit_test(test_strings_are_read_and_printed_back),
        cmocka_unit_test(test_a_string_fills_the_strategy),
        cmocka_unit_test(test_spatial_cuts_the_longest_axis),
        cmocka_unit_test(test_mistakes_get_one_clear_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
