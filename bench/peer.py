#!/usr/bin/python3
"""The peer of `convoy bench`: one model, trained on random data by Debian's PyTorch, as JSON.

Forward, backward and SGD with momentum in fp32, like `convoy bench`. Run by bench/run.py, which sets how glibc keeps
memory; by itself it shows PyTorch as it comes out of the box.
"""
import argparse
import json
import resource
import statistics
import sys
import time

import torch
import torch.nn as nn
import torchvision


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2, 2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)), (1, 28, 28), 10


def cifar10_quick():
    pool = dict(kernel_size=3, stride=2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(**pool), nn.ReLU(),
        nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(**pool),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(**pool),
        nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10)), (3, 32, 32), 10


def cosmoflow_64():
    layers, channels = [], 4
    for filters in (16, 32, 64, 128):  # 64 -> 4 along each axis
        layers += [nn.Conv3d(channels, filters, 3, padding=1), nn.ReLU(), nn.AvgPool3d(2)]
        channels = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 4 ** 3, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                         nn.Linear(64, 4)), (4, 64, 64, 64), 0


def from_torchvision(name, size=224, **options):
    return lambda: (getattr(torchvision.models, name)(**options), (3, size, size), 1000)


MODELS = {  # as Convoy names them
    "lenet5": lenet5, "cifar10-quick": cifar10_quick, "cosmoflow:size=64": cosmoflow_64,
    "googlenet": from_torchvision("googlenet", aux_logits=False, init_weights=False)}
for ours, theirs in (("alexnet", "alexnet"), ("vgg16", "vgg16"), ("resnet18", "resnet18"), ("resnet50", "resnet50")):
    MODELS[ours] = from_torchvision(theirs)
for ours, theirs in (("resnet18", "resnet18"), ("densenet121", "densenet121"), ("mobilenet-v2", "mobilenet_v2"),
                     ("efficientnet-b0", "efficientnet_b0")):
    MODELS[ours + ":size=32"] = from_torchvision(theirs, 32)


def require_fast_products():
    """The peer at its best: on the reference BLAS, which comes with Debian's package, AlexNet takes 3 times as long."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        mapped = maps.read()
    if "libblas.so" in mapped and "openblas" not in mapped:
        sys.exit("bench: PyTorch multiplies matrices by the slow reference BLAS: apt-get install libopenblas0-openmp")


def make_training(model, batch, channels_last, wrap=lambda net: net):
    """A function that makes one step of training on a batch; `wrap` goes around the net."""
    torch.manual_seed(1)
    net, shape, classes = MODELS[model]()
    x = torch.randn(batch, *shape)
    label = torch.randint(classes, (batch,)) if classes else torch.randn(batch, 4)
    if channels_last:
        last = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
        net = net.to(memory_format=last)
        x = x.to(memory_format=last)
    net.train()
    net = wrap(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    loss = nn.CrossEntropyLoss() if classes else nn.MSELoss()

    def step():
        optimizer.zero_grad()
        loss(net(x), label).backward()
        optimizer.step()
    return step


def add_arguments(parser):
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--channels-last", action="store_true")


def time_steps(step, args):
    """Seconds of each step behind the warm-up."""
    seconds = []
    for i in range(-args.warmup, args.iterations):
        start = time.perf_counter()
        step()
        if i >= 0:
            seconds.append(time.perf_counter() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    args = parser.parse_args()

    require_fast_products()
    torch.set_num_threads(args.threads)
    step = make_training(args.model, args.batch, args.channels_last)
    median = statistics.median(time_steps(step, args))
    print(json.dumps({"model": args.model, "global_batch": args.batch, "threads_per_rank": args.threads,
                      "iteration_s": median, "images_per_s": args.batch / median,
                      "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "version": torch.__version__}))


if __name__ == "__main__":
    main()
