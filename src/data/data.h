/*
 * Data sets. A kind is one file and one line in its table: it opens a folder or a name, and reads sample i. What a
 * sample becomes depends on (seed, epoch, sample) only, never on threads.
 */
#ifndef CVY_DATA_DATA_H
#define CVY_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "data/slab.h"

typedef enum cvy_split { CVY_SPLIT_TRAIN, CVY_SPLIT_TEST } cvy_split;

/** What the labels of a data set are: a class of each sample, numbers, or a map: a class for each position. */
typedef enum cvy_target { CVY_TARGET_CLASS, CVY_TARGET_VALUES, CVY_TARGET_MAP } cvy_target;

/** What a data set offers. */
typedef struct cvy_data_info {
    cvy_shape sample;    /**< [c,h,w] or [c,d,h,w] */
    cvy_target target;
    int64_t classes;     /**< CLASS, MAP: labels are below; of files the largest label + 1 */
    int64_t values;      /**< VALUES: numbers a sample */
    cvy_shape map;       /**< MAP: [h,w] or [d,h,w], the labels of a sample */
    int64_t count[2];    /**< samples of each split */
} cvy_data_info;

typedef struct cvy_data cvy_data;

/** What happens to a training sample anew each epoch. */
typedef struct cvy_augmentation {
    int64_t crop_padding; /**< pad each side of d, h, w by so many zeros, crop at random to the old size; 0: not */
    double hflip;         /**< probability of a mirror image, left to right */
} cvy_augmentation;

/** What a user asks of a data set. */
typedef struct cvy_data_options {
    const char *source;              /**< a folder, or the name of a synthetic set: digits, random, cosmo */
    const char *kind;                /**< NULL: by the files found, or the name */
    uint64_t seed;
    cvy_shape sample;                /**< the model's input, without n: synthetic sets take it, files must have it. No
                                          dimensions: no model; whatever the files hold, target and classes too */
    cvy_target target;               /**< the model's loss */
    int64_t classes;                 /**< of the model; labels are checked against it. Of a regression: its outputs */
    cvy_shape map;                   /**< MAP: positions that the model's loss has labels for */
    int64_t train_count, test_count; /**< for synthetic sets; 0 is their default. Files: at most so many; 0 is all */
    const char *mean, *std;          /**< x becomes (x - mean) / std: a number for each channel, or one for all, with
                                          commas between; NULL: as the kind says */
    cvy_augmentation augmentation;
} cvy_data_options;

/** How the numbers of a kind are scaled where the user does not say: x becomes (x - mean) / std. */
typedef struct cvy_data_scale {
    int channels;                    /**< 1: the same for all, 3: for sets of colour images, 0: x stays as it is */
    double mean[3], std[3];
} cvy_data_scale;

/** A kind of data set. */
typedef struct cvy_data_kind {
    const char *name;
    const char *help;
    bool synthetic;      /**< known by name, needs no folder */
    cvy_data_scale scale;
    /** Whether a folder holds such a set. */
    bool (*detect)(const char *folder);
    /** Open; state_out is the kind's own. The whole of what can be wrong is found here, as far as it can be. */
    cvy_status (*open)(const cvy_data_options *options, cvy_data_info *info_out, void **state_out);
    void (*close)(void *state); /**< NULL is fine */
    /**
     * Write sample @p index of a split: c*(d*)h*w floats in plain order, not scaled yet, and its label (one int32_t,
     * one for each position of a map, or `values` floats). Either may be NULL: it is not wanted. Called from several
     * threads at once.
     */
    cvy_status (*read)(const void *state, cvy_split split, int64_t index, float *x_out, void *label_out);
    /**
     * The same, but of the pixels those of a slab alone. NULL where a sample is read as a whole or not at all: its slab
     * is then cut out of it.
     */
    cvy_status (*read_slab)(const void *state, cvy_split split, int64_t index, const cvy_slab *slab, float *x_out,
                            void *label_out);
} cvy_data_kind;

/**
 * Open a data set.
 *
 * Not collective.
 * @param[out] data_out released with cvy_data_close()
 * @retval CVY_ERR_DATA  missing, damaged, or of another shape than the model's; the file is named
 * @retval CVY_ERR_INPUT unknown kind or name; the message lists them
 */
cvy_status cvy_data_open(const cvy_data_options *options, cvy_data **data_out);

/** Release; sets NULL. No loader may be running on it. */
void cvy_data_close(cvy_data **data);

/** What it offers. Cannot fail. */
const cvy_data_info *cvy_data_get_info(const cvy_data *data);

/** "idx", "cifar10", "digits", … */
const char *cvy_data_kind_name(const cvy_data *data);

/** The i-th kind; NULL past the last. */
const cvy_data_kind *cvy_data_kind_get(int i);

/**
 * Read one sample, scaled. Thread-safe.
 *
 * @param[out] x_out, label_out  see the slot; NULL: not wanted
 * @retval CVY_ERR_DATA          names the file and the sample
 */
cvy_status cvy_data_read(const cvy_data *data, cvy_split split, int64_t index, float *x_out, void *label_out);

/**
 * Read one sample as epoch @p epoch of a training sees it: augmented, then scaled. A function of (seed, epoch, index).
 * Otherwise as cvy_data_read().
 */
cvy_status cvy_data_read_augmented(const cvy_data *data, cvy_split split, int64_t index, uint32_t epoch, float *x_out,
                                   void *label_out);

/** Whether slabs of samples, augmented or not, can be read without the whole of them. */
bool cvy_data_has_slabs(const cvy_data *data, bool augmented);

/** Read a slab of one sample, which the data set has; its label is whole. Otherwise as cvy_data_read(). */
cvy_status cvy_data_read_slab(const cvy_data *data, cvy_split split, int64_t index, const cvy_slab *slab, float *x_out,
                              void *label_out);

/** Shape of a sample's label: the values, or the channel of 1 and the positions of a map. */
cvy_shape cvy_data_label_shape(const cvy_data *data);

/** Labels of a sample that are classes: 1, or those of a map; 0 of a regression. */
int64_t cvy_data_count_labels(const cvy_data_info *info);

/** Bytes of one sample's pixels (floats) and of its label. */
int64_t cvy_data_sample_bytes(const cvy_data *data);
int64_t cvy_data_label_bytes(const cvy_data *data);

#endif
