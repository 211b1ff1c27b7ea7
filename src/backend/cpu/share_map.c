/*
 * A run goes to the end of its stretch in the innermost dimension that the two samples do not have in common, inner
 * ones included, for behind a whole dimension the next index of the one before it follows at once.
 */
#include "backend/cpu/share_map.h"

#include "base/checked.h"

/* Where an index lies in the other sample, -1 beyond it, and how many from it on do alike. */
typedef struct stretch {
    int64_t at, count;
} stretch;

static stretch find_stretch(const cvy_share_map *map, int dim, int64_t i)
{
    if (map->stretches.count > 0 && map->stretched == dim) {
        const cvy_interval *at = map->stretches.at;
        for (; i >= at->end - at->begin; at++) { /* the next interval begins behind this one */
            i -= at->end - at->begin;
        }
        return (stretch){at->begin + i, at->end - at->begin - i};
    }
    int64_t at = map->first[dim] + i, left = map->extent[dim] - i;
    if (at < 0) {
        return (stretch){-1, cvy_min_i64(left, -at)};
    }
    return at < map->other[dim] ? (stretch){at, cvy_min_i64(left, map->other[dim] - at)} : (stretch){-1, left};
}

cvy_share_run cvy_share_map_find(const cvy_share_map *map, int64_t e)
{
    int64_t index[4], inner = 1, passed = 0, at = 0;
    stretch in[4], along;
    int nowhere = 4; /* outermost dimension in which there is no such place */
    for (int dim = 3; dim >= 0; dim--) {
        index[dim] = dim ? e % map->extent[dim] : e;
        e = dim ? e / map->extent[dim] : 0;
        in[dim] = find_stretch(map, dim, index[dim]);
        nowhere = in[dim].at < 0 ? dim : nowhere;
    }
    for (int dim = 0; dim < 4; dim++) {
        at = at * map->other[dim] + in[dim].at;
    }
    along = in[3];
    for (int dim = 3; dim > 0; dim--) {
        bool common = map->extent[dim] == map->other[dim] && map->first[dim] == 0;
        if (nowhere == 4 ? !common : dim <= nowhere) {
            break;
        }
        passed += index[dim] * inner;
        inner *= map->extent[dim];
        along = in[dim - 1];
    }
    return (cvy_share_run){nowhere == 4 ? at : -1, along.count * inner - passed};
}
