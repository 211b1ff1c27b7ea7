/* The lists of layers that the oracle paper's closed forms ran on (tests/data/README.md), as those forms take them. */
#ifndef CVY_TESTS_ORACLE_LAYER_LIST_H
#define CVY_TESTS_ORACLE_LAYER_LIST_H

#include "oracle/closed_form.h"
#include "csv.h"

enum { LIST_LAYERS = 256 };

typedef struct layer_list {
    cvy_closed_layer layer[LIST_LAYERS];
    bool conv[LIST_LAYERS];
    double flop[LIST_LAYERS]; /* the authors' estimate */
    int layers;
} layer_list;

/* "3x226x226" into extents; returns how many. */
static inline int read_extents(const char *text, double *extent)
{
    int extents = 0;
    for (const char *next = text; next && extents < 8; extents++) {
        extent[extents] = strtod(next, NULL);
        next = strchr(next, 'x');
        next = next ? next + 1 : NULL;
    }
    return extents;
}

static inline double multiply(const double *extent, int first, int count)
{
    double product = 1.0;
    for (int i = first; i < count; i++) {
        product *= extent[i];
    }
    return product;
}

/*
 * The authors' estimate, of a sample: 2 op + |w|, where op is 2 c f k^d od^d of a convolution, |w| of a dense layer,
 * c c k^d od^d of a pooling, |y| of relu and sum, 4 |x| of batch norm; 0 for dropout.
 */
static inline double estimate_flop(const char *kind, const double *x, const double *w, const double *y, int extents)
{
    double weights = multiply(w, 0, extents + 1), places = multiply(y, 1, extents), op = 0.0;
    if (strcmp(kind, "CONV") == 0) {
        op = 2.0 * weights * places;
    } else if (strcmp(kind, "FC") == 0) {
        op = weights;
    } else if (strcmp(kind, "MPOOL") == 0 || strcmp(kind, "APOOL") == 0) {
        op = x[0] * x[0] * multiply(w, 2, extents + 1) * places;
    } else if (strcmp(kind, "RELU") == 0 || strcmp(kind, "ADD") == 0) {
        op = multiply(y, 0, extents);
    } else if (strcmp(kind, "BNORM") == 0) {
        op = 4.0 * multiply(x, 0, extents);
    }
    return 2.0 * op + weights;
}

/* Seconds of a sample are spread over layers by that estimate, update included, as the authors did. */
static inline void read_layer_list(const char *name, double sample_s, layer_list *list)
{
    csv table;
    double flop = 0.0;
    memset(list, 0, sizeof *list);
    open_csv(&table, name);
    while (next_csv_row(&table)) {
        double x[8], w[8], y[8];
        const char *kind = csv_text(&table, "kind");
        int i = list->layers++, extents = read_extents(csv_text(&table, "input"), x);
        assert_true(i < LIST_LAYERS);
        assert_int_equal(read_extents(csv_text(&table, "weight"), w), extents + 1);
        assert_int_equal(read_extents(csv_text(&table, "output"), y), extents);
        list->conv[i] = strcmp(kind, "CONV") == 0;
        list->flop[i] = estimate_flop(kind, x, w, y, extents);
        flop += list->flop[i];
        list->layer[i] = (cvy_closed_layer){.x_items = multiply(x, 0, extents),
                                            .y_items = multiply(y, 0, extents),
                                            .w_items = multiply(w, 0, extents + 1),
                                            .cut_channels = list->conv[i],
                                            .channels = (int)x[0],
                                            .filters = (int)y[0],
                                            .positions = (int64_t)x[1]};
    }
    for (int i = 0; i < list->layers; i++) {
        list->layer[i].forward_s = sample_s * list->flop[i] / flop;
    }
}

#endif
