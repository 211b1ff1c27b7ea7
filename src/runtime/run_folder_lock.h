/*
 * One process trains in a folder: its file `lock` is held from before the first look at the checkpoints to the last
 * line of metrics. The kernel lets go of it when the process ends, however it ends, so a killed run can be resumed at
 * once.
 */
#ifndef CVY_RUNTIME_RUN_FOLDER_LOCK_H
#define CVY_RUNTIME_RUN_FOLDER_LOCK_H

#include "base/error.h"

/**
 * Take the lock of a folder, making its file where there is none, and note in it who holds it.
 *
 * Where the file system knows no locks (some parallel ones are mounted so) the answer is CVY_OK: nobody is kept out.
 *
 * @param[in]  folder         exists
 * @param[out] descriptor_out to be given to cvy_run_folder_unlock(); untouched on failure
 * @retval CVY_ERR_INPUT      another process has it; the message names process and host where they are known
 * @retval CVY_ERR_IO         the file cannot be made or opened
 * @retval CVY_ERR_MEMORY     no memory for its path
 */
cvy_status cvy_run_folder_lock(const char *folder, int *descriptor_out);

/** Let go of a lock, and set its descriptor to -1; -1 is fine. The file stays: removing it would let two in. */
void cvy_run_folder_unlock(int *descriptor);

#endif
