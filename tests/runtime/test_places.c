/* Laws of places: cores are shared out by a rule that a table shows by hand; what is slow is said in one line. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/topology.h"
#include "runtime/places.h"

enum { MOST = 6 };

/* A rank in a table: its node, the cores that it may use ("0-3,8"), the threads that it asked for; what it gets. */
typedef struct rank_row {
    int node;
    const char *cores;
    int asked;
    int threads, sharers, share, group_cores;
} rank_row;

typedef struct table {
    const char *law;
    int ranks;
    rank_row rank[MOST];
} table;

#define ON(at, may_use, wants) {.node = (at), .cores = (may_use), .asked = (wants)}

static cpu_set_t read_cores(const char *text)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') {
            last = strtol(end + 1, &end, 10);
        }
        for (long core = first; core <= last; core++) {
            CPU_SET((int)core, &cores);
        }
        text = *end == ',' ? end + 1 : end;
    }
    return cores;
}

static const table tables[] = {
    {"bound apart, each has its own", 2, {{0, "0-3", 0, 4, 1, 0, 4}, {0, "4-7", 0, 4, 1, 0, 4}}},
    {"unbound, 16 / 4", 4, {{0, "0-15", 0, 4, 4, 0, 16}, {0, "0-15", 0, 4, 4, 1, 16}, {0, "0-15", 0, 4, 4, 2, 16},
                            {0, "0-15", 0, 4, 4, 3, 16}}},
    {"16 / 3 is 5, one core is left", 3, {{0, "0-15", 0, 5, 3, 0, 16}, {0, "0-15", 0, 5, 3, 1, 16},
                                          {0, "0-15", 0, 5, 3, 2, 16}}},
    /* the first two do not meet but through the third: 8 cores / 3 */
    {"overlap through another", 3, {{0, "0-3", 0, 2, 3, 0, 8}, {0, "4-7", 0, 2, 3, 1, 8}, {0, "2-5", 0, 2, 3, 2, 8}}},
    {"bound to two sockets by turns", 4, {{0, "0-7", 0, 4, 2, 0, 8}, {0, "8-15", 0, 4, 2, 0, 8},
                                          {0, "0-7", 0, 4, 2, 1, 8}, {0, "8-15", 0, 4, 2, 1, 8}}},
    {"more ranks than cores", 3, {{0, "0-1", 0, 1, 3, 0, 2}, {0, "0-1", 0, 1, 3, 1, 2}, {0, "0-1", 0, 1, 3, 2, 2}}},
    /* two hardware threads of core 0 are core 0 twice */
    {"hardware threads of one core", 2, {{0, "0", 0, 1, 2, 0, 1}, {0, "0", 0, 1, 2, 1, 1}}},
    /* 8 / 2 is 4, of which the first may use one */
    {"no more threads than its own cores", 2, {{0, "0", 0, 1, 2, 0, 8}, {0, "0-7", 0, 4, 2, 1, 8}}},
    {"nodes share nothing", 3, {{0, "0-7", 0, 4, 2, 0, 8}, {0, "0-7", 0, 4, 2, 1, 8}, {2, "0-7", 0, 8, 1, 0, 8}}},
    {"ranks by turns on two nodes", 4, {{0, "0-3", 0, 2, 2, 0, 4}, {1, "0-7", 0, 4, 2, 0, 8},
                                        {0, "0-3", 0, 2, 2, 1, 4}, {1, "0-7", 0, 4, 2, 1, 8}}},
    {"threads that were asked for", 2, {{0, "0-7", 3, 3, 2, 0, 8}, {0, "0-7", 3, 3, 2, 1, 8}}},
    {"cores that nobody knows", 2, {{0, "", 0, 1, 1, 0, 0}, {0, "", 0, 1, 1, 0, 0}}},
};

static void fill_places(const rank_row *row, int ranks, int cores_machine, cvy_place *place)
{
    memset(place, 0, MOST * sizeof *place);
    for (int i = 0; i < ranks; i++) {
        place[i] = (cvy_place){.node = row[i].node, .asked = row[i].asked, .cores = read_cores(row[i].cores),
                               .cores_machine = cores_machine};
        snprintf(place[i].host, sizeof place[i].host, "n%d", row[i].node);
    }
    cvy_places_share(place, ranks);
}

