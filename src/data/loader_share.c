/*
 * What of each batch is a rank's, and how it lies in a slot: its samples side by side, of each a slab of the image;
 * then, from a whole line of the cache on, a slab of each label.
 */
#include <inttypes.h>

#include "base/checked.h"
#include "data/loader_internal.h"

enum { PART_ALIGNMENT = 64 };

static cvy_status check_share(const char *what, const cvy_interval *share, int64_t samples)
{
    CVY_REQUIRE(share->begin >= 0 && share->begin <= share->end && share->end <= samples, CVY_ERR_ARG,
                "%s: samples %" PRId64 " to %" PRId64 ", expected some of 0 to %" PRId64, what, share->begin,
                share->end, samples);
    return CVY_OK;
}

cvy_interval cvy_loader_find_share(const cvy_loader_options *options, int64_t samples)
{
    if (!options->shared) {
        return (cvy_interval){0, samples};
    }
    return samples == options->batch ? options->share : options->tail_share;
}

/* Bytes of one sample's slab, and of @p samples of them, rounded up; false where they do not fit into 64 bits. */
static bool measure_part(const cvy_slab *slab, bool none, int64_t samples, int64_t *one_out, int64_t *all_out)
{
    int64_t all;
    *one_out = none ? 0 : cvy_slab_elements(slab) * cvy_dtype_bytes(CVY_F32);
    if (!cvy_mul_i64(samples, *one_out, &all) || all > INT64_MAX / 4) {
        return false;
    }
    *all_out = cvy_round_up(all, PART_ALIGNMENT);
    return true;
}

cvy_status cvy_loader_lay_out(const cvy_data *data, const cvy_loader_options *options, cvy_loader_layout *layout_out)
{
    cvy_loader_layout made;
    const cvy_shape label = cvy_data_label_shape(data);
    int64_t most = options->batch, labels_bytes;
    CVY_TRY(cvy_slab_setup("images of a share", &cvy_data_get_info(data)->sample, options->rows, &made.image));
    CVY_TRY(cvy_slab_setup("labels of a share", &label, options->label_rows, &made.label));
    if (options->shared) {
        int64_t tail = cvy_data_get_info(data)->count[options->split] % options->batch;
        CVY_TRY(check_share("share of a batch", &options->share, options->batch));
        CVY_TRY(check_share("share of the last batch", &options->tail_share, tail));
        most = cvy_max_i64(options->share.end - options->share.begin,
                           options->tail_share.end - options->tail_share.begin);
    }
    CVY_REQUIRE(measure_part(&made.image, options->no_images, most, &made.image_bytes, &made.images_bytes) &&
                    measure_part(&made.label, options->no_labels, most, &made.label_bytes, &labels_bytes),
                CVY_ERR_ARG, "slots of %" PRId64 " samples are beyond 2^63 bytes", most);
    made.slot_bytes = made.images_bytes + labels_bytes;
    *layout_out = made;
    return CVY_OK;
}

int64_t cvy_loader_slot_bytes(const cvy_data *data, const cvy_loader_options *options)
{
    cvy_loader_layout layout;
    bool fine = options->batch >= 1 && cvy_loader_lay_out(data, options, &layout) == CVY_OK;
    return fine ? layout.slot_bytes : INT64_MAX;
}
