/* state.json of a checkpoint folder. For the files of the checkpoint alone: its users see runtime/checkpoint.h. */
#ifndef CVY_RUNTIME_CHECKPOINT_RECORD_H
#define CVY_RUNTIME_CHECKPOINT_RECORD_H

#include "runtime/checkpoint.h"

/** The tensor files of a checkpoint. */
enum { CVY_CHECKPOINT_MODEL, CVY_CHECKPOINT_OPTIMIZER, CVY_CHECKPOINT_FILES };

/** "model.safetensors", "optimizer.safetensors". */
extern const char *const cvy_checkpoint_file_name[CVY_CHECKPOINT_FILES];

/** What is known of one tensor file. */
typedef struct cvy_checkpoint_file {
    bool present;
    int64_t bytes;
    uint64_t checksum;   /**< XXH3 64 of the whole file */
} cvy_checkpoint_file;

typedef struct cvy_checkpoint_record {
    cvy_position position;
    cvy_checkpoint_file file[CVY_CHECKPOINT_FILES];
} cvy_checkpoint_record;

/** Write state.json into a folder. */
cvy_status cvy_checkpoint_record_save(const char *folder, const cvy_checkpoint_record *record);

/** Read state.json of a folder. @retval CVY_ERR_CHECKPOINT missing, damaged, or of another schema */
cvy_status cvy_checkpoint_record_load(const char *folder, cvy_checkpoint_record *record_out);

/** As cvy_checkpoint_record_load(), and check size and checksum of every file that it lists. */
cvy_status cvy_checkpoint_verify(const char *folder, cvy_checkpoint_record *record_out);

#endif
