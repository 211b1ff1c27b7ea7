#!/bin/bash
# A number that is none ends all ranks with 5, whichever of them has it: one line names the layer, and the checkpoint
# before it stays and goes on. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

diverges() {
    local ranks=$1
    shift
    expect 5 timeout 40 "$launch" -n "$ranks" "$convoy" $run --epochs 2 --learning-rate 1e6 "$@"
    says_once "layer [a-z0-9]+: "
}
for strategy in data height=2 channel pipeline; do
    diverges 2 --strategy $strategy
done
diverges 4

expect 0 timeout 40 "$launch" -n 2 "$convoy" $run --steps 5 --out run
cp -r run/checkpoints/step-00000005 kept
expect 5 timeout 40 "$launch" -n 2 "$convoy" train --resume run --steps 20 --learning-rate 1e6 --quiet
diff -r kept run/checkpoints/step-00000005 >diff || fail "NaN: the checkpoint before it changed: $(cat diff)"
rm -rf run/checkpoints/step-0000001*
expect 0 timeout 40 "$launch" -n 2 "$convoy" train --resume run --steps 10 --learning-rate 0.01 --quiet
finish
