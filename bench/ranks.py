#!/usr/bin/python3
"""Convoy on two ranks of one thread, in alternating pairs on this machine (run.py says how pairs are made).

weak   two ranks against one rank with the same batch a rank: efficiency = images/s of two / (2 x images/s of one)
peer   two ranks against PyTorch's DistributedDataParallel over gloo, two processes, the same global batch, at its best
apart  two ranks against twice the slower of two runs of one rank at the same time, which exchange nothing: what the
       machine gives to two processes that wait for each other, so that `weak` falls into its part and communication's
space  height=2 on cosmoflow:size=128, one sample, against one rank: how many times as fast
"""
import argparse
import os
import statistics
import sys

import run as single

LAUNCH = ["mpiexec", "-n", "2", "--bind-to", "core"]
WEAK = {  # batch of a rank, where it is not that of run.py
    "resnet50": None, "cosmoflow:size=64": None, "vgg16": 4, "cifar10-quick": None, "alexnet": None}
PEER = ["resnet50", "alexnet", "vgg16", "lenet5", "cifar10-quick", "googlenet", "cosmoflow:size=64"]
SPACE = ("cosmoflow:size=128", 1, 1, 3)  # model, batch, warm-up, iterations


def bench(program, model, batch, effort, launch=(), options=()):
    return [*launch, program, "bench", model, "--batch", str(batch), "--threads", "1", "--warmup", str(effort[0]),
            "--iterations", str(effort[1]), "--json", *options]


def make_weak(program, model):
    batch, *effort = single.CASES[model]
    batch = WEAK.get(model) or batch
    return single.Pair(bench(program, model, 2 * batch, effort, LAUNCH), bench(program, model, batch, effort)), batch


def make_apart(program, model):
    pair, batch = make_weak(program, model)
    return single.Apart(pair.ours, pair.peer), batch


def make_space(program, _):
    model, batch, *effort = SPACE
    return single.Pair(bench(program, model, batch, effort, LAUNCH, ("--strategy", "height=2")),
                bench(program, model, batch, effort)), batch


def make_peer(program, model):
    batch, *effort = single.CASES[model]
    peer = ["/usr/bin/python3", os.path.join(single.HERE, "peer_ranks.py"), model, "--ranks", "2", "--batch",
            str(2 * batch), "--threads", "1", "--warmup", str(effort[0]), "--iterations", str(effort[1])]
    formats = ([], ["--channels-last"])
    seconds = [min(single.run(peer + option, single.BEST)["iteration_s"] for _ in range(2)) for option in formats]
    return single.Pair(bench(program, model, 2 * batch, effort, LAUNCH), peer + formats[seconds.index(min(seconds))],
                single.BEST), batch


ROWS = {  # what is measured: models, the pair of one, and what the ratio of images/s is divided by
    "weak": (list(WEAK), make_weak, 2.0),
    "apart": (list(WEAK), make_apart, 1.0),
    "peer": (PEER, make_peer, 1.0),
    "space": ([SPACE[0]], make_space, 1.0)}


def report(kind, model, batch, results, divisor, repeated):
    ratios = [ours["images_per_s"] / other["images_per_s"] / divisor for ours, other in results]
    rates = [statistics.median(side["images_per_s"] for side in sides) for sides in zip(*results)]
    ours = [a for a, _ in results]
    share = statistics.median(a["communication_s"] / a["iteration_s"] for a in ours)
    memory = [statistics.median(side["peak_memory_bytes"] for side in sides) / 1e9 for sides in zip(*results)]
    print(f"{kind:6s} {model:19s} {batch:7d} {rates[0]:9.1f} {rates[1]:9.1f} {single.quartiles(ratios):>18s} "
          f"{100 * share:6.0f} % {memory[0]:5.2f} {memory[1]:5.2f} {repeated:4d}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="path of convoy")
    parser.add_argument("models", nargs="*", help="of each kind; all where none is given")
    parser.add_argument("--kinds", default=",".join(ROWS), help="of rows, separated by commas")
    parser.add_argument("--pairs", type=int, default=9)
    args = parser.parse_intermixed_args()
    unknown = set(args.kinds.split(",")) - set(ROWS)
    if unknown:
        sys.exit(f"bench: no kind {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    print(f"images/s, two ranks of one thread, fp32, random data; median of {args.pairs} pairs (quartiles)")
    print(f"{'row':6s} {'model':19s} {'a rank':>7s} {'convoy':>9s} {'other':>9s} {'ratio':>18s} {'communic.':>8s} "
          f"{'GB':>4s} {'GB':>5s} {'rep.':>4s}")
    for kind in args.kinds.split(","):
        models, make, divisor = ROWS[kind]
        for model in [m for m in models if not args.models or m in args.models]:
            pair, batch = make(args.program, model)
            results, repeated = single.measure(pair, args.pairs)
            report(kind, model, batch, results, divisor, repeated)


if __name__ == "__main__":
    main()
