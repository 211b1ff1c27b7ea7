/*
 * Interval lists as a sweep: walk the borders of both lists in order and keep track of which list the sweep is inside
 * of. A border of a list is its begin (even places) or end (odd places), so the parity of the next place says "inside".
 * Invariant of every result: sorted, no empty interval, no two that touch, so equal sets are equal lists.
 */
#include "tensor/interval.h"

#include <inttypes.h>

#include "base/checked.h"

/* A set operation as the four answers to (inside a, inside b); the bit number is 2 * inside_a + inside_b. */
enum { RULE_INTERSECT = 1 << 3, RULE_SUBTRACT = 1 << 2, RULE_UNION = 1 << 3 | 1 << 2 | 1 << 1 };

cvy_intervals cvy_intervals_whole(int64_t extent)
{
    cvy_intervals list = {0};
    if (extent > 0) {
        list.count = 1;
        list.at[0] = (cvy_interval){0, extent};
    }
    return list;
}

cvy_intervals cvy_intervals_share(int64_t extent, int64_t parts, int64_t index)
{
    int64_t base = extent / parts;
    int64_t longer = extent % parts;
    int64_t begin = index * base + cvy_min_i64(index, longer);
    int64_t end = begin + base + (index < longer);
    cvy_intervals list = {0};
    if (end > begin) {
        list.count = 1;
        list.at[0] = (cvy_interval){begin, end};
    }
    return list;
}

int64_t cvy_intervals_length(const cvy_intervals *list)
{
    int64_t length = 0;
    for (int i = 0; i < list->count; i++) {
        length += list->at[i].end - list->at[i].begin;
    }
    return length;
}

bool cvy_intervals_hold(const cvy_intervals *list, int64_t index)
{
    for (int i = 0; i < list->count; i++) {
        if (index < list->at[i].end) { /* sorted: the first that ends behind the index is the only one to ask */
            return index >= list->at[i].begin;
        }
    }
    return false;
}

int64_t cvy_intervals_overlap(const cvy_intervals *a, const cvy_intervals *b)
{
    int64_t overlap = 0;
    for (int i = 0, j = 0; i < a->count && j < b->count;) {
        int64_t begin = cvy_max_i64(a->at[i].begin, b->at[j].begin);
        int64_t end = cvy_min_i64(a->at[i].end, b->at[j].end);
        overlap += cvy_max_i64(end - begin, 0);
        if (a->at[i].end == end) {
            i++;
        } else {
            j++;
        }
    }
    return overlap;
}

/* The border at a place of a list; past the last one, beyond every border. */
static int64_t border_at(const cvy_intervals *list, int place)
{
    if (place >= 2 * list->count) {
        return INT64_MAX;
    }
    const cvy_interval *interval = &list->at[place / 2];
    return place % 2 ? interval->end : interval->begin;
}

static cvy_status append(cvy_intervals *list, int64_t begin, int64_t end)
{
    CVY_REQUIRE(list->count < CVY_MAX_INTERVALS, CVY_ERR_UNSUPPORTED,
                "a share of more than %d separate ranges of indices, at index %" PRId64, (int)CVY_MAX_INTERVALS, begin);
    list->at[list->count++] = (cvy_interval){begin, end};
    return CVY_OK;
}

/* Both lists may be the output: the result is made aside, and a failure leaves the output as it was. */
static cvy_status combine(const cvy_intervals *a, const cvy_intervals *b, int rule, cvy_intervals *out)
{
    cvy_intervals result = {0};
    int place_a = 0, place_b = 0;
    bool inside = false;
    int64_t begin = 0;
    while (place_a < 2 * a->count || place_b < 2 * b->count) {
        int64_t border_a = border_at(a, place_a);
        int64_t border_b = border_at(b, place_b);
        int64_t border = cvy_min_i64(border_a, border_b);
        place_a += place_a < 2 * a->count && border_a == border;
        place_b += place_b < 2 * b->count && border_b == border;
        bool now = rule >> (2 * (place_a % 2) + place_b % 2) & 1;
        if (now && !inside) {
            begin = border;
        } else if (!now && inside) {
            CVY_TRY(append(&result, begin, border));
        }
        inside = now;
    }
    *out = result;
    return CVY_OK;
}

cvy_status cvy_intervals_intersect(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out)
{
    return combine(a, b, RULE_INTERSECT, out);
}

cvy_status cvy_intervals_subtract(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out)
{
    return combine(a, b, RULE_SUBTRACT, out);
}

cvy_status cvy_intervals_union(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out)
{
    return combine(a, b, RULE_UNION, out);
}