static void test_ranks_whose_cores_overlap_share_evenly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const table *t = &tables[i];
        cvy_place place[MOST];
        fill_places(t->rank, t->ranks, 16, place);
        for (int r = 0; r < t->ranks; r++) {
            const rank_row *want = &t->rank[r];
            const cvy_place *p = &place[r];
            if (p->threads != want->threads || p->sharers != want->sharers || p->share != want->share ||
                p->group_cores != want->group_cores) {
                fail_msg("%s: rank %d has %d threads, is %d of %d on %d cores; expected %d, %d, %d, %d", t->law, r,
                         p->threads, p->share, p->sharers, p->group_cores, want->threads, want->share, want->sharers,
                         want->group_cores);
            }
        }
    }
}

/* ---- words ---- */

typedef struct wording {
    const char *text;
    int ranks, nodes, cores_machine;
    rank_row rank[MOST];
} wording;

static const wording printed[] = {
    {"4 ranks on 2 nodes x 8 threads on 32 cores", 4, 2, 16,
     {ON(0, "0-15", 0), ON(0, "0-15", 0), ON(2, "0-15", 0), ON(2, "0-15", 0)}},
    {"1 rank on 1 node x 1 thread on 1 core", 1, 1, 16, {ON(0, "5", 0)}},
    {"2 ranks on 1 node x 1 to 4 threads on 8 cores", 2, 1, 8, {ON(0, "0", 0), ON(0, "0-7", 0)}},
    {"3 ranks on 2 nodes, 15 threads on 16 cores\n"
     "n0   2 ranks x 4 threads on 8 cores\n"
     "n12  1 rank x 7 threads on 8 cores", 3, 2, 8, {ON(0, "0-7", 0), ON(0, "0-7", 0), ON(12, "0-7", 7)}},
};

static void test_places_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        const wording *w = &printed[i];
        cvy_place place[MOST];
        fill_places(w->rank, w->ranks, w->cores_machine, place);
        cvy_places places = {.ranks = w->ranks, .nodes = w->nodes, .place = place};
        cvy_text text = {0};
        cvy_places_print(&places, &text);
        assert_string_equal(text.data, w->text);
        cvy_text_destroy(&text);
    }
}

typedef struct complaint {
    cvy_launcher launcher;
    int ranks, cores_machine;
    rank_row rank[MOST];
    const char *warning[CVY_PLACES_WARNINGS]; /* NULL: no more */
} complaint;

