#!/usr/bin/python3
"""Convoy against Debian's PyTorch, and against itself, in alternating pairs on this machine.

peer       against PyTorch with as many threads
threads    two threads against one
apart      two threads against two processes of one thread that run at the same time, each on a core of its own and at
           twice the rate of the slower: what the machine gives to two cores at once
recompute  with `--recompute cheap` against without, one thread

A pair is one run of each, one right after the other; before each pair a probe measures the machine, and where it is off
its median by more than 5 % the pair waits and the probe is repeated (and counted), as often as there are pairs at the
most. The figure is the median of the paired ratios with its quartiles. The peer is at its best: glibc keeps its memory
and asks for huge pages, and of NCHW and channels-last the faster one, found first. `--out-of-the-box` adds the peer as
it comes.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BEST = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "67108864",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
CASES = {  # model: (batch, warm-up, iterations) of one run
    "resnet50": (16, 1, 2), "alexnet": (32, 1, 3), "vgg16": (8, 1, 1), "googlenet": (16, 1, 2),
    "cosmoflow:size=64": (4, 1, 3), "cifar10-quick": (128, 5, 20), "lenet5": (64, 20, 100),
    "resnet18:size=32": (64, 2, 5), "densenet121:size=32": (64, 1, 3), "mobilenet-v2:size=32": (64, 2, 5),
    "efficientnet-b0:size=32": (64, 2, 5)}


def run(command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}, check=False, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def probe():
    """Seconds of a fixed piece of arithmetic: what the machine gives right now."""
    start = time.perf_counter()
    sum(i * i for i in range(1_000_000))
    return time.perf_counter() - start


def arguments(model, threads):
    batch, warmup, iterations = CASES[model]
    return [model, "--batch", str(batch), "--threads", str(threads), "--warmup", str(warmup), "--iterations",
            str(iterations)]


def bench(program, model, threads, *options):
    return [program, "bench", *arguments(model, threads), *options, "--json"]


class Pair:
    """Two commands that run one after the other, with the environment of the second; `ours` is what is judged."""
    def __init__(self, ours, other, other_env=None):
        self.ours, self.peer, self.peer_env = ours, other, other_env or {}

    def run_peer(self):
        return run(self.peer, self.peer_env)


class Apart(Pair):
    """The other side is its command once on each of two cores, at the same time."""
    def run_peer(self):
        cores = sorted(os.sched_getaffinity(0))[:2]
        both = [subprocess.Popen(["taskset", "-c", str(core), *self.peer], stdout=subprocess.PIPE, text=True)
                for core in cores]
        results = [json.loads(process.communicate()[0]) for process in both]
        return {"images_per_s": 2 * min(one["images_per_s"] for one in results),
                "peak_memory_bytes": max(one["peak_memory_bytes"] for one in results)}


class Peers(Pair):
    """Convoy and PyTorch."""
    def __init__(self, program, model, threads):
        peer = ["/usr/bin/python3", os.path.join(HERE, "peer.py"), *arguments(model, threads)]
        super().__init__(bench(program, model, threads), peer, BEST)

    def choose_format(self):
        """The peer's faster format, by two runs of each in turn."""
        options = ([], ["--channels-last"])
        seconds = [min(run(self.peer + option, BEST)["iteration_s"] for _ in range(2)) for option in options]
        best = seconds.index(min(seconds))
        self.peer += options[best]
        return "channels-last" if best else "NCHW"


def measure(case, pairs):
    """Paired results; pairs during which the machine changed are repeated."""
    probes = [probe() for _ in range(5)]
    results, repeated = [], 0
    while len(results) < pairs:
        now = min(probe() for _ in range(3))
        usual = statistics.median(probes)
        probes.append(now)
        if abs(now / usual - 1.0) > 0.05 and repeated < pairs:  # bounded: a noisy machine must come to an end too
            repeated += 1
            time.sleep(1)
            continue
        results.append((run(case.ours), case.run_peer()))
        ours, peer = (side["images_per_s"] for side in results[-1])
        print(f"  pair {len(results)} of {pairs}: {ours:.2f} against {peer:.2f} images/s", file=sys.stderr, flush=True)
    return results, repeated


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def summarise(results):
    """What all rows show: images/s of both sides, their paired ratios, memory of both."""
    sides = list(zip(*results))
    rates = [statistics.median(one["images_per_s"] for one in side) for side in sides]
    memory = [statistics.median(one["peak_memory_bytes"] for one in side) / 1e9 for side in sides]
    return rates, quartiles([ours["images_per_s"] / other["images_per_s"] for ours, other in results]), memory


