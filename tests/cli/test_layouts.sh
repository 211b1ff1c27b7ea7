#!/bin/bash
# Measuring layouts is announced where somebody waits for it, and then alone. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

"$convoy" train --help >/dev/null 2>&1 || exit 0 # a plan-only build does not train
"$convoy" doctor | grep -q "onednn" || exit 0    # one backend has one layout

cat >net.yaml <<'END'
name: net
input: [1, 12, 12]
layers:
  - {name: conv, kind: conv, filters: 8, kernel: 3}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: dense, outputs: 10}
  - {name: loss, kind: softmax-cross-entropy}
END
bench="$convoy bench ./net.yaml --iterations 1 --threads 1 --batch"
train="$convoy train ./net.yaml --data random --train-samples 8 --test-samples 2 --steps 1 --threads 1"

# silent COMMAND...: it says nothing on standard error
silent() {
    expect 0 "$@"
    [ ! -s err ] || fail "$*: $(cat err)"
}

says 0 "measuring layouts, once for this model, batch and machine; remembered in $XDG_CACHE_HOME/convoy" $bench 8
[ "$(ls "$XDG_CACHE_HOME"/convoy | grep -c '^plan-.*yaml$')" -eq 1 ] || fail "nothing is remembered"
silent $bench 8
silent $bench 7 --layout rule
silent $bench 6 --json
silent $bench 5 --quiet
says 0 "remembered in elsewhere" $bench 8 --cache elsewhere

expect 0 $train --batch 4 --micro-batches 2 --recompute all
has err "measuring layouts"
has err "batch 4 in 2 parts"
has err ", recompute all"
expect 0 $train --batch 4 --micro-batches 2
grep -q "measuring layouts" err && fail "what is remembered is measured again"
expect 0 $train --batch 4 --micro-batches 2 --layout measure
has err "measuring layouts"

# Winograd's algorithm is the clock's to choose, and nobody's with --deterministic-kernels, which is measured apart
silent $bench 8
says 0 "remembered in" $bench 8 --deterministic-kernels
silent $bench 8 --deterministic-kernels
cat >wide.yaml <<'END'
name: wide
input: [16, 12, 12]
layers:
  - {name: conv1, kind: conv, filters: 32, kernel: 3, padding: 1}
  - {name: conv2, kind: conv, filters: 32, kernel: 3, padding: 1}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: dense, outputs: 10}
  - {name: loss, kind: softmax-cross-entropy}
END
train="$convoy train ./wide.yaml --data random --train-samples 8 --test-samples 2 --batch 4 --threads 1 --epochs 1"
expect 0 $train --layout blocked --steps 1 --out first
grep -q winograd first/plan.yaml && fail "a layout that is named asks the clock"
sed -i '/layer: "conv2"/s/}$/, winograd: [forward, backward-data, backward-weights]}/' first/plan.yaml
cp -r first second
cp -r first direct
for run in first second; do # as plan.yaml says, to the same bits
    expect 0 "$convoy" train --resume $run --layout auto --epochs 2 --steps 0
    has $run/plan.yaml 'winograd: [forward, backward-data, backward-weights]'
done
newest=$(ls -d first/checkpoints/step-* | tail -1)
cmp "$newest/model.safetensors" "second/${newest#first/}/model.safetensors" || fail "two resumed runs differ"
expect 0 "$convoy" train --resume direct --layout auto --epochs 2 --steps 0 --deterministic-kernels
grep -q winograd direct/plan.yaml && fail "--deterministic-kernels goes by Winograd's algorithm"
has direct/config.yaml 'deterministic-kernels: yes'

finish