static const complaint complaints[] = {
    /* mpirun's default with two ranks, 16 / 2 */
    {CVY_LAUNCHER_OPEN_MPI, 2, 16, {ON(0, "0", 0), ON(0, "1", 0)},
     {"each rank is bound to 1 core of 16: mpiexec --bind-to none, or --map-by slot:PE=8, gives it more"}},
    {CVY_LAUNCHER_OPEN_MPI, 1, 16, {ON(0, "0", 0)},
     {"the only rank is bound to 1 core of 16: mpiexec --bind-to none, or --map-by slot:PE=16, gives it more"}},
    {CVY_LAUNCHER_MPICH, 2, 8, {ON(0, "0", 0), ON(0, "1", 0)},
     {"each rank is bound to 1 core of 8: mpiexec -bind-to none, or -bind-to core:4, gives it more"}},
    {CVY_LAUNCHER_SLURM, 2, 8, {ON(0, "0", 0), ON(1, "0", 0)},
     {"each rank is bound to 1 core of 8: srun --cpu-bind=none, or --cpus-per-task=8, gives it more"}},
    {CVY_LAUNCHER_OTHER, 3, 8, {ON(0, "0-1", 0), ON(1, "0", 0), ON(2, "0", 0)},
     {"rank 1 on n1, like 1 other, is bound to 1 core of 8: it could have 8"}},
    /* no core is idle; or none for each rank */
    {CVY_LAUNCHER_OPEN_MPI, 2, 2, {ON(0, "0", 0), ON(0, "1", 0)}, {NULL}},
    {CVY_LAUNCHER_OPEN_MPI, 3, 5, {ON(0, "0", 0), ON(0, "1", 0), ON(0, "2", 0)}, {NULL}},
    {CVY_LAUNCHER_OPEN_MPI, 2, 8, {ON(0, "0", 0), ON(0, "1-7", 0)}, {NULL}},
    {CVY_LAUNCHER_OPEN_MPI, 4, 16, {ON(0, "0-15", 0), ON(0, "0-15", 0), ON(0, "0-15", 0), ON(0, "0-15", 0)}, {NULL}},
    /* fewer cores than threads: 16 / 2 are there, then 4 that were asked for, then no more */
    {CVY_LAUNCHER_OPEN_MPI, 2, 16, {ON(0, "0", 12), ON(0, "1", 12)},
     {"each rank is bound to 1 core of 16, fewer than its 12 threads: "
      "mpiexec --bind-to none, or --map-by slot:PE=8, gives it more"}},
    {CVY_LAUNCHER_SLURM, 2, 16, {ON(0, "0-1", 4), ON(0, "2-5", 4)},
     {"rank 0 on n0 is bound to 2 cores of 16, fewer than its 4 threads: "
      "srun --cpu-bind=none, or --cpus-per-task=4, gives it more"}},
    {CVY_LAUNCHER_SLURM, 2, 16, {ON(0, "0-7", 9), ON(0, "8-15", 9)},
     {"each rank is bound to 8 cores of 16, fewer than its 9 threads: --threads 8 fits"}},
    /* 4 ranks x 8 on 16; 1 x 9 on 8; 3 x 1 on 2 */
    {CVY_LAUNCHER_OPEN_MPI, 4, 16, {ON(0, "0-15", 8), ON(0, "0-15", 8), ON(0, "0-15", 8), ON(0, "0-15", 8)},
     {"32 threads of 4 ranks on 16 cores of n0: oversubscribed, ranks will wait for each other; --threads 4 fits"}},
    {CVY_LAUNCHER_OPEN_MPI, 2, 8, {ON(0, "0-7", 9), ON(1, "0-7", 9)},
     {"9 threads of 1 rank on 8 cores of n0, and likewise elsewhere: oversubscribed, they will wait for each other; "
      "--threads 8 fits"}},
    {CVY_LAUNCHER_OPEN_MPI, 3, 2, {ON(0, "0-1", 0), ON(0, "0-1", 0), ON(0, "0-1", 0)},
     {"3 threads of 3 ranks on 2 cores of n0: oversubscribed, ranks will wait for each other; 2 ranks fit"}},
    /* both bound to the same core of 16 */
    {CVY_LAUNCHER_OPEN_MPI, 2, 16, {ON(0, "0", 0), ON(0, "0", 0)},
     {"each rank is bound to 1 core of 16: mpiexec --bind-to none, or --map-by slot:PE=8, gives it more",
      "2 threads of 2 ranks on 1 core of n0: oversubscribed, ranks will wait for each other; 1 rank fits"}},
};

static void test_what_is_slow_is_said_in_the_words_of_the_launcher(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof complaints / sizeof complaints[0]; i++) {
        const complaint *c = &complaints[i];
        int expected = 0;
        cvy_places places = {.ranks = c->ranks, .place = cvy_calloc(MOST, sizeof *places.place)};
        assert_non_null(places.place);
        fill_places(c->rank, c->ranks, c->cores_machine, places.place);
        assert_int_equal(cvy_places_warn(&places, c->launcher), CVY_OK);
        for (; expected < CVY_PLACES_WARNINGS && c->warning[expected]; expected++) {
            assert_true(expected < places.warnings);
            assert_string_equal(places.warning[expected], c->warning[expected]);
        }
        assert_int_equal(places.warnings, expected);
        cvy_places_clear(&places);
        assert_null(places.place);
    }
}

