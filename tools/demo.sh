#!/bin/bash
# The whole loop on this machine, in about two minutes on two cores: measure it, plan for two ranks, train lenet5 on
# synthetic digits as the plan says, hold what it took against what was predicted, and show all of it on a page. The
# accuracy is held against 98 %. Usage: demo.sh PROGRAM
set -eu
program=$1
run=runs/demo machine=runs/demo-machine.yaml plan=runs/demo-plan.yaml
batch=64 ranks=2
launch=()

# A build without MPI has one rank. Open MPI asks for leave to be root's, and to put two ranks on one core.
if command -v mpiexec >/dev/null && ldd "$program" | grep -q libmpi; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_btl_vader_single_copy_mechanism=none
    launch=(mpiexec -n "$ranks" --bind-to none)
else
    echo "demo: no MPI here, so one rank does it all"
    ranks=1
fi

# step WORDS COMMAND...: say what comes, and run it
step() {
    printf '\n==> %s\n' "$1" >&2
    shift
    printf '    %s\n\n' "$*" >&2
    "$@"
}

mkdir -p runs
rm -rf "$run" "$machine" "${machine%.yaml}" "$plan"
step "measure this machine, briefly" "${launch[@]}" "$program" calibrate --budget quick --model lenet5 \
    --batch $((batch / ranks)) -o "$machine" >runs/demo-calibration.txt
echo "    the tables of what was measured are in runs/demo-calibration.txt"
step "plan for $ranks ranks" "$program" plan lenet5 --machine "$machine" --ranks "$ranks" --batch "$batch" --top 5 \
    --save "$plan"
step "train as planned" "${launch[@]}" "$program" train --plan "$plan" --data digits --epochs 2 --out "$run"

accuracy=$(sed -n 's/.*"validation_accuracy": *\([0-9.eE+-]*\).*/\1/p' "$run/metrics.jsonl" | tail -n 1)
if ! awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 0.98) }'; then
    echo "demo: accuracy ${accuracy:-unknown} on the test split, expected at least 0.98" >&2
    exit 1
fi
step "hold it against the prediction" "$program" compare "$run"
step "show it" "$program" report "$run"
cat <<END

Open $run/report.html in a browser. The run is in $run. Try next:
  $program eval $run --data digits     evaluate its best checkpoint again
  $program model lenet5                     the layers, their shapes, parameters and FLOP
  $program bench resnet50 --batch 8         images per second of this machine
  $program report resnet50 --machine abci --ranks 1:256     how a training scales on a cluster
  $program train --help                     all that can be asked for
END
