#!/bin/bash
# convoy calibrate --import: kernels from elsewhere, on the peaks of another machine. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

"$convoy" calibrate --help >/dev/null 2>&1 || finish # not in a plan-only build

# 8 relus at half of the V100's 900 GB/s: 8 bytes an element, 4 in and 4 out.
echo "kernel,pass,n,c,h,w,seconds" >kernels.csv
for n in 8 16 32 64 128 256 512 1024; do
    awk -v n=$n 'BEGIN { printf "relu,forward,%d,64,32,32,%.9g\n", n, 8 * n * 64 * 32 * 32 / 450e9 }' >>kernels.csv
done
says 2 "--machine has to say" "$convoy" calibrate --import kernels.csv -o mine.yaml
expect 0 "$convoy" calibrate --import kernels.csv --machine dgx1-v100 -o mine.yaml
has out "relu"
has mine.yaml "nvlink"
has mine.yaml "fitted to 8 measured kernels"
grep -A5 "kernel: relu" mine.yaml | grep -q "bandwidth: {value: 0.[45]" || fail "no share near a half: $(cat mine.yaml)"
expect 0 "$convoy" plan lenet5 --machine mine.yaml --ranks 2 --batch 64
echo "kernel,pass,seconds" >empty.csv
says 2 "empty.csv: no kernel in it" "$convoy" calibrate --import empty.csv --machine dgx1-v100 -o mine.yaml
finish
