#!/bin/bash
# Data that one rank cannot read, or finds otherwise than the others, end all ranks with 3, in one line that names the
# rank and the file. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

# 160 and 32 samples as MNIST has them, all of them black
mkdir -p idx0 idx1
for set in "train 160" "t10k 32"; do
    name=${set% *} count=${set#* }
    { printf '\0\0\10\3\0\0\0\'"$(printf %o "$count")"'\0\0\0\34\0\0\0\34'
      head -c $((count * 784)) /dev/zero; } >"idx0/$name-images-idx3-ubyte"
    { printf '\0\0\10\1\0\0\0\'"$(printf %o "$count")"; head -c "$count" /dev/zero; } >"idx0/$name-labels-idx1-ubyte"
done
cp idx0/* idx1
truncate -s -1000 idx1/train-images-idx3-ubyte
options="--batch 32 --threads 1 --layout rule --quiet --timeout 2 --epochs 1"
expect 0 timeout 40 "$launch" -n 2 "$convoy" train lenet5 --data idx0 $options
for ranks in 2 4; do
    expect 3 timeout 40 "$launch" -n $((ranks - 1)) "$convoy" train lenet5 --data idx0 $options : \
        -n 1 "$convoy" train lenet5 --data idx1 $options
    says_once "rank $((ranks - 1)): .*train-images-idx3-ubyte"
done

expect 3 timeout 40 "$launch" -n 1 "$convoy" $run --epochs 2 : \
    -n 1 "$convoy" ${run/--data digits/--data nowhere} --epochs 2
says_once "rank 1: nowhere: no such data folder"
finish
