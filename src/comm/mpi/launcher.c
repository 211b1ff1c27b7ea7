/*
 * What launchers tell in the environment. A program that stands on another MPI than the launcher's is started as often
 * as was asked for, and each process believes to be alone: the variables know better.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "comm/mpi/mpi_internal.h"

/* A variable that holds the count of ranks, and what has to be set beside it for that to be so. */
typedef struct launcher {
    const char *ranks;
    const char *beside[2];
} launcher;

/*
 * The first that is there decides: an mpiexec within Slurm starts its own helpers by srun, whose counts are of helpers.
 * Slurm's variables also stand in a batch script, which is no step; a step's own count comes before the job's.
 */
static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", {NULL}},
    {"PMI_SIZE", {NULL}},
    {"SLURM_STEP_NUM_TASKS", {"SLURM_STEP_ID", "SLURM_PROCID"}},
    {"SLURM_NTASKS", {"SLURM_STEP_ID", "SLURM_PROCID"}},
};

/* 0 where the text is no count. */
static int read_count(const char *text)
{
    char *end;
    errno = 0;
    long count = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && count > 0 && count <= INT_MAX ? (int)count : 0;
}

static bool is_set(const char *name) { return !name || getenv(name); }

int cvy_mpi_find_ranks(const char **variable_out)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *l = &launchers[i];
        const char *text = getenv(l->ranks);
        int ranks = text && is_set(l->beside[0]) && is_set(l->beside[1]) ? read_count(text) : 0;
        if (ranks > 0) {
            *variable_out = l->ranks;
            return ranks;
        }
    }
    return 0;
}

bool cvy_mpi_is_started(void)
{
    const char *variable;
    int ranks = cvy_mpi_find_ranks(&variable);
    return ranks > 1 || (ranks == 0 && getenv("PMIX_RANK"));
}
