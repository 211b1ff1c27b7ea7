/*
 * Ranks joined by MPI: Open MPI and MPICH alike, by what MPI 3.1 has. One thread calls, so MPI is asked for no more
 * than that (FUNNELED): other threads compute. With more, each call would take a lock; and the one call that may come
 * from a second thread, MPI_Abort, must not wait for a lock that a rank which is stuck holds.
 */
#include <string.h>

#include "base/memory.h"
#include "comm/mpi/mpi_internal.h"

cvy_status cvy_mpi_check(int code, const char *what)
{
    if (code == MPI_SUCCESS) {
        return CVY_OK;
    }
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, words, &length);
    words[strcspn(words, "\n")] = '\0';
    return cvy_fail(CVY_ERR_RANK, "%s: %s", what, words);
}

/* ---- groups ---- */

static void close_group(void *state)
{
    cvy_mpi_group *g = state;
    if (g->is_world && g->moments != MPI_DATATYPE_NULL) {
        MPI_Type_free(&g->moments);
    }
    if (g->is_world && g->merge_moments != MPI_OP_NULL) {
        MPI_Op_free(&g->merge_moments);
    }
    if (g->exchanges != MPI_COMM_NULL) {
        MPI_Comm_free(&g->exchanges);
    }
    if (g->comm != MPI_COMM_NULL) {
        MPI_Comm_free(&g->comm);
    }
    if (g->is_starter) {
        MPI_Finalize();
    }
    cvy_free(g);
}

/* Fill in a group whose `comm` is there. */
static cvy_status finish_group(cvy_mpi_group *g)
{
    CVY_TRY(cvy_mpi_check(MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN), "a handler of errors"));
    CVY_TRY(cvy_mpi_check(MPI_Comm_dup(g->comm, &g->exchanges), "a second communicator"));
    CVY_TRY(cvy_mpi_check(MPI_Comm_rank(g->comm, &g->rank), "the rank"));
    return cvy_mpi_check(MPI_Comm_size(g->comm, &g->ranks), "the count of ranks");
}

static cvy_mpi_group *create_group(void)
{
    cvy_mpi_group *g = cvy_calloc(1, sizeof *g);
    if (g) {
        *g = (cvy_mpi_group){.comm = MPI_COMM_NULL, .exchanges = MPI_COMM_NULL, .moments = MPI_DATATYPE_NULL,
                             .merge_moments = MPI_OP_NULL};
    }
    return g;
}

/* Make a group of what a split of @p parent gave. */
static cvy_status wrap_group(const cvy_mpi_group *parent, int code, MPI_Comm comm, void **group_out)
{
    CVY_TRY(cvy_mpi_check(code, "a group of ranks"));
    cvy_mpi_group *g = create_group();
    if (!g) {
        MPI_Comm_free(&comm);
        return CVY_ERR_MEMORY;
    }
    g->comm = comm;
    g->moments = parent->moments;
    g->merge_moments = parent->merge_moments;
    cvy_status status = finish_group(g);
    if (status != CVY_OK) {
        close_group(g);
        return status;
    }
    *group_out = g;
    return CVY_OK;
}

static cvy_status split(void *state, int color, int key, void **group_out)
{
    const cvy_mpi_group *g = state;
    MPI_Comm comm = MPI_COMM_NULL;
    int code = MPI_Comm_split(g->comm, color, key, &comm);
    return wrap_group(g, code, comm, group_out);
}

static cvy_status split_node(void *state, void **group_out)
{
    const cvy_mpi_group *g = state;
    MPI_Comm comm = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(g->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    return wrap_group(g, code, comm, group_out);
}

/* ---- the run's ranks ---- */

/* Start MPI, unless a program that Convoy is part of has done so. */
static cvy_status start(bool *is_starter_out)
{
    int started, ended, level;
    CVY_TRY(cvy_mpi_check(MPI_Initialized(&started), "MPI's state"));
    CVY_TRY(cvy_mpi_check(MPI_Finalized(&ended), "MPI's state"));
    CVY_REQUIRE(!ended, CVY_ERR_RANK, "MPI has been ended in this process, and cannot be started again");
    if (!started) {
        CVY_TRY(cvy_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "the start of MPI"));
        *is_starter_out = true;
        CVY_REQUIRE(level >= MPI_THREAD_FUNNELED, CVY_ERR_RANK, "this MPI takes no program with threads");
    }
    return CVY_OK;
}

static cvy_status check_ranks(const cvy_mpi_group *world)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    const char *variable;
    int length = 0;
    int said = cvy_mpi_find_ranks(&variable);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    CVY_REQUIRE(said == 0 || said == world->ranks, CVY_ERR_RANK,
                "the launcher started %d ranks (%s), but MPI joined %d: it is not the launcher of the MPI that Convoy "
                "was built with (%s)", said, variable, world->ranks, library);
    return CVY_OK;
}

static cvy_status open_world(void **state_out)
{
    cvy_mpi_group *g = create_group();
    if (!g) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status;
    g->is_world = true;
    CVY_TRY_GOTO(status, done, start(&g->is_starter));
    CVY_TRY_GOTO(status, done, cvy_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &g->comm), "the ranks of the run"));
    CVY_TRY_GOTO(status, done, finish_group(g));
    CVY_TRY_GOTO(status, done, check_ranks(g));
    CVY_TRY_GOTO(status, done, cvy_mpi_make_moments(&g->moments, &g->merge_moments));
    *state_out = g;
    g = NULL;
done:
    if (g) {
        close_group(g);
    }
    return status;
}

static int get_rank(const void *state) { return ((const cvy_mpi_group *)state)->rank; }
static int get_ranks(const void *state) { return ((const cvy_mpi_group *)state)->ranks; }

static void abandon(void *state, int exit_code)
{
    (void)state;
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

extern const cvy_comm_kind cvy_comm_mpi;
const cvy_comm_kind cvy_comm_mpi = {.name = "mpi",
                                    .help = "the ranks that mpiexec, or its like, has started",
                                    .is_started = cvy_mpi_is_started,
                                    .open = open_world,
                                    .close = close_group,
                                    .rank = get_rank,
                                    .ranks = get_ranks,
                                    .split = split,
                                    .split_node = split_node,
                                    .create = cvy_mpi_transfer_create,
                                    .destroy = cvy_mpi_transfer_destroy,
                                    .run = cvy_mpi_transfer_run,
                                    .begin = cvy_mpi_transfer_begin,
                                    .test = cvy_mpi_transfer_test,
                                    .wait = cvy_mpi_transfer_wait,
                                    .abandon = abandon};