def report(model, threads, case, results, peer_format, repeated):
    rates, ratio, memory = summarise(results)
    primitives = run([*case.ours, "--primitives"])["primitives_floor_s"]  # in the same sitting, once
    floor = primitives / statistics.median(ours["iteration_s"] for ours, _ in results)
    print(f"{model:23s} {CASES[model][0]:5d} {threads:7d} {rates[0]:9.1f} {rates[1]:9.1f} {peer_format:>13s} "
          f"{ratio:>18s} {100 * floor:6.0f} % {memory[0]:5.2f} {memory[1]:5.2f} {repeated:4d}", flush=True)


def show_peer(args, model):
    for threads in (int(t) for t in args.threads.split(",")):
        case = Peers(args.program, model, threads)
        peer_format = case.choose_format()
        results, repeated = measure(case, args.pairs)
        report(model, threads, case, results, peer_format, repeated)
        if args.out_of_the_box:
            plain = run(case.peer)["images_per_s"]
            print(f"{'':23s} {'':5s} {'':7s} {'':9s} {plain:9.1f} {'out of the box':>13s}", flush=True)


def show_selves(args, model, case):
    results, repeated = measure(case, args.pairs)
    rates, ratio, memory = summarise(results)
    print(f"{model:23s} {CASES[model][0]:5d} {rates[0]:9.1f} {rates[1]:9.1f} {ratio:>18s} {memory[0]:5.2f} "
          f"{memory[1]:5.2f} {repeated:4d}", flush=True)


def show_threads(args, model):
    show_selves(args, model, Pair(bench(args.program, model, 2), bench(args.program, model, 1)))


def show_apart(args, model):
    show_selves(args, model, Apart(bench(args.program, model, 2), bench(args.program, model, 1)))


def show_recompute(args, model):
    show_selves(args, model, Pair(bench(args.program, model, 1, "--recompute", "cheap"), bench(args.program, model, 1)))


PEER_HEAD = (f"{'model':23s} {'batch':>5s} {'threads':>7s} {'convoy':>9s} {'pytorch':>9s} {'its format':>13s} "
             f"{'ratio':>18s} {'of floor':>8s} {'GB':>5s} {'GB':>5s} {'rep.':>4s}")


def make_head(ours, other):
    return f"{'model':23s} {'batch':>5s} {ours:>9s} {other:>9s} {'ratio':>18s} {'GB':>5s} {'GB':>5s} {'rep.':>4s}"


ROWS = {  # what is measured: its head, what measures and shows a model, models where none is given
    "peer": (PEER_HEAD, show_peer, list(CASES)),
    "threads": (make_head("two", "one"), show_threads, list(CASES)),
    "apart": (make_head("two", "apart"), show_apart, list(CASES)),
    "recompute": (make_head("cheap", "none"), show_recompute, ["resnet50", "googlenet", "densenet121:size=32"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="path of convoy")
    parser.add_argument("models", nargs="*", help="all of a kind where none is given")
    parser.add_argument("--kinds", default="peer", help=f"of rows, separated by commas: {', '.join(ROWS)}")
    parser.add_argument("--threads", default="1,2", help="counts, separated by commas, beside the peer")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--out-of-the-box", action="store_true", help="show the peer without its best settings too")
    args = parser.parse_intermixed_args()
    unknown = set(args.kinds.split(",")) - set(ROWS) or set(args.models) - set(CASES)
    if unknown:
        sys.exit(f"bench: no {', '.join(sorted(unknown))}; there are {', '.join(ROWS)} of {', '.join(CASES)}")
    print(f"images/s, forward + backward + SGD momentum, fp32, random data; median of {args.pairs} pairs (quartiles)")
    for kind in args.kinds.split(","):
        head, show, models = ROWS[kind]
        print(head)
        for model in args.models or models:
            show(args, model)


if __name__ == "__main__":
    main()
