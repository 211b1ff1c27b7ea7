/*
 * Whole files and folders. A file appears under its name by rename(2), after its bytes and before its folder's entry
 * are synced: whatever moment the power fails, the name holds the old bytes or the new ones. Sizes that the system
 * reports are hints only (files in /proc say 0): reading goes on to the end, up to the limit.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

bool cvy_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

bool cvy_folder_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *cvy_path_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    const char *slash = length && folder[length - 1] != '/' ? "/" : "";
    size_t bytes = length + strlen(name) + 2;
    char *path = cvy_calloc(bytes, 1);
    if (path) {
        snprintf(path, bytes, "%s%s%s", folder, slash, name);
    }
    return path;
}

static cvy_status fail_with_errno(cvy_status status, const char *path, const char *what)
{
    int cause = errno;
    return cvy_fail(status, "%s: %s: %s", path, what, strerror(cause));
}

/* Read one piece; 0 at the end, -1 with errno. */
static ssize_t read_some(int descriptor, void *to, size_t bytes)
{
    ssize_t got;
    do {
        got = read(descriptor, to, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Read to the end into a buffer that grows; one byte of it stays free for the final zero. */
static cvy_status read_all(int descriptor, const char *path, size_t limit, cvy_status status, char **data,
                           size_t *bytes)
{
    struct stat info;
    CVY_REQUIRE(fstat(descriptor, &info) == 0, status, "%s: %s", path, strerror(errno));
    CVY_REQUIRE(S_ISREG(info.st_mode), status, "%s: not a regular file", path);
    CVY_REQUIRE((uintmax_t)info.st_size <= limit, status, "%s: %jd bytes, expected at most %zu", path,
                (intmax_t)info.st_size, limit);
    size_t capacity = (size_t)info.st_size + 2; /* room for the zero, and for a read that sees the end */
    *data = cvy_calloc(capacity, 1);
    *bytes = 0;
    while (*data) {
        ssize_t got = read_some(descriptor, *data + *bytes, capacity - 1 - *bytes);
        if (got < 0) {
            return fail_with_errno(status, path, "cannot read");
        }
        if (got == 0) {
            return CVY_OK;
        }
        *bytes += (size_t)got;
        CVY_REQUIRE(*bytes <= limit, status, "%s: more than %zu bytes, the most that is read", path, limit);
        if (*bytes == capacity - 1) {
            char *grown = cvy_recalloc(*data, capacity, 2 * capacity, 1);
            if (!grown) {
                return CVY_ERR_MEMORY;
            }
            *data = grown;
            capacity *= 2;
        }
    }
    return CVY_ERR_MEMORY;
}

cvy_status cvy_file_read(const char *path, size_t limit_bytes, cvy_status status, char **data_out, size_t *bytes_out)
{
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CVY_REQUIRE(descriptor >= 0, status, "%s: %s", path, strerror(errno));
    char *data = NULL;
    size_t bytes = 0;
    cvy_status result = read_all(descriptor, path, limit_bytes, status, &data, &bytes);
    close(descriptor);
    if (result != CVY_OK) {
        cvy_free(data);
        return result;
    }
    data[bytes] = '\0';
    *data_out = data;
    *bytes_out = bytes;
    return CVY_OK;
}

static bool write_all(int descriptor, const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t put = write(descriptor, data, bytes);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return false;
        }
        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* Some file systems cannot sync a folder and say EINVAL: there is nothing more to do there. */
static bool sync_descriptor(int descriptor) { return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP; }

cvy_status cvy_file_sync(const char *path, cvy_status status)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail_with_errno(status, path, "cannot open to sync");
    }
    cvy_status result = sync_descriptor(descriptor) ? CVY_OK : fail_with_errno(status, path, "cannot sync");
    close(descriptor);
    return result;
}

/* Sync the folder that holds an entry. */
static cvy_status sync_parent(const char *path, cvy_status status)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return cvy_file_sync(".", status);
    }
    if (slash == path) {
        return cvy_file_sync("/", status);
    }
    char *folder = cvy_strdup(path);
    if (!folder) {
        return CVY_ERR_MEMORY;
    }
    folder[slash - path] = '\0';
    cvy_status result = cvy_file_sync(folder, status);
    cvy_free(folder);
    return result;
}

