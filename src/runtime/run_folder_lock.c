/* flock(2) on FOLDER/lock, whose text is "PID HOST" of the one that took it last. */
#include "runtime/run_folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { HOST_TEXT = 65, HOLDER_TEXT = 128 };

/* What a read of the file says of its holder; words that fit where it says nothing. */
static void print_holder(int descriptor, char holder[HOLDER_TEXT])
{
    char text[HOLDER_TEXT], host[HOST_TEXT];
    long process;
    ssize_t bytes = pread(descriptor, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    if (sscanf(text, "%ld %64s", &process, host) == 2) {
        snprintf(holder, HOLDER_TEXT, "process %ld on %s", process, host);
    } else {
        snprintf(holder, HOLDER_TEXT, "another process");
    }
}

/* For whoever comes meanwhile; that it cannot be written does not matter. */
static void note_holder(int descriptor)
{
    char host[HOST_TEXT] = "", text[HOLDER_TEXT];
    if (gethostname(host, sizeof host - 1) != 0) {
        snprintf(host, sizeof host, "unknown");
    }
    int length = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), host);
    if (ftruncate(descriptor, 0) == 0) {
        ssize_t written = pwrite(descriptor, text, (size_t)length, 0);
        (void)written;
    }
}

/* Whether it is now ours, as it is where the file system knows no locks; *busy: somebody else has it. */
static bool try_lock(int descriptor, bool *busy)
{
    int failed;
    do {
        failed = flock(descriptor, LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    *busy = failed && errno == EWOULDBLOCK;
    return !failed || errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP;
}

static cvy_status lock_file(const char *folder, const char *path, int *descriptor_out)
{
    char holder[HOLDER_TEXT];
    bool busy;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    if (try_lock(descriptor, &busy)) {
        note_holder(descriptor);
        *descriptor_out = descriptor;
        return CVY_OK;
    }
    cvy_status status;
    if (busy) {
        print_holder(descriptor, holder);
        status = cvy_fail(CVY_ERR_INPUT, "%s: %s trains in it: wait for its end, or name another folder", folder,
                          holder);
    } else {
        status = cvy_fail(CVY_ERR_IO, "%s: cannot lock: %s", path, strerror(errno));
    }
    close(descriptor);
    return status;
}

cvy_status cvy_run_folder_lock(const char *folder, int *descriptor_out)
{
    char *path = cvy_path_join(folder, "lock");
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = lock_file(folder, path, descriptor_out);
    cvy_free(path);
    return status;
}

void cvy_run_folder_unlock(int *descriptor)
{
    if (*descriptor >= 0) {
        close(*descriptor);
    }
    *descriptor = -1;
}
