#!/bin/bash
# A class for each voxel, as a user trains it. Argument 1 is the program; tests/data/maps was written by NumPy.
data=$(cd "$(dirname "$0")/../data" && pwd)
. "$(dirname "$0")/setup.sh"

if ! "$convoy" data --help >/dev/null 2>&1; then # a plan-only build has the model
    expect 0 "$convoy" model unet3d
    has out "unet3d: 19,070,563 parameters"
    finish
fi

# labels 7 e mod 4 of 3 volumes of 60 voxels: 45 of each class
expect 0 "$convoy" data check "$data/maps"
has out "npy, samples of 2x3x4x5"
has out "  classes       4, of 45 to 45 positions"
expect 0 "$convoy" data check "$data/maps" --json
has out '"target":"map","outputs":4'
has out '"class_counts":[45,45,45,45]'

# noise brings maps of the model's shape; accuracy is a share of all voxels
small="--data random --train-samples 6 --test-samples 3 --batch 2 --steps 3 --threads 1 --quiet"
for loss in cross-entropy dice; do
    expect 0 "$convoy" train unet3d:size=8,width=2,loss=$loss $small --hflip 0.5 --out $loss --json
    has out '"train_accuracy":0.'
    has out '"validation_accuracy":0.'
    expect 0 "$convoy" eval $loss
    has out "accuracy"
done
expect 0 "$convoy" bench unet3d:size=8,width=2 --batch 2 --iterations 2 --warmup 0 --threads 1
has out "images/s"

# maps of files, by a model that goes down and up; the loss falls
cat >maps.yaml <<'END'
name: maps
input: [2, 3, 4, 5]
layers:
  - {name: down, kind: conv, filters: 8, kernel: [3, 3, 3], stride: [1, 2, 2], padding: 1}
  - {name: relu, kind: relu}
  - {name: up, kind: transposed-convolution, filters: 4, kernel: 3, stride: [1, 2, 2], padding: 1,
     output-padding: [0, 1, 0]}
  - {name: loss, kind: softmax-cross-entropy}
END
train="$convoy train maps.yaml --data $data/maps --batch 3 --threads 1 --lr 0.1 --quiet --json"
loss_of() { sed 's/.*"loss":\([0-9.]*\).*/\1/' out; }
expect 0 $train --epochs 1
first=$(loss_of)
expect 0 $train --epochs 40
awk -v first="$first" -v last="$(loss_of)" 'BEGIN { exit !(last < 0.9 * first) }' ||
    fail "the loss does not fall: $first to $(loss_of)"

# what does not fit is one line
expect 3 "$convoy" train unet3d:size=8,channels=2 --data "$data/maps" --quiet
has err "train_x.npy: samples are 2x3x4x5, but the model takes 2x8x8x8"
sed 's/softmax-cross-entropy/soft-dice/; s/filters: 4/filters: 3/' maps.yaml >few.yaml
expect 3 "$convoy" train few.yaml --data "$data/maps" --batch 3 --quiet
has err "train_y.npy: sample 0 has label 3, but the model has 3 classes"
expect 3 "$convoy" train few.yaml --data cosmo --quiet
has err "cosmo: labels are values, but the model's loss takes a class for each position"
expect 2 "$convoy" model unet3d:size=12
has err "unet3d: size: found 12, expected a multiple of 8"
finish
