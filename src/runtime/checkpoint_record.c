/*
 * state.json: position of the run, and size and checksum of the tensor files beside it. Its last member is a checksum
 * of every byte before that member, so that any flipped bit in any file of a checkpoint shows. Numbers of 64 bits
 * without a sign are hexadecimal text; doubles have 17 digits and read back to the same bits.
 */
#include "runtime/checkpoint_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

enum { SCHEMA = 1, MAX_RECORD_BYTES = 1 << 20, PIECE_BYTES = 1 << 20, TAIL_BYTES = 64 };

const char *const cvy_checkpoint_file_name[CVY_CHECKPOINT_FILES] = {"model.safetensors", "optimizer.safetensors"};

/* The text behind the bytes that it protects. */
static const char *print_tail(const char *body, size_t bytes, char *tail)
{
    snprintf(tail, TAIL_BYTES, ",\n  \"checksum\": \"%016" PRIx64 "\"\n}\n", (uint64_t)XXH3_64bits(body, bytes));
    return tail;
}

static json_t *make_files(const cvy_checkpoint_record *record)
{
    json_t *files = json_object();
    for (int i = 0; i < CVY_CHECKPOINT_FILES && files; i++) {
        const cvy_checkpoint_file *file = &record->file[i];
        if (!file->present) {
            continue;
        }
        json_t *entry =
            json_pack("{s:I, s:o}", "bytes", (json_int_t)file->bytes, "xxh3", cvy_json_word(file->checksum));
        if (json_object_set_new(files, cvy_checkpoint_file_name[i], entry) != 0) {
            json_decref(files);
            return NULL;
        }
    }
    return files;
}

/* What older checkpoints do not say, and this one need not know; false where memory is exhausted. */
static bool add_known(json_t *json, const cvy_position *at)
{
    bool whole = isnan(at->end_metric) || json_object_set_new(json, "end_metric", cvy_json_real(at->end_metric)) == 0;
    whole = whole && (!at->batch || json_object_set_new(json, "batch", json_integer(at->batch)) == 0);
    whole = whole && (!at->micro_batches ||
                      json_object_set_new(json, "micro_batches", json_integer(at->micro_batches)) == 0);
    whole = whole && (!at->train_samples ||
                      json_object_set_new(json, "train_samples", json_integer(at->train_samples)) == 0);
    whole = whole && (at->ranks <= 1 || json_object_set_new(json, "ranks", json_integer(at->ranks)) == 0);
    whole = whole && (!at->strategy[0] || json_object_set_new(json, "strategy", json_string(at->strategy)) == 0);
    return whole && (!at->data[0] || json_object_set_new(json, "data", json_string(at->data)) == 0);
}

