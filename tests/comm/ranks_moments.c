/* Moments of the elements of all ranks, against two passes over them. */
#include <math.h>

#include "comm/mpi/limits.h"
#include "comm/mpi/mpi_internal.h"
#include "comm/ranks.h"

enum { TRIPLES = 40 };

/* Element i of triple t on a rank: far from 0, so that sums of squares would lose all digits; no sum is exact. */
static double element(int rank, int t, int i) { return 1e4 * (t + 1) + 0.371 * rank + 0.511 * i * i; }

/* Rank 1 has none. */
static int elements_of(int rank) { return rank == 1 ? 0 : 3 + 2 * rank; }

static void find_moments(int first, int end, int t, double *moments)
{
    double count = 0.0, sum = 0.0, squares = 0.0;
    for (int rank = first; rank < end; rank++) {
        for (int i = 0; i < elements_of(rank); i++) {
            sum += element(rank, t, i);
            count += 1.0;
        }
    }
    for (int rank = first; rank < end; rank++) {
        for (int i = 0; i < elements_of(rank); i++) {
            squares += pow(element(rank, t, i) - sum / count, 2.0);
        }
    }
    moments[0] = count;
    moments[1] = count > 0.0 ? sum / count : NAN;
    moments[2] = count > 0.0 ? squares : NAN;
}

static void check_moments(manner how)
{
    double mine[3 * TRIPLES], all[MAX_RANKS * 3 * TRIPLES], expected[3];
    const int64_t count = 3 * TRIPLES;
    for (int t = 0; t < TRIPLES; t++) {
        find_moments(world.rank, world.rank + 1, t, mine + (ptrdiff_t)3 * t);
    }
    move(world.comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = CVY_F64, .target = mine,
                                          .reduction = CVY_REDUCE_MOMENTS, .count = &count}, how);
    for (int t = 0; t < TRIPLES; t++) {
        const double *found = mine + (ptrdiff_t)3 * t;
        find_moments(0, world.count, t, expected);
        CHECK(found[0] == expected[0] && fabs(found[1] / expected[1] - 1.0) < 1e-14);
        CHECK(fabs(found[2] / expected[2] - 1.0) < 1e-8);
    }
    CHECK(cvy_comm_gather_bytes(world.comm, mine, sizeof mine, all) == CVY_OK);
    for (int rank = 0; rank < world.count; rank++) {
        CHECK(memcmp(all + (ptrdiff_t)rank * count, mine, sizeof mine) == 0);
    }
}

/* Two passes over all elements are what is expected; ranks without elements hold NaN. */
static void test_moments_are_those_of_all_elements(void **state)
{
    (void)state;
    const cvy_mpi_limits pieces = {.elements = 2, .all_reduce_bytes_per_rank = 1 << 20};
    for (int how = 0; how < MANNERS; how++) {
        check_moments((manner)how);
        cvy_mpi_set_limits(&pieces);
        check_moments((manner)how);
        cvy_mpi_set_limits(NULL);
    }
}

static void test_moments_of_nothing_are_nothing(void **state)
{
    (void)state;
    double moments[3] = {0.0, NAN, NAN};
    CHECK(cvy_comm_all_reduce(world.comm, moments, 3, CVY_F64, CVY_REDUCE_MOMENTS) == CVY_OK);
    CHECK(moments[0] == 0.0);
}

/* MPI gives the two sides to one rank as a and b, to another as b and a. */
static void test_sides_may_be_exchanged(void **state)
{
    (void)state;
    MPI_Datatype type;
    MPI_Op op;
    CHECK(cvy_mpi_make_moments(&type, &op) == CVY_OK);
    for (int i = 0; i < 100; i++) {
        const double a[3] = {3.0 + i % 4, 0.371 * i, 1.7 * i}, b[3] = {4.0, 0.613 * i * i, 0.3 * i};
        double ab[3], ba[3];
        memcpy(ab, b, sizeof ab);
        memcpy(ba, a, sizeof ba);
        CHECK(MPI_Reduce_local(a, ab, 1, type, op) == MPI_SUCCESS);
        CHECK(MPI_Reduce_local(b, ba, 1, type, op) == MPI_SUCCESS);
        CHECK(memcmp(ab, ba, sizeof ab) == 0 && ab[0] == a[0] + b[0]);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments_are_those_of_all_elements),
        cmocka_unit_test(test_moments_of_nothing_are_nothing),
        cmocka_unit_test(test_sides_may_be_exchanged),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
