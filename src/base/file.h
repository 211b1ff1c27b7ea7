/* Whole files: read with a limit, written aside, synced and renamed, so that a reader sees all of it or nothing. */
#ifndef CVY_BASE_FILE_H
#define CVY_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/**
 * Read a regular file whole. A zero byte stands behind the last.
 *
 * @param[in]  status     what a failure is to be (CVY_ERR_DATA, CVY_ERR_INPUT, …)
 * @param[out] data_out   cvy_free()
 */
cvy_status cvy_file_read(const char *path, size_t limit_bytes, cvy_status status, char **data_out, size_t *bytes_out);

/** See that cvy_file_write() could make a file of that name, before hours go into its content. Leaves no trace. */
cvy_status cvy_file_check_writable(const char *path, cvy_status status);

/** Write a file aside (PATH.tmp), sync it, rename it over @p path and sync the folder. */
cvy_status cvy_file_write(const char *path, const void *data, size_t bytes, cvy_status status);

/** As cvy_file_write(), a text, which is taken and empty then. @retval CVY_ERR_MEMORY it ran out of memory */
cvy_status cvy_file_write_text(const char *path, cvy_text *text, cvy_status status);

/** Rename a file that was written and synced aside over @p path, and sync the folder. */
cvy_status cvy_file_replace(const char *aside, const char *path, cvy_status status);

/** Sync a file or folder that is open under no descriptor of ours. */
cvy_status cvy_file_sync(const char *path, cvy_status status);

/** Make a folder and those above it. */
cvy_status cvy_folder_create(const char *path, cvy_status status);

/** Remove a folder and all in it; a missing one is fine. Never follows links. */
cvy_status cvy_folder_remove(const char *path, cvy_status status);

/** Whether there is a file of that name, and no folder; a pipe or a device is told apart by what opens it. */
bool cvy_file_exists(const char *path);
bool cvy_folder_exists(const char *path);

/** "a/b" from "a" and "b". NULL where memory is exhausted. cvy_free() */
char *cvy_path_join(const char *folder, const char *name);

#endif
