/*
 * Group normalisation (Wu and He, "Group normalization", arXiv:1803.08494): statistics of one sample over the channels
 * of a group and space. With x' = (x - mean) / sqrt(variance + epsilon) and m elements a group,
 *
 *     db = sum over n and space of dy,  dw = the same of dy x',
 *     dx = (w dy - sum w dy / m - x' sum w dy x' / m) / sqrt(variance + epsilon), sums over the group.
 *
 * A set is one group of one sample. The variance is of differences from the mean, in a second sweep.
 */
#include "backend/ref/ref.h"

#include <math.h>

/* One group of one sample: its channels, and what is known of it. */
typedef struct set {
    int64_t n, first, last;
    double count, mean, deviation;
} set;

typedef double (*element_function)(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3]);

static int64_t offset_of(const cvy_ref_tensor *tensor, const set *s, int64_t c, const int64_t index[3])
{
    return cvy_ref_plane(tensor, s->n, c) + cvy_ref_point(tensor, CVY_REF_D, index);
}

static double load_element(const cvy_ref_kernel *kernel, cvy_role role, const set *s, int64_t c, const int64_t index[3])
{
    const cvy_ref_tensor *tensor = cvy_ref_find(kernel, role);
    return cvy_ref_load(tensor, offset_of(tensor, s, c, index));
}

static double load_channel(const cvy_ref_kernel *kernel, cvy_role role, int64_t c)
{
    return cvy_ref_load(cvy_ref_find(kernel, role), c);
}

/* Sum over space of a function of the elements of a channel. */
static double sum_channel(const cvy_ref_kernel *kernel, const set *s, int64_t c, element_function element)
{
    int64_t index[3] = {0, 0, 0};
    double sum = 0.0;
    do {
        sum += element(kernel, s, c, index);
    } while (cvy_ref_next(index, &cvy_ref_find(kernel, CVY_ROLE_X)->extent[CVY_REF_D]));
    return sum;
}

static double value_of(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3])
{
    return load_element(kernel, CVY_ROLE_X, s, c, index);
}

static double square_of(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3])
{
    double difference = value_of(kernel, s, c, index) - s->mean;
    return difference * difference;
}

static double normal_of(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3])
{
    return (value_of(kernel, s, c, index) - s->mean) / s->deviation;
}

static double gradient_of(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3])
{
    return load_element(kernel, CVY_ROLE_DY, s, c, index);
}

static double product_of(const cvy_ref_kernel *kernel, const set *s, int64_t c, const int64_t index[3])
{
    return gradient_of(kernel, s, c, index) * normal_of(kernel, s, c, index);
}

static double sum_set(const cvy_ref_kernel *kernel, const set *s, element_function element)
{
    double sum = 0.0;
    for (int64_t c = s->first; c < s->last; c++) {
        sum += sum_channel(kernel, s, c, element);
    }
    return sum;
}

static int64_t count_sets(const cvy_ref_kernel *kernel)
{
    return cvy_ref_find(kernel, CVY_ROLE_X)->extent[CVY_REF_N] * kernel->base.op.params.group.groups;
}

static set find_set(const cvy_ref_kernel *kernel, int64_t index)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    int64_t groups = kernel->base.op.params.group.groups, channels = x->extent[CVY_REF_C] / groups;
    set s = {.n = index / groups, .first = index % groups * channels};
    s.last = s.first + channels;
    s.count = (double)(channels * x->extent[CVY_REF_D] * x->extent[CVY_REF_H] * x->extent[CVY_REF_W]);
    return s;
}

/* Where a set's statistics lie among those of all: [n, groups]. */
static int64_t find_statistic(const cvy_ref_kernel *kernel, const set *s)
{
    return cvy_ref_plane(cvy_ref_find(kernel, CVY_ROLE_MEAN), s->n, s->first / (s->last - s->first));
}

static void read_statistics(const cvy_ref_kernel *kernel, set *s)
{
    int64_t at = find_statistic(kernel, s);
    s->mean = cvy_ref_load(cvy_ref_find(kernel, CVY_ROLE_MEAN), at);
    s->deviation = sqrt(cvy_ref_load(cvy_ref_find(kernel, CVY_ROLE_VARIANCE), at) +
                        kernel->base.op.params.group.epsilon);
}

static void write_statistics(const cvy_ref_kernel *kernel, set *s)
{
    int64_t at = find_statistic(kernel, s);
    s->mean = sum_set(kernel, s, value_of) / s->count;
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_MEAN), at, s->mean);
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_VARIANCE), at, sum_set(kernel, s, square_of) / s->count);
}

cvy_status cvy_ref_group_norm_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    (void)run;
    for (int64_t i = 0; i < count_sets(kernel); i++) {
        set s = find_set(kernel, i);
        write_statistics(kernel, &s);
        read_statistics(kernel, &s);
        for (int64_t c = s.first; c < s.last; c++) {
            double gamma = load_channel(kernel, CVY_ROLE_W, c), beta = load_channel(kernel, CVY_ROLE_B, c);
            int64_t index[3] = {0, 0, 0};
            do {
                cvy_ref_store(y, offset_of(y, &s, c, index), gamma * normal_of(kernel, &s, c, index) + beta);
            } while (cvy_ref_next(index, &y->extent[CVY_REF_D]));
        }
    }
    return CVY_OK;
}

/* dw and db of a channel: over all samples, in the order of sets. */
static void sum_parameters(const cvy_ref_kernel *kernel, int64_t c)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    int64_t groups = kernel->base.op.params.group.groups;
    double dw = 0.0, db = 0.0;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        set s = find_set(kernel, n * groups + c / (x->extent[CVY_REF_C] / groups));
        read_statistics(kernel, &s);
        dw += sum_channel(kernel, &s, c, product_of);
        db += sum_channel(kernel, &s, c, gradient_of);
    }
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_DW), c, dw);
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_DB), c, db);
}

static void write_gradient(const cvy_ref_kernel *kernel, const set *s)
{
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    double sum = 0.0, product = 0.0;
    for (int64_t c = s->first; c < s->last; c++) {
        sum += load_channel(kernel, CVY_ROLE_W, c) * sum_channel(kernel, s, c, gradient_of);
        product += load_channel(kernel, CVY_ROLE_W, c) * sum_channel(kernel, s, c, product_of);
    }
    for (int64_t c = s->first; c < s->last; c++) {
        double gamma = load_channel(kernel, CVY_ROLE_W, c);
        int64_t index[3] = {0, 0, 0};
        do {
            double normal = normal_of(kernel, s, c, index);
            double value = gamma * gradient_of(kernel, s, c, index) - sum / s->count - normal * product / s->count;
            cvy_ref_store(dx, offset_of(dx, s, c, index), value / s->deviation);
        } while (cvy_ref_next(index, &dx->extent[CVY_REF_D]));
    }
}

cvy_status cvy_ref_group_norm_backward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    for (int64_t c = 0; c < cvy_ref_find(kernel, CVY_ROLE_X)->extent[CVY_REF_C]; c++) {
        sum_parameters(kernel, c); /* before dx, which may lie on dy */
    }
    for (int64_t i = 0; i < count_sets(kernel); i++) {
        set s = find_set(kernel, i);
        read_statistics(kernel, &s);
        write_gradient(kernel, &s);
    }
    return CVY_OK;
}
