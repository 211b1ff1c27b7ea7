#!/bin/bash
# Steps a second of the oracle's simulation, how fast it bounds and searches strategies, how long a study takes, where
# they were built; then throughput of training, beside PyTorch's where it is installed.
# Usage: bench.sh PROGRAM [option of bench/run.py ...]
set -eu
program=$1
shift
for name in simulate search sweep; do
    bench=$(dirname "$program")/bench_$name
    if [ -x "$bench" ]; then
        "$bench"
    fi
done
if /usr/bin/python3 -c 'import torch, torchvision' 2>/dev/null; then
    exec /usr/bin/python3 "$(dirname "$0")/../bench/run.py" "$program" --kinds peer,threads,apart,recompute "$@"
fi
echo "bench: Convoy alone; beside PyTorch: apt-get install python3-torch python3-torchvision libopenblas0-openmp" >&2
for model in lenet5 cifar10-quick resnet18 resnet50; do
    "$program" bench "$model" --batch 16
done
