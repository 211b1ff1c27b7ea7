#!/bin/bash
# Train lenet5 on synthetic digits and hold the result against 98 %. Usage: demo.sh PROGRAM
set -eu
program=$1
run=runs/demo
rm -rf "$run"
"$program" train lenet5 --data digits --epochs 2 --out "$run"

accuracy=$(sed -n 's/.*"validation_accuracy": *\([0-9.eE+-]*\).*/\1/p' "$run/metrics.jsonl" | tail -n 1)
if ! awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 0.98) }'; then
    echo "demo: accuracy ${accuracy:-unknown} on the test split, expected at least 0.98" >&2
    exit 1
fi
cat <<END

The run is in $run. Try next:
  $program eval $run --data digits     evaluate its best checkpoint again
  $program model lenet5                     the layers, their shapes, parameters and FLOP
  $program bench resnet50 --batch 8         images per second of this machine
  $program train --help                     all that can be asked for
END
