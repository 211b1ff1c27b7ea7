/* Places of as many ranks as mpiexec starts, on machines made up for hwloc: what each tells, all others know. */
#include "comm/ranks.h"
#include "runtime/places.h"

static void find_on(const char *machine, int asked, cvy_places *places_out)
{
    CHECK(setenv("HWLOC_SYNTHETIC", machine, 1) == 0);
    CHECK(cvy_places_find(world.comm, asked, places_out) == CVY_OK);
    CHECK(unsetenv("HWLOC_SYNTHETIC") == 0);
    CHECK(places_out->ranks == world.count && places_out->rank == world.rank && places_out->nodes == 1);
}

static bool has_cores(const cpu_set_t *cores, int first, int count)
{
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, cores) == (core >= first && core < first + count)) {
            return false;
        }
    }
    return true;
}

/* 8 cores that all may use: 8, 4, 2 and 2 for each of 1 to 4 ranks, one part behind the other. */
static void test_unbound_ranks_divide_the_cores(void **state)
{
    (void)state;
    static const int each[] = {8, 4, 2, 2};
    cvy_places places;
    find_on("pack:2 numa:1 core:4 pu:1", 0, &places);
    for (int i = 0; i < world.count; i++) {
        const cvy_place *p = &places.place[i];
        CHECK(p->threads == each[world.count - 1] && p->sharers == world.count && p->share == i);
        CHECK(p->group_cores == 8 && p->cores_machine == 8 && has_cores(&p->cores, 0, 8));
        CHECK(strcmp(p->host, places.place[0].host) == 0 && p->host[0]);
    }
    CHECK(has_cores(&places.own, world.rank * each[world.count - 1], each[world.count - 1]));
    CHECK(places.warnings == 0);
    cvy_places_clear(&places);
}

/* Rank i of a machine of 2 + i cores: every rank knows which they are. */
static void test_each_rank_tells_its_own_cores(void **state)
{
    (void)state;
    char machine[32];
    cvy_places places;
    snprintf(machine, sizeof machine, "numa:1 core:%d pu:1", 2 + world.rank);
    find_on(machine, 0, &places);
    for (int i = 0; i < world.count; i++) {
        const cvy_place *p = &places.place[i];
        CHECK(has_cores(&p->cores, 0, 2 + i) && p->cores_machine == 2 + i);
        CHECK(p->group == 0 && p->group_cores == 1 + world.count);
    }
    cvy_places_clear(&places);
}

/* 8 threads each on 8 cores are too many for more than one rank, and each rank has the same words. */
static void test_all_ranks_have_the_warning(void **state)
{
    (void)state;
    cvy_places places;
    char line[256];
    find_on("numa:1 core:8 pu:1", 8, &places);
    snprintf(line, sizeof line, "%d threads of %d ranks on 8 cores of %s: oversubscribed, ranks will wait for each "
             "other; --threads %d fits", 8 * world.count, world.count, places.place[0].host, 8 / world.count);
    CHECK(places.warnings == (world.count > 1));
    CHECK(world.count == 1 || strcmp(places.warning[0], line) == 0);
    cvy_places_clear(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unbound_ranks_divide_the_cores),
        cmocka_unit_test(test_each_rank_tells_its_own_cores),
        cmocka_unit_test(test_all_ranks_have_the_warning),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
