/* NCCL's own cost model of its collectives, by which it chooses algorithm and protocol: private to the oracle. */
#ifndef CVY_ORACLE_COLLECTIVE_NCCL_H
#define CVY_ORACLE_COLLECTIVE_NCCL_H

#include "oracle/collective.h"

/** Rows of collective.c's table: rings and double binary trees by protocol, and the fastest that NCCL would take. */
double cvy_nccl_ring_ll_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_ring_ll128_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_ring_simple_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_tree_ll_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_tree_ll128_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_tree_simple_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_all_reduce_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_all_gather_s(const cvy_wiring *wiring, double bytes);
double cvy_nccl_reduce_scatter_s(const cvy_wiring *wiring, double bytes);

#endif
