/* What a rank takes beside its tensors: the program, its libraries, what they keep, those of messages among them. */
#ifndef CVY_CALIBRATE_PROCESS_H
#define CVY_CALIBRATE_PROCESS_H

#include "comm/comm.h"

/**
 * Measure it, by an iteration of LeNet-5 on all ranks: the largest resident set of a rank, without its tensors and what
 * each of its steps takes. Takes a tenth of a second. Collective; before the process has taken more than that.
 *
 * @param[in]  threads    of a rank; 0: as many as a training takes
 * @param[out] bytes_out  0 where the process had been larger before; equal on all ranks
 * @retval CVY_ERR_MEMORY, CVY_ERR_RANK
 */
cvy_status cvy_process_measure(cvy_comm *comm, int threads, int64_t *bytes_out);

#endif
