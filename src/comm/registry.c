/* The one list of communicators. */
#include <string.h>

#include "comm/comm.h"

extern const cvy_comm_kind cvy_comm_self;
#if CVY_HAVE_MPI
extern const cvy_comm_kind cvy_comm_mpi;
#endif

/* Those that a launcher may have started come first; one rank alone is what is left. */
static const cvy_comm_kind *const kinds[] = {
#if CVY_HAVE_MPI
    &cvy_comm_mpi,
#endif
    &cvy_comm_self,
};

const cvy_comm_kind *cvy_comm_kind_get(int i)
{
    return i >= 0 && i < (int)(sizeof kinds / sizeof kinds[0]) ? kinds[i] : NULL;
}
