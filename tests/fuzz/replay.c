/* A main for a harness where libFuzzer is not: every file of the folders and files named is given to it once. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 24 };

static int replay_file(const char *path)
{
    char *data = NULL;
    size_t bytes = 0;
    if (cvy_file_read(path, MOST_BYTES, CVY_ERR_IO, &data, &bytes) != CVY_OK) {
        fprintf(stderr, "%s\n", cvy_error_message());
        exit(1);
    }
    uint8_t *exact = malloc(bytes + !bytes); /* without the zero behind the last byte: reading on must show */
    FUZZ_REQUIRE(exact);
    memcpy(exact, data, bytes);
    cvy_free(data);
    fprintf(stderr, "%s\n", path); /* the last one told is the one that fails */
    (void)LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
    return 1;
}

static int replay_folder(const char *folder)
{
    struct dirent **entry;
    int count = scandir(folder, &entry, NULL, alphasort), files = 0;
    FUZZ_REQUIRE(count >= 0);
    for (int i = 0; i < count; i++) {
        char *path = cvy_path_join(folder, entry[i]->d_name);
        FUZZ_REQUIRE(path);
        files += cvy_file_exists(path) ? replay_file(path) : 0;
        cvy_free(path);
        free(entry[i]);
    }
    free(entry);
    return files;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        files += cvy_folder_exists(argv[i]) ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    printf("%d inputs\n", files);
    return files > 0 ? 0 : 1;
}
