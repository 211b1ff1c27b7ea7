/*
 * Moments of all ranks' elements from those of each rank's: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae
 * and a pairwise algorithm for computing sample variances", 1979. MPI may give the two sides in either order, and to
 * one rank in another than to the next; so they are put in order first, and all ranks get the same bits.
 */
#include "comm/mpi/mpi_internal.h"

typedef struct moments {
    double count, mean, squares; /* of differences from the mean */
} moments;

/* Any order that is of the values alone. */
static bool comes_first(const moments *a, const moments *b)
{
    if (a->count != b->count) {
        return a->count > b->count;
    }
    return a->mean != b->mean ? a->mean > b->mean : a->squares > b->squares;
}

static moments merge_two(const moments *a, const moments *b)
{
    if (a->count == 0.0 || b->count == 0.0) { /* whatever else they hold */
        return a->count != 0.0 ? *a : b->count != 0.0 ? *b : (moments){0.0, 0.0, 0.0};
    }
    if (!comes_first(a, b)) {
        const moments *other = a;
        a = b;
        b = other;
    }
    double count = a->count + b->count;
    double apart = b->mean - a->mean;
    double share = b->count / count;
    return (moments){count, a->mean + apart * share, a->squares + b->squares + apart * apart * (a->count * share)};
}

static void merge(void *in, void *in_out, int *length, MPI_Datatype *type)
{
    (void)type;
    const moments *a = in;
    moments *b = in_out;
    for (int i = 0; i < *length; i++) {
        b[i] = merge_two(&a[i], &b[i]);
    }
}

cvy_status cvy_mpi_make_moments(MPI_Datatype *type_out, MPI_Op *op_out)
{
    CVY_TRY(cvy_mpi_check(MPI_Type_contiguous(3, MPI_DOUBLE, type_out), "a type of moments"));
    CVY_TRY(cvy_mpi_check(MPI_Type_commit(type_out), "a type of moments"));
    return cvy_mpi_check(MPI_Op_create(merge, 1, op_out), "an operation on moments");
}
