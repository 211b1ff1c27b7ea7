/*
 * NumPy archives: train.npz and test.npz, each a ZIP of x.npy and y.npy, stored or deflated. libarchive reads them, by
 * the ZIP's directory, and holds the checksum of each member against what it unpacked. A size that the directory claims
 * is believed only where deflate could have packed so much into the file. Other ways to pack, which libarchive knows,
 * are refused: some take memory on the word of a header.
 */
#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/array_set.h"

enum { BLOCK_BYTES = 1 << 16, DEFLATE_RATIO = 1032, NAME_TEXT = 4200 };

static const char *const archive_name[2] = {[CVY_SPLIT_TRAIN] = "train.npz", [CVY_SPLIT_TEST] = "test.npz"};
static const char *const member_name[2] = {"x.npy", "y.npy"};

static bool detect_npz(const char *folder)
{
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        char *path = cvy_path_join(folder, archive_name[i]);
        found = path && cvy_file_exists(path);
        cvy_free(path);
    }
    return found;
}

static const char *describe_error(struct archive *zip)
{
    const char *words = archive_error_string(zip);
    return words ? words : "unexpected contents";
}

/* Unpack a member whole: exactly so many bytes, then its end, where libarchive has looked at the checksum. */
static cvy_status unpack(struct archive *zip, const char *name, unsigned char *memory, int64_t bytes)
{
    unsigned char more;
    int64_t done = 0;
    la_ssize_t got;
    while (done < bytes && (got = archive_read_data(zip, memory + done, (size_t)(bytes - done))) != 0) {
        CVY_REQUIRE(got > 0, CVY_ERR_DATA, "%s: damaged: %s", name, describe_error(zip));
        done += got;
    }
    CVY_REQUIRE(done == bytes, CVY_ERR_DATA, "%s: ends after %" PRId64 " bytes, expected %" PRId64, name, done, bytes);
    got = archive_read_data(zip, &more, 1);
    CVY_REQUIRE(got >= 0, CVY_ERR_DATA, "%s: damaged: %s", name, describe_error(zip));
    CVY_REQUIRE(got == 0, CVY_ERR_DATA, "%s: goes on after the %" PRId64 " bytes that the archive says", name, bytes);
    return CVY_OK;
}

/* Whether the member at hand is packed as NumPy does; the format's name tells: "ZIP 2.0 (deflation)". */
static bool is_packed_plainly(struct archive *zip)
{
    const char *format = archive_format_name(zip);
    return format && (strstr(format, "(uncompressed)") || strstr(format, "(deflation)"));
}

static cvy_status read_member(struct archive *zip, struct archive_entry *entry, const char *name, int64_t file_bytes,
                              cvy_array *array_out)
{
    int64_t bytes = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : -1;
    CVY_REQUIRE(!array_out->memory, CVY_ERR_DATA, "%s: twice in the archive", name);
    CVY_REQUIRE(is_packed_plainly(zip), CVY_ERR_DATA, "%s: packed as %s, expected stored or deflated", name,
                archive_format_name(zip));
    CVY_REQUIRE(bytes > 0 && bytes / DEFLATE_RATIO <= file_bytes, CVY_ERR_DATA,
                "%s: %" PRId64 " bytes, the archive says, which a file of %" PRId64 " cannot hold", name, bytes,
                file_bytes);
    unsigned char *memory = cvy_calloc((size_t)bytes, 1);
    if (!memory) {
        return cvy_fail_within(CVY_ERR_MEMORY, "%s", name);
    }
    cvy_status status = unpack(zip, name, memory, bytes);
    if (status == CVY_OK) {
        status = cvy_array_adopt(name, memory, bytes, array_out);
    }
    if (status != CVY_OK) {
        cvy_free(memory);
    }
    return status;
}

/* Which array an entry of the archive is: 0 x, 1 y, -1 neither. */
static int find_member(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    for (int i = 0; name && i < 2; i++) {
        if (strcmp(name, member_name[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static cvy_status read_members(struct archive *zip, const char *path, int64_t file_bytes, cvy_array pair_out[2])
{
    struct archive_entry *entry;
    char name[NAME_TEXT];
    int answer;
    while ((answer = archive_read_next_header(zip, &entry)) == ARCHIVE_OK) {
        int which = find_member(entry);
        if (which >= 0) {
            snprintf(name, sizeof name, "%s: %s", path, member_name[which]);
            CVY_TRY(read_member(zip, entry, name, file_bytes, &pair_out[which]));
        }
    }
    CVY_REQUIRE(answer == ARCHIVE_EOF, CVY_ERR_DATA, "%s: damaged: %s", path, describe_error(zip));
    for (int i = 0; i < 2; i++) {
        CVY_REQUIRE(pair_out[i].body, CVY_ERR_DATA, "%s: holds no %s; save it with numpy.savez(…, x=…, y=…)", path,
                    member_name[i]);
    }
    return CVY_OK;
}

static cvy_status read_archive(const char *path, cvy_array pair_out[2])
{
    struct stat about;
    cvy_status status;
    CVY_REQUIRE(stat(path, &about) == 0 && S_ISREG(about.st_mode), CVY_ERR_DATA, "%s: not a regular file", path);
    struct archive *zip = archive_read_new();
    CVY_REQUIRE(zip, CVY_ERR_MEMORY, "%s: no memory to unpack it", path);
    bool open = archive_read_support_format_zip_seekable(zip) == ARCHIVE_OK &&
                archive_read_open_filename(zip, path, BLOCK_BYTES) == ARCHIVE_OK;
    CVY_REQUIRE_GOTO(status, done, open, CVY_ERR_DATA, "%s: cannot open: %s", path, describe_error(zip));
    status = read_members(zip, path, about.st_size, pair_out);
done:
    archive_read_free(zip);
    return status;
}

static cvy_status load_pair(const char *folder, cvy_split split, cvy_array pair_out[2])
{
    char *path = cvy_path_join(folder, archive_name[split]);
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_file_exists(path) ? read_archive(path, pair_out) : CVY_OK;
    cvy_free(path);
    return status;
}

static cvy_status open_npz(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    return cvy_array_set_open(options, load_pair, info_out, state_out);
}

const cvy_data_kind cvy_data_kind_npz = {
    .name = "npz",
    .help = "train.npz, test.npz, each with x and y",
    .detect = detect_npz,
    .open = open_npz,
    .close = cvy_array_set_close,
    .read = cvy_array_set_read,
};