static json_t *make_record(const cvy_checkpoint_record *record)
{
    const cvy_position *at = &record->position;
    json_t *json = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:I, s:o, s:o, s:o}", "schema", (int)SCHEMA, "step",
        (json_int_t)at->step, "epoch", (json_int_t)at->epoch, "sample", (json_int_t)at->sample, "samples_total",
        (json_int_t)at->samples_total, "epoch_loss_sum", cvy_json_real(at->epoch_loss_sum), "epoch_correct",
        (json_int_t)at->epoch_correct, "best_metric", cvy_json_real(at->best_metric), "best_step",
        (json_int_t)at->best_step, "seed", cvy_json_word(at->seed), "model_hash", cvy_json_word(at->model_hash),
        "files", make_files(record));
    if (json && !add_known(json, at)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

cvy_status cvy_checkpoint_record_save(const char *folder, const cvy_checkpoint_record *record)
{
    json_t *json = make_record(record);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    size_t body = text ? strlen(text) - strlen("\n}") : 0; /* the tail closes the object instead */
    char *whole = text ? cvy_recalloc(NULL, 0, body + TAIL_BYTES, 1) : NULL;
    char *path = cvy_path_join(folder, "state.json");
    cvy_status status;
    if (!whole || !path) {
        status = cvy_fail(CVY_ERR_MEMORY, "%s: no memory for state.json", folder);
    } else {
        memcpy(whole, text, body);
        (void)print_tail(text, body, whole + body);
        status = cvy_file_write(path, whole, strlen(whole), CVY_ERR_CHECKPOINT);
    }
    free(text);
    cvy_free(whole);
    cvy_free(path);
    return status;
}

/* A text of few bytes; empty where there is none. */
static cvy_status read_word(const json_t *json, const char *key, const cvy_json_source *source, char *text, size_t size)
{
    const char *found = "";
    if (json_object_get(json, key)) {
        CVY_TRY(cvy_json_get_text(json, key, source, &found));
    }
    CVY_REQUIRE(strlen(found) < size, source->status, "%s: %s: a text of %zu bytes, expected fewer than %zu",
                source->file, key, strlen(found), size);
    snprintf(text, size, "%s", found);
    return CVY_OK;
}

/* What add_known() added. */
static cvy_status read_known(const json_t *json, const cvy_json_source *source, cvy_position *at)
{
    at->end_metric = NAN;
    if (json_object_get(json, "end_metric")) {
        CVY_TRY(cvy_json_get_real(json, "end_metric", source, -HUGE_VAL, HUGE_VAL, &at->end_metric));
    }
    if (json_object_get(json, "batch")) {
        CVY_TRY(cvy_json_get_int(json, "batch", source, 1, INT64_MAX, &at->batch));
    }
    if (json_object_get(json, "micro_batches")) {
        CVY_TRY(cvy_json_get_int(json, "micro_batches", source, 1, INT64_MAX, &at->micro_batches));
    }
    if (json_object_get(json, "train_samples")) {
        CVY_TRY(cvy_json_get_int(json, "train_samples", source, 1, INT64_MAX, &at->train_samples));
    }
    if (json_object_get(json, "ranks")) {
        CVY_TRY(cvy_json_get_int(json, "ranks", source, 1, INT64_MAX, &at->ranks));
    }
    CVY_TRY(read_word(json, "strategy", source, at->strategy, sizeof at->strategy));
    return read_word(json, "data", source, at->data, sizeof at->data);
}

static cvy_status read_position(const json_t *json, const cvy_json_source *source, cvy_position *at)
{
    CVY_TRY(cvy_json_get_int(json, "step", source, 0, INT64_MAX, &at->step));
    CVY_TRY(cvy_json_get_int(json, "epoch", source, 0, INT64_MAX, &at->epoch));
    CVY_TRY(cvy_json_get_int(json, "sample", source, 0, INT64_MAX, &at->sample));
    CVY_TRY(cvy_json_get_int(json, "samples_total", source, 0, INT64_MAX, &at->samples_total));
    CVY_TRY(cvy_json_get_real(json, "epoch_loss_sum", source, -HUGE_VAL, HUGE_VAL, &at->epoch_loss_sum));
    CVY_TRY(cvy_json_get_int(json, "epoch_correct", source, 0, INT64_MAX, &at->epoch_correct));
    CVY_TRY(cvy_json_get_real(json, "best_metric", source, -HUGE_VAL, HUGE_VAL, &at->best_metric));
    CVY_TRY(cvy_json_get_int(json, "best_step", source, -1, INT64_MAX, &at->best_step));
    CVY_TRY(cvy_json_get_word(json, "seed", source, &at->seed));
    CVY_TRY(cvy_json_get_word(json, "model_hash", source, &at->model_hash));
    return read_known(json, source, at);
}

static cvy_status read_record(const json_t *json, const cvy_json_source *source, cvy_checkpoint_record *record)
{
    int64_t schema = 0;
    CVY_TRY(cvy_json_get_int(json, "schema", source, 1, INT64_MAX, &schema));
    CVY_REQUIRE(schema == SCHEMA, source->status, "%s: schema %" PRId64 ", this version reads %d", source->file, schema,
                (int)SCHEMA);
    CVY_TRY(read_position(json, source, &record->position));
    const json_t *files = NULL;
    CVY_TRY(cvy_json_get_child(json, "files", source, JSON_OBJECT, &files));
    for (int i = 0; i < CVY_CHECKPOINT_FILES; i++) {
        const char *name = cvy_checkpoint_file_name[i];
        cvy_checkpoint_file *file = &record->file[i];
        file->present = json_object_get(files, name) != NULL;
        if (file->present) {
            const json_t *entry = NULL;
            CVY_TRY(cvy_json_get_child(files, name, source, JSON_OBJECT, &entry));
            CVY_TRY(cvy_json_get_int(entry, "bytes", source, 0, INT64_MAX, &file->bytes));
            CVY_TRY(cvy_json_get_word(entry, "xxh3", source, &file->checksum));
        }
    }
    CVY_REQUIRE(record->file[CVY_CHECKPOINT_MODEL].present, source->status, "%s: files: %s is not listed", source->file,
                cvy_checkpoint_file_name[CVY_CHECKPOINT_MODEL]);
    return CVY_OK;
}

/* Check the text's own checksum, then read it. */
static cvy_status parse_record(const char *path, const char *text, size_t bytes, cvy_checkpoint_record *record)
{
    const cvy_json_source source = {path, CVY_ERR_CHECKPOINT};
    char tail[TAIL_BYTES];
    size_t tail_bytes = strlen(print_tail(text, 0, tail)); /* its length does not depend on what it protects */
    bool holds = bytes > tail_bytes;
    if (holds) {
        size_t body = bytes - tail_bytes;
        holds = memcmp(print_tail(text, body, tail), text + body, tail_bytes) == 0;
    }
    CVY_REQUIRE(holds, CVY_ERR_CHECKPOINT, "%s: damaged: its checksum does not hold", path);
    json_t *json = NULL;
    CVY_TRY(cvy_json_parse(&source, text, bytes, &json));
    cvy_status status = read_record(json, &source, record);
    json_decref(json);
    return status;
}

cvy_status cvy_checkpoint_record_load(const char *folder, cvy_checkpoint_record *record_out)
{
    char *text = NULL;
    size_t bytes = 0;
    char *path = cvy_path_join(folder, "state.json");
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    cvy_checkpoint_record record = {0};
    cvy_status status = cvy_file_read(path, MAX_RECORD_BYTES, CVY_ERR_CHECKPOINT, &text, &bytes);
    if (status == CVY_OK) {
        status = parse_record(path, text, bytes, &record);
    }
    if (status == CVY_OK) {
        *record_out = record;
    }
    cvy_free(text);
    cvy_free(path);
    return status;
}

/* Hash a file by reading it: a mapping would turn a disk's error into a signal. */
static cvy_status hash_descriptor(int descriptor, const char *path, XXH3_state_t *hash, unsigned char *piece)
{
    for (;;) {
        ssize_t got = read(descriptor, piece, PIECE_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        CVY_REQUIRE(got >= 0, CVY_ERR_CHECKPOINT, "%s: cannot read: %s", path, strerror(errno));
        if (got == 0) {
            return CVY_OK;
        }
        (void)XXH3_64bits_update(hash, piece, (size_t)got);
    }
}

static cvy_status verify_file(const char *path, const cvy_checkpoint_file *file)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_CHECKPOINT, "%s: %s", path, strerror(errno));
    XXH3_state_t *hash = NULL;
    unsigned char *piece = NULL;
    cvy_status status = CVY_OK;
    CVY_REQUIRE_GOTO(status, done, fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode), CVY_ERR_CHECKPOINT,
                     "%s: not a regular file", path);
    CVY_REQUIRE_GOTO(status, done, info.st_size == file->bytes, CVY_ERR_CHECKPOINT,
                     "%s: damaged: %jd bytes, expected %" PRId64, path, (intmax_t)info.st_size, file->bytes);
    hash = XXH3_createState();
    piece = cvy_calloc(PIECE_BYTES, 1);
    CVY_REQUIRE_GOTO(status, done, hash && piece, CVY_ERR_MEMORY, "%s: no memory to verify it", path);
    (void)XXH3_64bits_reset(hash);
    CVY_TRY_GOTO(status, done, hash_descriptor(descriptor, path, hash, piece));
    CVY_REQUIRE_GOTO(status, done, XXH3_64bits_digest(hash) == file->checksum, CVY_ERR_CHECKPOINT,
                     "%s: damaged: its checksum is %016" PRIx64 ", expected %016" PRIx64, path,
                     (uint64_t)XXH3_64bits_digest(hash), file->checksum);
done:
    close(descriptor);
    XXH3_freeState(hash);
    cvy_free(piece);
    return status;
}

cvy_status cvy_checkpoint_verify(const char *folder, cvy_checkpoint_record *record_out)
{
    cvy_checkpoint_record record;
    CVY_TRY(cvy_checkpoint_record_load(folder, &record));
    for (int i = 0; i < CVY_CHECKPOINT_FILES; i++) {
        if (!record.file[i].present) {
            continue;
        }
        char *path = cvy_path_join(folder, cvy_checkpoint_file_name[i]);
        if (!path) {
            return CVY_ERR_MEMORY;
        }
        cvy_status status = verify_file(path, &record.file[i]);
        cvy_free(path);
        CVY_TRY(status);
    }
    *record_out = record;
    return CVY_OK;
}
