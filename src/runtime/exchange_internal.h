/* What the files share that bind communication steps: exchange_bind.c has messages and what all steps need,
 * exchange_collectives.c the collectives. */
#ifndef CVY_RUNTIME_EXCHANGE_INTERNAL_H
#define CVY_RUNTIME_EXCHANGE_INTERNAL_H

#include "runtime/exchange.h"
#include "runtime/region.h"

/* What a member of the group brings, and ends with. */
typedef struct cvy_member {
    cvy_region source, target;
} cvy_member;

/* A step while it is bound. */
typedef struct cvy_binding {
    const cvy_exchange_site *site;
    const cvy_exchange *exchange;
    cvy_exchange_run *run;
    cvy_comm *comm;
    int ranks, place;
    int buffers;     /* that it moves; behind them may come the one to travel in */
    char *packed;    /* NULL: elements travel as they lie */
    int64_t packed_bytes, used_bytes;
    cvy_member *member;  /* of each rank of the group */
    int64_t *count, *taken;
} cvy_binding;

/* A buffer that the step uses, and how. */
const cvy_buffer *cvy_binding_buffer(const cvy_binding *b, int i);
cvy_access cvy_binding_access(const cvy_binding *b, int i);

/* What is found must be what the step says. @retval CVY_ERR_INFEASIBLE it is not */
cvy_status cvy_binding_expect(const char *what, int64_t found, int64_t expected);

/* Append the packing of a box of a buffer; @p back: its unpacking. */
cvy_status cvy_binding_add_pack(cvy_binding *b, int buffer, const cvy_box *box, void *packed, bool back);

/* The next stretch of the memory in which elements travel. */
cvy_status cvy_binding_take_packed(cvy_binding *b, int64_t bytes, void **packed_out);

/* Append a transfer. */
cvy_status cvy_binding_add_transfer(cvy_binding *b, cvy_comm *comm, const cvy_transfer_spec *spec);

/* A target that is written as a whole, but for the padding of its format: that is to be cleared. */
void cvy_binding_clear_padding(cvy_binding *b, int buffer);

/* Bind a collective. */
cvy_status cvy_binding_bind_collective(cvy_binding *b);

#endif
