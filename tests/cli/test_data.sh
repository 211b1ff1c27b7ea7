#!/bin/bash
# convoy data check as a user runs it. Argument 1 is the program; the sets of tests/data were written by other tools.
data=$(cd "$(dirname "$0")/../data" && pwd)
. "$(dirname "$0")/setup.sh"

if ! "$convoy" data --help >/dev/null 2>&1; then # a plan-only build says what is missing
    expect 2 "$convoy" data check "$data/mnist"
    has err "error: 'data' is not in this build"
    finish
fi

# MNIST's first 200 images: by NumPy, the mean of x / 255 is 0.126804 and the deviation 0.303659
expect 0 "$convoy" data check "$data/mnist"
has out "idx, samples of 1x28x28"
has out "  samples       200"
has out "  range         0 to 1"
has out "  mean          0.1268"
has out "  std           0.3037"
has out "  classes       10, of 13 to 26 samples"
has out "every sample can be read"
[ ! -s err ] || fail "standard error is not empty: $(cat err)"

expect 0 "$convoy" data check "$data/cifar10" --json
[ "$(wc -l <out)" -eq 1 ] || fail "the JSON takes more than one line"
has out '"kind":"cifar10","sample":[3,32,32],"target":"classes","outputs":10,"splits":[{"split":"train","samples":5,'
has out '"class_counts":[1,1,0,1,1,0,0,1,0,0]}' # labels (3 k + 1) mod 10 of k = 0 to 4: 1, 4, 7, 0, 3
has out '{"split":"test","samples":2,'
expect 0 "$convoy" data check "$data/cifar10" --quiet
has out "; 5 without any"
expect 0 "$convoy" data check "$data/cifar100" --data-kind cifar100
has out "  classes       100, of 0 to 1 samples; 98 without any"

# damage: exit code 3, one line that names file and sample
cp -r "$data/cifar10" damaged
printf '\012' | dd of=damaged/data_batch_4.bin bs=1 conv=notrunc 2>/dev/null
expect 3 "$convoy" data check damaged
has err "error: damaged/data_batch_4.bin: sample 0 has label 10"
[ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
[ ! -s out ] || fail "a report of a damaged set: $(cat out)"
truncate -s 3000 damaged/data_batch_2.bin
expect 3 "$convoy" data check damaged --json
has err "error: damaged/data_batch_2.bin: 3000 bytes"
expect 3 "$convoy" data check no-such-folder
has err "error: no-such-folder"

# training sees the same samples, whatever the count of threads that read them: the same weights, bit by bit
small="--data digits --train-samples 200 --test-samples 20 --batch 32 --threads 1 --crop-padding 3 --hflip 0.3 --quiet"
for threads in 1 2 3; do
    expect 0 "$convoy" train lenet5 $small --epochs 2 --data-threads $threads --out run$threads
    weights=$(find run$threads -name model.safetensors | sort | tail -1)
    cp "$weights" weights$threads
done
cmp weights1 weights2 && cmp weights1 weights3 || fail "weights depend on the count of data threads"
expect 0 "$convoy" train lenet5 ${small/--hflip 0.3/} --epochs 2 --out plain
cmp -s weights1 "$(find plain -name model.safetensors | sort | tail -1)" && fail "--hflip changes nothing"
expect 2 "$convoy" train lenet5 $small --data-threads 0
has err "error: --data-threads: expected"

# cosmo can be learned: targets are uniform in [-1, 1), so that their mean leaves an error of 1/3
cat >small.yaml <<'END'
name: small
input: [1, 12, 12, 12]
layers:
  - {name: conv1, kind: conv, filters: 8, kernel: 3}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv, filters: 16, kernel: 2, stride: 2}
  - {name: relu2, kind: relu}
  - {name: pool, kind: global-pool}
  - {name: flat, kind: flatten}
  - {name: fc1, kind: dense, outputs: 32}
  - {name: relu3, kind: relu}
  - {name: fc2, kind: dense, outputs: 4}
  - {name: loss, kind: mean-squared-error}
END
expect 0 "$convoy" train ./small.yaml --data cosmo --train-samples 768 --test-samples 128 --batch 8 --optimizer adam \
    --lr 0.005 --epochs 4 --threads 1 --json --quiet
awk -F'"validation_loss":' '{ exit !($2 + 0 > 0 && $2 + 0 < 0.22) }' out || fail "cosmo is not learned: $(cat out)"
expect 3 "$convoy" train resnet18 --data cosmo
has err "error: cosmo: labels are values"

expect 2 "$convoy" data check digits
has err "error: digits: made up by the program"
expect 2 "$convoy" data
has err "convoy data check DIR"
expect 2 "$convoy" data chekc "$data/mnist"
has err "convoy data check DIR"
expect 2 "$convoy" data check "$data/mnist" --data-kind ixd
has err "did you mean 'idx'?"

finish
