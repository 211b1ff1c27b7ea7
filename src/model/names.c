/* Open addressing with linear steps over a power of two of slots, at most half of them taken. */
#include "model/names.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* The slot that holds a name, or the free one where it belongs. There is always a free one. */
static cvy_name_slot *find_slot(const cvy_names *names, const char *name)
{
    uint64_t hash = cvy_hash_text(CVY_HASH_INIT, name);
    size_t mask = (size_t)names->slots - 1;
    size_t i = (size_t)(hash ^ hash >> 32) & mask;
    while (names->slot[i].name && strcmp(names->slot[i].name, name) != 0) {
        i = (i + 1) & mask;
    }
    return &names->slot[i];
}

int cvy_names_find(const cvy_names *names, const char *name)
{
    const cvy_name_slot *slot = names->slots ? find_slot(names, name) : NULL;
    return slot && slot->name ? slot->value : -1;
}

cvy_status cvy_names_reserve(cvy_names *names, int more)
{
    cvy_names larger = {.count = names->count, .slots = names->slots ? names->slots : 64};
    while (larger.slots < 2 * (names->count + more)) {
        larger.slots *= 2;
    }
    if (larger.slots == names->slots) {
        return CVY_OK;
    }
    larger.slot = cvy_calloc((size_t)larger.slots, sizeof *larger.slot);
    if (!larger.slot) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < names->slots; i++) {
        if (names->slot[i].name) {
            *find_slot(&larger, names->slot[i].name) = names->slot[i];
        }
    }
    cvy_free(names->slot);
    *names = larger;
    return CVY_OK;
}

void cvy_names_add(cvy_names *names, const char *name, int value)
{
    *find_slot(names, name) = (cvy_name_slot){.name = name, .value = value};
    names->count++;
}

void cvy_names_clear(cvy_names *names)
{
    cvy_free(names->slot);
    *names = (cvy_names){0};
}