/* Create, fill and sync the file aside; what a failure leaves of it is removed by the caller. */
static cvy_status write_aside(const char *path, const void *data, size_t bytes, cvy_status status)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return fail_with_errno(status, path, "cannot create");
    }
    cvy_status result = CVY_OK;
    if (!write_all(descriptor, data, bytes) || !sync_descriptor(descriptor)) {
        result = fail_with_errno(status, path, "cannot write");
    }
    if (close(descriptor) != 0 && result == CVY_OK) {
        result = fail_with_errno(status, path, "cannot write");
    }
    return result;
}

cvy_status cvy_file_replace(const char *aside, const char *path, cvy_status status)
{
    if (rename(aside, path) != 0) {
        return fail_with_errno(status, path, "cannot rename into place");
    }
    return sync_parent(path, status);
}

cvy_status cvy_file_write(const char *path, const void *data, size_t bytes, cvy_status status)
{
    struct stat info; /* a rename over /dev/null would succeed for the administrator */
    CVY_REQUIRE(stat(path, &info) != 0 || S_ISREG(info.st_mode), status, "%s: exists and is not a regular file", path);
    size_t aside_bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(aside_bytes, 1);
    if (!aside) {
        return CVY_ERR_MEMORY;
    }
    snprintf(aside, aside_bytes, "%s.tmp", path);
    cvy_status result = write_aside(aside, data, bytes, status);
    if (result == CVY_OK) {
        result = cvy_file_replace(aside, path, status);
    }
    if (result != CVY_OK) {
        (void)unlink(aside);
    }
    cvy_free(aside);
    return result;
}

cvy_status cvy_file_write_text(const char *path, cvy_text *text, cvy_status status)
{
    size_t bytes = text->length;
    char *data = cvy_text_take(text);
    status = data ? cvy_file_write(path, data, bytes, status) : CVY_ERR_MEMORY;
    cvy_free(data);
    return status;
}

cvy_status cvy_file_check_writable(const char *path, cvy_status status)
{
    struct stat info;
    CVY_REQUIRE(stat(path, &info) != 0 || S_ISREG(info.st_mode), status, "%s: exists and is not a regular file", path);
    size_t aside_bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(aside_bytes, 1);
    if (!aside) {
        return CVY_ERR_MEMORY;
    }
    snprintf(aside, aside_bytes, "%s.tmp", path);
    int descriptor = open(aside, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    cvy_status result = descriptor >= 0 ? CVY_OK : fail_with_errno(status, path, "cannot create");
    if (descriptor >= 0) {
        close(descriptor);
        (void)unlink(aside);
    }
    cvy_free(aside);
    return result;
}

/* Make one folder, unless it is there. A new entry is synced, or what is saved below it could be lost with it. */
static cvy_status create_one(const char *path, cvy_status status)
{
    if (cvy_folder_exists(path)) {
        return CVY_OK;
    }
    if (mkdir(path, 0777) == 0) {
        return sync_parent(path, status);
    }
    if (errno == EEXIST && cvy_folder_exists(path)) { /* another process was faster */
        return CVY_OK;
    }
    return fail_with_errno(status, path, "cannot make the folder");
}

cvy_status cvy_folder_create(const char *path, cvy_status status)
{
    CVY_REQUIRE(path[0] != '\0', status, "the name of a folder is empty");
    CVY_REQUIRE(strlen(path) < PATH_MAX, status, "%.60s...: a path of %zu bytes, expected fewer than %d", path,
                strlen(path), PATH_MAX); /* before half of its folders are made */
    char *prefix = cvy_strdup(path);
    if (!prefix) {
        return CVY_ERR_MEMORY;
    }
    size_t length = strlen(prefix);
    while (length > 1 && prefix[length - 1] == '/') {
        prefix[--length] = '\0';
    }
    cvy_status result = CVY_OK;
    for (size_t i = 1; i <= length && result == CVY_OK; i++) {
        bool ends = prefix[i] == '\0' || (prefix[i] == '/' && prefix[i - 1] != '/');
        if (ends) {
            char kept = prefix[i];
            prefix[i] = '\0';
            result = create_one(prefix, status);
            prefix[i] = kept;
        }
    }
    cvy_free(prefix);
    return result;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

cvy_status cvy_folder_remove(const char *path, cvy_status status)
{
    enum { OPEN_FOLDERS = 16 };
    int result = nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    return result == 0 || errno == ENOENT ? CVY_OK : fail_with_errno(status, path, "cannot remove the folder");
}