/* Slurm's variables are in the environment of an mpiexec that runs in its job. */
static void test_launchers_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        cvy_launcher launcher;
    } later[] = {{"PMI_SIZE", CVY_LAUNCHER_MPICH}, {"SLURM_STEP_ID", CVY_LAUNCHER_SLURM},
                 {"HYDI_CONTROL_FD", CVY_LAUNCHER_MPICH}, {"OMPI_COMM_WORLD_SIZE", CVY_LAUNCHER_OPEN_MPI}};
    unsetenv("MPI_LOCALNRANKS");
    for (int i = 0; i < 4; i++) {
        unsetenv(later[i].variable);
    }
    assert_int_equal(cvy_launcher_find(), CVY_LAUNCHER_OTHER);
    for (int i = 0; i < 4; i++) {
        setenv(later[i].variable, "2", 1);
        assert_int_equal(cvy_launcher_find(), later[i].launcher);
    }
    for (int i = 0; i < 4; i++) {
        unsetenv(later[i].variable);
    }
}

/* ---- cores of one's own ---- */

/* Two domains that number their cores by turns: the second of two unbound ranks has all of the second domain. */
static void test_an_unbound_rank_has_cores_beside_each_other(void **state)
{
    (void)state;
    static const rank_row unbound[] = {ON(0, "0-7", 0), ON(0, "0-7", 0)}, apart[] = {ON(0, "0-3", 0), ON(0, "4-7", 0)},
                          unlike[] = {ON(0, "0-3", 0), ON(0, "2-7", 0)}, crowd[] = {ON(0, "0", 0), ON(0, "0", 0)};
    static const rank_row *const rows[] = {unbound, apart, unlike, crowd};
    static const char *const own[] = {"1,3,5,7", "4-7", "", ""};
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "pack:2 numa:1 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)", 1), 0);
    for (int i = 0; i < 4; i++) {
        cvy_place place[MOST];
        cpu_set_t found, expected = read_cores(own[i]);
        fill_places(rows[i], 2, 8, place);
        cvy_places places = {.ranks = 2, .nodes = 1, .place = place};
        cvy_places_find_own(&places, 1, &found);
        assert_true(CPU_EQUAL(&found, &expected));
    }
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

static void test_a_rank_alone_has_all_cores(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    cvy_topology topology;
    char host[HOST_NAME_MAX + 1] = "";
    cvy_topology_get(&topology);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(cvy_comm_open("self", &comm), CVY_OK);
    for (int asked = 0; asked <= topology.cores_machine + 1; asked += topology.cores_machine + 1) {
        cvy_places places;
        assert_int_equal(cvy_places_find(comm, asked, &places), CVY_OK);
        assert_true(places.ranks == 1 && places.nodes == 1 && places.rank == 0);
        assert_int_equal(strncmp(places.place[0].host, host, CVY_HOST_BYTES - 1), 0);
        assert_int_equal(places.place[0].threads, asked ? asked : topology.cores);
        assert_true(CPU_EQUAL(&places.own, &topology.bound));
        assert_int_equal(places.warnings > 0, asked || (topology.cores == 1 && topology.cores_machine > 1));
        cvy_places_clear(&places);
    }
    cvy_comm_close(&comm);
}

/* Whichever allocation fails: a status, empty places, nothing kept. */
static void test_no_memory_leaves_nothing(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    assert_int_equal(cvy_comm_open("self", &comm), CVY_OK);
    for (int i = 0; status != CVY_OK; i++) {
        cvy_places places;
        cvy_memory_fail_after(i);
        status = cvy_places_find(comm, 4096, &places);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || (status == CVY_ERR_MEMORY && !places.place && !places.warnings && i < 100));
        cvy_places_clear(&places);
    }
    cvy_comm_close(&comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_whose_cores_overlap_share_evenly),
        cmocka_unit_test(test_places_in_words),
        cmocka_unit_test(test_what_is_slow_is_said_in_the_words_of_the_launcher),
        cmocka_unit_test(test_launchers_are_told_apart),
        cmocka_unit_test(test_an_unbound_rank_has_cores_beside_each_other),
        cmocka_unit_test(test_a_rank_alone_has_all_cores),
        cmocka_unit_test(test_no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
