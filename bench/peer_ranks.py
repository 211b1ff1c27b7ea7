#!/usr/bin/python3
"""The peer of `mpiexec convoy bench`: DistributedDataParallel over gloo, on random data, as JSON.

Starts --ranks processes on this machine, each bound to a core of its own and with as many samples of the batch as the
others. Models, loss and optimizer are peer.py's; the first rank prints.
"""
import argparse
import json
import os
import resource
import socket
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

import peer


def bind(rank, threads):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= (rank + 1) * threads:
        os.sched_setaffinity(0, cores[rank * threads:(rank + 1) * threads])


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def largest(value):
    """Of all ranks."""
    number = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(number, op=dist.ReduceOp.MAX)
    return number.item()


def train(rank, port, args):
    bind(rank, args.threads)
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.ranks)
    batch = args.batch // args.ranks
    step = peer.make_training(args.model, batch, args.channels_last, torch.nn.parallel.DistributedDataParallel)
    median = statistics.median(largest(value) for value in peer.time_steps(step, args))
    memory = largest(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    if rank == 0:
        print(json.dumps({"model": args.model, "ranks": args.ranks, "global_batch": batch * args.ranks,
                          "threads_per_rank": args.threads, "iteration_s": median,
                          "images_per_s": batch * args.ranks / median, "peak_memory_bytes": int(memory),
                          "version": torch.__version__}), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads were seen to keep a process that ends in the usual way for ever


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    peer.add_arguments(parser)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    peer.require_fast_products()
    processes.spawn(train, (find_port(), args), nprocs=args.ranks)


if __name__ == "__main__":
    main()
