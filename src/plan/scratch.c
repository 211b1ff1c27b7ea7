/* Thousands of plans of one search have the same ops again and again: each is asked once. */
#include "plan/scratch.h"

#include "base/memory.h"

typedef struct entry {
    uint64_t hash;
    int64_t bytes;
} entry;

struct cvy_scratch_book {
    cvy_backend_chain backends;
    entry *entry;
    int entries, capacity;
};

cvy_status cvy_scratch_book_create(const cvy_backend_chain *backends, cvy_scratch_book **book_out)
{
    cvy_scratch_book *book = cvy_calloc(1, sizeof *book);
    if (!book) {
        return CVY_ERR_MEMORY;
    }
    book->backends = *backends;
    *book_out = book;
    return CVY_OK;
}

void cvy_scratch_book_destroy(cvy_scratch_book **book)
{
    if (*book) {
        cvy_free((*book)->entry);
    }
    cvy_free(*book);
    *book = NULL;
}

static cvy_status ask_kernel(const cvy_scratch_book *book, const cvy_op *op, int64_t *bytes_out)
{
    cvy_kernel *kernel = NULL;
    *bytes_out = 0;
    if (cvy_backend_quality(&book->backends, op, NULL) == CVY_QUALITY_NONE) {
        return CVY_OK;
    }
    CVY_TRY(cvy_kernel_create(&book->backends, op, &kernel));
    *bytes_out = (int64_t)cvy_kernel_scratch_bytes(kernel);
    cvy_kernel_destroy(&kernel);
    return CVY_OK;
}

cvy_status cvy_scratch_book_find(cvy_scratch_book *book, const cvy_op *op, int64_t *bytes_out)
{
    const uint64_t hash = cvy_op_hash(op);
    for (int i = 0; i < book->entries; i++) {
        if (book->entry[i].hash == hash) {
            *bytes_out = book->entry[i].bytes;
            return CVY_OK;
        }
    }
    CVY_TRY(cvy_array_reserve(&book->entry, book->entries, &book->capacity, sizeof *book->entry));
    CVY_TRY(ask_kernel(book, op, bytes_out));
    book->entry[book->entries++] = (entry){hash, *bytes_out};
    return CVY_OK;
}
