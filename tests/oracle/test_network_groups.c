/* Where groups lie, against every rank of meshes small enough to look at; laws over random machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "network_machine.h"

enum { MOST_RANKS = 4096 };

static cvy_network network;
static uint64_t seed = 1;

/* 0 to n - 1, by a generator of its own (Knuth's MMIX). */
static int64_t draw(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static double draw_figure(double least, double most) { return least * pow(most / least, (double)draw(1000) / 999); }

static cvy_machine draw_machine(const int *endpoints, int choices)
{
    cvy_machine machine = {.name = "random", .levels = 2 + (int)draw(3)};
    int64_t devices = 1;
    int border = (int)draw(machine.levels - 1);
    for (int i = 0; i < machine.levels; i++) {
        int count = endpoints[draw(choices)];
        devices *= count;
        machine.level[i] = (cvy_level){.name = "level", .endpoints = count, .devices = devices,
                                       .latency_s = draw_figure(1e-6, 1e-3), .bandwidth_Bps = draw_figure(1e8, 1e11),
                                       .ports = 1 + (int)draw(9), .rails = 1 + (int)draw(4),
                                       .oversubscription = 1 + (double)draw(3)};
        machine.devices_per_node = i == border ? (int)devices : machine.devices_per_node;
    }
    machine.nodes = (int)(devices / machine.devices_per_node);
    return machine;
}

static bool draw_mesh(const int *sizes, int choices, int64_t most, cvy_mesh *mesh_out)
{
    int64_t size[CVY_AXES], ranks = 1;
    cvy_axis order[CVY_AXES];
    for (int i = 0; i < CVY_AXES; i++) {
        size[i] = draw(3) ? sizes[draw(choices)] : 1;
        ranks *= size[i];
        order[i] = (cvy_axis)i;
    }
    for (int i = CVY_AXES - 1; i > 0; i--) {
        int64_t j = draw(i + 1);
        cvy_axis other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    return ranks <= most && ranks > 1 && cvy_mesh_setup(size, order, mesh_out) == CVY_OK;
}

/* ---- by looking at every rank ---- */

/* Of the groups along some axes. */
typedef struct seen {
    int64_t members;    /* in the fullest domain of a level */
    int64_t domains;    /* of the group that touches most */
    int64_t flows;      /* groups that reach out of a domain, where they are most */
    int64_t ranks_out;  /* their ranks in it, where they are most */
} seen;

static int64_t group_of(const cvy_mesh *mesh, unsigned axes, int64_t rank)
{
    int64_t coordinates[CVY_AXES];
    cvy_mesh_coordinates(mesh, rank, coordinates);
    for (int i = 0; i < CVY_AXES; i++) {
        coordinates[i] = axes & CVY_AXIS_BIT(i) ? 0 : coordinates[i];
    }
    return cvy_mesh_rank(mesh, coordinates); /* its first member */
}

static seen look(const cvy_mesh *mesh, unsigned axes, int64_t devices)
{
    static int64_t group[MOST_RANKS], here[MOST_RANKS], touched[MOST_RANKS];
    int64_t size = cvy_mesh_group_size(mesh, axes);
    seen s = {0};
    for (int64_t i = 0; i < mesh->ranks; i++) {
        group[i] = group_of(mesh, axes, i);
        touched[i] = 0;
    }
    for (int64_t first = 0; first < mesh->ranks; first += devices) {
        int64_t end = first + devices < mesh->ranks ? first + devices : mesh->ranks, flows = 0, ranks_out = 0;
        for (int64_t i = first; i < end; i++) {
            here[group[i]] = 0;
        }
        for (int64_t i = first; i < end; i++) {
            int64_t count = ++here[group[i]];
            s.members = count > s.members ? count : s.members;
            touched[group[i]] += count == 1;
        }
        for (int64_t i = first; i < end; i++) {
            ranks_out += here[group[i]] < size;
        }
        for (int64_t i = first; i < end; i++) {
            flows += here[group[i]] > 0 && here[group[i]] < size;
            here[group[i]] = 0;
        }
        s.flows = flows > s.flows ? flows : s.flows;
        s.ranks_out = ranks_out > s.ranks_out ? ranks_out : s.ranks_out;
    }
    for (int64_t i = 0; i < mesh->ranks; i++) {
        s.domains = touched[i] > s.domains ? touched[i] : s.domains;
    }
    return s;
}

static int64_t devices_of(const cvy_machine *machine, int level)
{
    return level < 0 ? 1 : machine->level[level].devices;
}

static cvy_network_span narrow(const cvy_machine *machine, const cvy_mesh *mesh, unsigned axes, int first, int last)
{
    cvy_network_span span = {.Bps = {INFINITY}, .all_Bps = {INFINITY}};
    for (int i = first; i <= last; i++) {
        const cvy_level *level = &machine->level[i];
        seen s = look(mesh, axes, devices_of(machine, i - 1));
        double rails = level->rails < level->ports ? level->rails : level->ports;
        double passing = level->ports / level->oversubscription;
        span.Bps[0] = fmin(span.Bps[0], fmin(rails, passing / (double)s.flows) * level->bandwidth_Bps);
        span.all_Bps[0] = fmin(span.all_Bps[0], fmin(rails, passing / (double)s.ranks_out) * level->bandwidth_Bps);
    }
    return span;
}

/* Groups of one size for every rank that fit: borders of domains are borders of runs. */
static bool is_nested(const cvy_machine *machine, const cvy_mesh *mesh)
{
    for (int i = 0; i < machine->levels; i++) {
        int64_t devices = machine->level[i].devices;
        for (int axis = 0; axis < CVY_AXES; axis++) {
            int64_t stride = mesh->stride[axis], block = stride * mesh->size[axis];
            bool starts = devices % stride == 0 || stride % devices == 0;
            bool ends = devices % block == 0 || block % devices == 0;
            if (devices < mesh->ranks && !(starts && ends)) {
                return false;
            }
        }
    }
    return true;
}

static void judge_group(const cvy_machine *machine, const cvy_mesh *mesh, unsigned axes, bool nested)
{
    const cvy_network_group *group = cvy_network_find_group(&network, axes);
    int64_t size = cvy_mesh_group_size(mesh, axes);
    assert_int_equal(group->ranks, size);
    if (size == 1) {
        assert_int_equal(group->level, -1);
        return;
    }
    int level = 0;
    while (look(mesh, axes, devices_of(machine, level)).domains > 1) {
        level++;
    }
    assert_true(nested ? group->level == level : group->level >= level);
    int split = group->level < network.border ? group->level : network.border;
    seen inside = look(mesh, axes, devices_of(machine, split - 1));
    cvy_network_span outer = narrow(machine, mesh, axes, split, group->level);
    if (nested) {
        assert_int_equal(group->domain_ranks, inside.members);
        assert_int_equal(group->domains, inside.domains);
        assert_seconds(group->outer.Bps[0], outer.Bps[0]);
        assert_seconds(group->outer.all_Bps[0], outer.all_Bps[0]);
        if (inside.members > 1) {
            cvy_network_span inner = narrow(machine, mesh, axes, 0, group->inner_level);
            assert_true(look(mesh, axes, devices_of(machine, group->inner_level)).members == inside.members);
            assert_seconds(group->inner.Bps[0], inner.Bps[0]);
            assert_seconds(group->inner.all_Bps[0], inner.all_Bps[0]);
        }
    } else { /* never more than there is */
        assert_true(group->outer.Bps[0] <= outer.Bps[0] * (1 + 1e-12));
        assert_true(group->outer.all_Bps[0] <= outer.all_Bps[0] * (1 + 1e-12));
    }
}

static int judge_meshes(const int *sizes, int choices, int tries)
{
    int nested = 0;
    for (int i = 0; i < tries; i++) {
        cvy_machine machine = draw_machine(sizes, choices);
        cvy_mesh mesh;
        int64_t devices = cvy_machine_devices(&machine);
        if (!draw_mesh(sizes, choices, devices < MOST_RANKS ? devices : MOST_RANKS, &mesh)) {
            continue;
        }
        assert_int_equal(cvy_network_setup(&machine, &mesh, &network), CVY_OK);
        bool fits = is_nested(&machine, &mesh);
        nested += fits;
        for (unsigned axes = 0; axes < 1u << CVY_AXES; axes += 1 + (unsigned)draw(8)) {
            judge_group(&machine, &mesh, axes, fits);
        }
    }
    return nested;
}

static void test_groups_lie_where_every_rank_says(void **state)
{
    (void)state;
    static const int powers[] = {2, 2, 2, 4, 4, 8}, any[] = {2, 3, 4, 5, 6, 7, 12};
    assert_true(judge_meshes(powers, 6, 400) > 100);
    assert_true(judge_meshes(any, 7, 400) < 300);
}

/* 8 groups of 3 neighbours on nodes of 4: ranks 4 to 7 are of two groups, and both reach out. */
static void test_three_ranks_a_group_four_a_node(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    cvy_mesh mesh = make_mesh(8, 1, 1, 3);
    assert_int_equal(cvy_network_setup(&machine, &mesh, &network), CVY_OK);
    const cvy_network_group *channel = cvy_network_find_group(&network, CHANNEL);
    assert_true(channel->level == 1 && channel->domains == 2 && channel->domain_ranks == 2);
    assert_true(channel->outer.flows == 2);
    const cvy_network_group *sample = cvy_network_find_group(&network, SAMPLE); /* 0 3 | 6 | 9 | 12 15 | … */
    assert_true(sample->domain_ranks == 2 && sample->outer.flows == 3 && sample->level == 1);
}

/* ---- laws ---- */

static void add_rules(cvy_machine *machine)
{
    for (int kind = 0; kind < CVY_COLLECTIVE_POINT_TO_POINT && draw(2); kind++) {
        int algorithm = (int)draw(CVY_ALGORITHM_NCCL + 1); /* those behind it are no laws */
        if (algorithm < CVY_ALGORITHM_NCCL && cvy_algorithm_does((cvy_algorithm)algorithm, (cvy_collective)kind)) {
            cvy_collective_rule *rule = add_rule(machine, (cvy_collective)kind, algorithm);
            rule->latency_s = draw(2) ? draw_figure(1e-6, 1e-3) : 0;
            rule->call_s = draw(2) ? 1e-5 : 0;
        }
    }
    machine->execution.leader_broadcast = draw(2);
    machine->execution.serial_halos = draw(2);
    machine->execution.host_halos = draw(2);
}

static double price(const cvy_machine *machine, const cvy_mesh *mesh, unsigned axes, int kind, double bytes)
{
    cvy_network_cost cost;
    assert_int_equal(cvy_network_setup(machine, mesh, &network), CVY_OK);
    if (kind < CVY_COLLECTIVE_POINT_TO_POINT) {
        cvy_network_request request = {.collective = (cvy_collective)kind, .axes = axes, .bytes = bytes,
                                       .traffic = CVY_TRAFFIC_SPACE, .leaders = kind == 0 && bytes > 1e5};
        cvy_network_estimate_collective(&network, &request, &cost);
    } else {
        cvy_message message[3] = {{.bytes = (int64_t)bytes}, {.bytes = (int64_t)bytes, .receive = true},
                                  {.bytes = (int64_t)(bytes / 2)}};
        for (int axis = 0; axis < CVY_AXES; axis++) {
            int step = axes & CVY_AXIS_BIT(axis) && mesh->size[axis] > 1;
            message[0].peer_offset[axis] = message[1].peer_offset[axis] = step;
            message[2].peer_offset[axis] = -step;
        }
        cvy_network_estimate_messages(&network, message, 3, CVY_TRAFFIC_SPACE, &cost);
    }
    assert_true(cost.seconds >= 0 && isfinite(cost.seconds));
    return cost.seconds;
}

/* More bandwidth, ports or rails are never slower, more bytes never faster. */
static void test_more_bandwidth_is_never_slower(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 4, 6, 8};
    int judged = 0;
    for (int i = 0; i < 4000; i++) {
        cvy_machine machine = draw_machine(sizes, 5);
        cvy_mesh mesh;
        if (!draw_mesh(sizes, 5, cvy_machine_devices(&machine), &mesh)) {
            continue;
        }
        add_rules(&machine);
        unsigned axes = (unsigned)draw(1 << CVY_AXES);
        int kind = (int)draw(CVY_COLLECTIVE_COUNT);
        double bytes = draw_figure(1, 1e9), before_s = price(&machine, &mesh, axes, kind, bytes);
        assert_true((before_s > 0) == (cvy_mesh_group_size(&mesh, axes) > 1));
        assert_true(price(&machine, &mesh, axes, kind, bytes * 1.5) >= before_s);
        cvy_level *level = &machine.level[draw(machine.levels)];
        level->bandwidth_Bps *= 1.7;
        double after_s = price(&machine, &mesh, axes, kind, bytes);
        assert_true(after_s <= before_s * (1 + 1e-12));
        level->ports++;
        double more_s = price(&machine, &mesh, axes, kind, bytes);
        assert_true(more_s <= after_s * (1 + 1e-12));
        level->rails++;
        assert_true(price(&machine, &mesh, axes, kind, bytes) <= more_s * (1 + 1e-12));
        judged++;
    }
    assert_true(judged > 1000);
}

/* 100,000 ranks, 4 a node: 4 rings of 25,000 by 2 links of a node, and by 8 of a leaf. */
static void test_a_hundred_thousand_ranks(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    machine.level[2].endpoints = 2000;
    machine.level[2].devices = 128000;
    machine.nodes = 32000;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING);
    cvy_mesh mesh = make_mesh(25000, 1, 1, 4);
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE, .bytes = 25e6};
    cvy_network_cost cost;
    assert_int_equal(cvy_network_setup(&machine, &mesh, &network), CVY_OK);
    for (int i = 0; i < 100000; i++) { /* were it by ranks, this would not end */
        cvy_network_estimate_collective(&network, &request, &cost);
    }
    assert_seconds(cost.seconds, 2 * 24999 * (20e-6 + 1000 / 0.5e9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_lie_where_every_rank_says),
        cmocka_unit_test(test_three_ranks_a_group_four_a_node),
        cmocka_unit_test(test_more_bandwidth_is_never_slower),
        cmocka_unit_test(test_a_hundred_thousand_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
