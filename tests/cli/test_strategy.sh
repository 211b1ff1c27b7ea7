#!/bin/bash
# --strategy auto and --plan FILE, as far as one rank can tell: what is decided, what contradicts it, what is noted.
. "$(dirname "$0")/setup.sh"
export OMP_NUM_THREADS=1
"$convoy" train --help >/dev/null 2>&1 || exit 0

small="--train-samples 64 --test-samples 32 --steps 2 --layout rule"

# One line says what the oracle chose; the run notes it, and is resumed without asking again.
expect 0 "$convoy" train lenet5 --data digits $small --strategy auto --out run
has err "auto: serial (predicted"
has err "--machine ethernet-cpu --ranks 1 --batch 64)"
has run/config.yaml 'strategy: "serial"'
expect 0 "$convoy" train --resume run --steps 3
grep -q "auto:" err && fail "a resumed run asked the oracle again"
says 4 "vgg16 at batch 100000 fits 1 rank of laptop in no way" \
    "$convoy" train vgg16 --data random --strategy auto --batch 100000 --machine laptop
says 2 "--micro-batches goes with a --strategy" \
    "$convoy" train lenet5 --data digits --strategy auto --micro-batches 2
says 2 "strategy sample=2: sample=2 is 2 ranks, expected 1" "$convoy" bench lenet5 --strategy sample=2

# A plan file brings model, batch and optimizer; what the line says of them must be the same, and nothing else is said.
expect 0 "$convoy" plan lenet5 --machine ethernet-cpu --ranks 1 --batch 24 --optimizer adam --save one.yaml
expect 0 "$convoy" train --plan one.yaml --data digits $small --out planned
has err "training  batch 24,"
has planned/config.yaml "optimizer: adam"
has planned/plan.yaml "optimizer: adam"

# A plan leaves formats open: with it and without it kernels are asked for the same ones, which the run notes.
grep -q '^formats:' one.yaml && fail "a plan by rule says formats: $(cat one.yaml)"
expect 0 "$convoy" train --plan one.yaml --data digits $small --out by-plan
expect 0 "$convoy" train lenet5 --data digits --batch 24 --optimizer adam $small --out by-name
for run in by-plan by-name; do sed -n '/^formats:/,/^[^ ]/p' "$run/plan.yaml" | grep 'layer:' >"$run.formats"; done
has by-plan.formats 'layer: "conv1", input: '
cmp by-plan.formats by-name.formats || fail "formats differ with a plan: $(diff by-plan.formats by-name.formats)"
expect 0 "$convoy" train lenet5 --plan one.yaml --data digits --batch 24/rank --optimizer adam $small
says 2 "--batch: the plan one.yaml is for batch 24, found 64" \
    "$convoy" train --plan one.yaml --data digits --batch 64
says 2 "--optimizer: the plan one.yaml is for adam, found sgd" \
    "$convoy" bench --plan one.yaml --optimizer sgd
says 2 "--precision: the plan one.yaml is for fp32" "$convoy" bench --plan one.yaml --precision fp64
says 2 "the plan is of another model than alexnet" "$convoy" bench alexnet --plan one.yaml
for option in "strategy serial" "micro-batches 2" "recompute all" "norm-axes none" "bucket 1MB" \
    "shard-optimizer=yes"; do
    says 2 "--${option%%[ =]*}: the plan of --plan has decided it" \
        "$convoy" train --plan one.yaml --data digits --$option
done
says 2 "--resume goes on as the plan of the run says" "$convoy" train --resume run --plan one.yaml
expect 0 "$convoy" plan lenet5 --machine ethernet-cpu --ranks 2 --batch 24 --save two.yaml
says 2 "two.yaml: the plan is for 2 ranks, found 1" "$convoy" train --plan two.yaml --data digits
expect 0 "$convoy" plan lenet5 --machine abci --ranks 1 --batch 24 --precision fp16 --save half.yaml
says 2 "half.yaml: precision fp16: training computes in fp32 or fp64" "$convoy" train --plan half.yaml --data digits

says 2 "no machine 'nowhere'" "$convoy" train lenet5 --data digits $small --machine nowhere

# What a run notes is a plan file.
expect 0 "$convoy" plan --plan planned/plan.yaml --machine ethernet-cpu
expect 0 "$convoy" bench --plan planned/plan.yaml --iterations 1 --warmup 0
finish
