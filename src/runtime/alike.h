/* Ranks that were asked for different things would go different ways, and wait for each other: it is said at once. */
#ifndef CVY_RUNTIME_ALIKE_H
#define CVY_RUNTIME_ALIKE_H

#include "comm/comm.h"
#include "convoy/train.h"
#include "data/data.h"
#include "runtime/groups.h"

/**
 * Compare the model and the options that decide what is done, rank by rank. Collective; all ranks return the same.
 *
 * @retval CVY_ERR_INPUT the first rank that differs from the first, and in what
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_alike_options(cvy_comm *comm, const cvy_model *model, const cvy_train_options *options);

/** The same of the data set that each rank has opened, perhaps on a disk of its own. @retval CVY_ERR_DATA */
cvy_status cvy_alike_data(cvy_comm *comm, const cvy_data *data);

/**
 * See that the members of each group move the same, in the same order. Collective; this rank's groups alone are looked
 * at, so what one rank finds the others have yet to hear (cvy_comm_agree()).
 *
 * @retval CVY_ERR_RANK a member has other steps: its plan is another one
 */
cvy_status cvy_alike_order(const cvy_groups *groups, const cvy_plan *plan);

#endif
