/*
 * A data set of noise is written, the kernel is asked to forget its pages, and it is read: first as bytes, which is
 * storage, then sample by sample as a loader's thread does, which is decoding, since the pages are in memory by then.
 */
#include "calibrate/input.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "calibrate/peaks.h"
#include "data/data.h"

enum { FILES = 6, RECORD = 3073, RECORDS = 1600, PIECE = 1 << 20, SAMPLES = 2000, PATH = 4200, SOURCE = 120 };

/* The folder, its files, and room for one of them. */
typedef struct bench {
    char folder[PATH], file[FILES][PATH + 32];
    unsigned char *bytes;
} bench;

static void name_files(const char *path, bench *b)
{
    snprintf(b->folder, sizeof b->folder, "%.4000s.input", path);
    for (int i = 0; i < FILES; i++) {
        snprintf(b->file[i], sizeof b->file[i], i < FILES - 1 ? "%s/data_batch_%d.bin" : "%s/test_batch.bin",
                 b->folder, i + 1);
    }
}

static cvy_status write_files(bench *b)
{
    uint32_t word = 1;
    for (size_t i = 0; i < (size_t)RECORD * RECORDS; i++) {
        word = word * 1664525u + 1013904223u; /* Numerical Recipes: noise, which nothing compresses */
        b->bytes[i] = i % RECORD == 0 ? (unsigned char)((word >> 24) % 10) : (unsigned char)(word >> 24);
    }
    CVY_TRY(cvy_folder_create(b->folder, CVY_ERR_IO));
    for (int i = 0; i < FILES; i++) {
        CVY_TRY(cvy_file_write(b->file[i], (const char *)b->bytes, (size_t)RECORD * RECORDS, CVY_ERR_IO));
    }
    return CVY_OK;
}

static void remove_files(const bench *b)
{
    for (int i = 0; i < FILES; i++) {
        (void)unlink(b->file[i]);
    }
    (void)rmdir(b->folder);
}

/* Read a file that is on the disk alone, as far as the system forgets it. */
static cvy_status read_file(const bench *b, const char *path, double *seconds)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    CVY_REQUIRE(file >= 0, CVY_ERR_IO, "%s: cannot be opened", path);
    (void)fdatasync(file);
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    double start_s = cvy_clock_s();
    ssize_t got;
    while ((got = read(file, b->bytes, PIECE)) > 0) {
        cvy_pulse_beat();
    }
    *seconds += cvy_clock_s() - start_s;
    close(file);
    CVY_REQUIRE(got == 0, CVY_ERR_IO, "%s: cannot be read", path);
    return CVY_OK;
}

static cvy_status measure_storage(bench *b, double *Bps_out)
{
    double seconds = 0.0;
    for (int i = 0; i < FILES; i++) {
        CVY_TRY(read_file(b, b->file[i], &seconds));
    }
    *Bps_out = (double)FILES * RECORD * RECORDS / fmax(seconds, 1e-9);
    return CVY_OK;
}

static cvy_status measure_decoding(const bench *b, double *Bps_out)
{
    cvy_data *data = NULL;
    const cvy_data_options options = {.source = b->folder, .kind = "cifar10",
                                      .augmentation = {.crop_padding = 4, .hflip = 0.5}};
    CVY_TRY(cvy_data_open(&options, &data));
    int64_t bytes = cvy_data_sample_bytes(data);
    float *sample = cvy_calloc(1, (size_t)bytes);
    int32_t label[1];
    cvy_status status = sample ? CVY_OK : CVY_ERR_MEMORY;
    double start_s = cvy_clock_s();
    for (int i = 0; i < SAMPLES && status == CVY_OK; i++) {
        status = cvy_data_read_augmented(data, CVY_SPLIT_TRAIN, i, 0, sample, label);
    }
    *Bps_out = (double)SAMPLES * (double)bytes / fmax(cvy_clock_s() - start_s, 1e-9);
    cvy_free(sample);
    cvy_data_close(&data);
    return status;
}

/* Since the process began: field 22 of its line in /proc, in ticks since the system's start; 0: unknown. */
double cvy_input_find_startup_s(void)
{
    char line[1024] = "";
    unsigned long long ticks = 0;
    struct timespec now;
    FILE *file = fopen("/proc/self/stat", "r");
    if (!file) {
        return 0.0;
    }
    const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL; /* behind a name with any letters */
    fclose(file);
    static const char form[] = " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
    int read = end ? sscanf(end + 1, form, &ticks) : 0;
    if (read != 1 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
        return 0.0;
    }
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return fmax(seconds, 0.0);
}

cvy_status cvy_input_measure(const char *path, cvy_input_rates *rates_out)
{
    cvy_input_rates rates = *rates_out;
    bench *b = cvy_calloc(1, sizeof *b);
    if (!b) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = CVY_ERR_MEMORY;
    name_files(path, b);
    b->bytes = cvy_calloc(RECORD, RECORDS);
    CVY_TRY_GOTO(status, done, b->bytes ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, write_files(b));
    CVY_TRY_GOTO(status, done, measure_storage(b, &rates.read_Bps));
    CVY_TRY_GOTO(status, done, measure_decoding(b, &rates.decode_Bps));
    *rates_out = rates;
done:
    remove_files(b);
    cvy_free(b->bytes);
    cvy_free(b);
    return status;
}

static cvy_status fill(double *figure, double value, const char *source, cvy_machine *m)
{
    *figure = cvy_round_figure(value);
    return cvy_machine_set_source(m, figure, source);
}

cvy_status cvy_input_fill(const cvy_input_rates *rates, const char *date, cvy_machine *m)
{
    char source[SOURCE];
    if (rates->read_Bps <= 0.0) {
        return CVY_OK;
    }
    snprintf(source, sizeof source, "%d files of 5 MB beside the machine file, %s", (int)FILES, date);
    CVY_TRY(fill(&m->storage.read_Bps, rates->read_Bps, source, m));
    snprintf(source, sizeof source, "CIFAR-10 cropped and mirrored by one thread, %s", date);
    CVY_TRY(fill(&m->storage.decode_Bps, rates->decode_Bps, source, m));
    snprintf(source, sizeof source, "from the start of the process, %s", date);
    return rates->startup_s > 0.0 ? fill(&m->execution.startup_s, rates->startup_s, source, m) : CVY_OK;
}
