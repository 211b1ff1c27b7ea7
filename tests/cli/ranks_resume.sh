#!/bin/bash
# Runs on many ranks, twice and after a resume: the same bits under the same strategy, the same course under another.
# The arguments are the program and mpiexec.
. "$(dirname "$0")/setup.sh"
launch=$2

# 13 iterations an epoch, the last of half a batch: 30 of them end in the third.
options="--data digits --train-samples 100 --test-samples 8 --batch 8 --epochs 9 --steps 30 --threads 1 --layout rule
    --no-metrics-rates --checkpoint-every 10 --keep-checkpoints 9 --quiet"

# cut FROM TO: a copy of the run as it was when the checkpoint of iteration 10 had been written
cut() {
    cp -r "$1" "$2"
    find "$2/checkpoints" -mindepth 1 -maxdepth 1 ! -name step-00000010 -exec rm -r {} +
    sed -i '/"event":"checkpoint","step":10,/q' "$2/metrics.jsonl"
    [ -f "$2/checkpoints/step-00000010/model.safetensors" ] || fail "$1 has no checkpoint of iteration 10"
}

# made RUN: its iterations, epochs and checkpoints after the tenth iteration
made() {
    sed '1,/"event":"checkpoint","step":10,/d; /"event":"start"/d' "$1/metrics.jsonl"
}

# follows RUN WHOLE: losses of the 20 iterations that are left are those of the whole run within 1e-4
follows() {
    python3 - "$@" <<'PY' || fail "$1 does not go on as $2"
import json, sys
def losses(run):
    lines = [json.loads(line) for line in open(run + "/metrics.jsonl")]
    return {line["step"]: line["loss"] for line in lines if line["event"] == "step" and line["step"] > 10}
found, expected = losses(sys.argv[1]), losses(sys.argv[2])
assert sorted(found) == sorted(expected) == list(range(11, 31)), (sorted(found), sorted(expected))
for step in expected:
    assert abs(found[step] / expected[step] - 1) <= 1e-4, (step, found[step], expected[step])
assert len(set(expected.values())) > 10, expected
PY
}

# the same run twice, and one that goes on under the strategy that it had
expect 0 $launch -n 2 "$convoy" train lenet5:size=20 $options --out whole
expect 0 $launch -n 2 "$convoy" train lenet5:size=20 $options --out again
cmp whole/metrics.jsonl again/metrics.jsonl || fail "the same run on two ranks has other metrics"
cut again on
expect 0 $launch -n 2 "$convoy" train --resume on --quiet
made whole >expected
made on >found
[ "$(grep -c '"event":"step"' expected)" -eq 20 ] || fail "a run tells of other iterations: $(cat expected)"
cmp expected found || fail "a resumed run has other metrics: $(diff expected found | head -4)"

# from three ranks to two, to rows instead of samples, to one rank alone
expect 0 $launch -n 3 "$convoy" train lenet5:size=20 $options --out three
for to in "2 data" "3 spatial" "1 serial"; do
    run=three-${to/ /-}
    cut three "$run"
    expect 0 $launch -n ${to% *} "$convoy" train --resume "$run" --strategy ${to#* } --quiet
    follows "$run" three
done
finish
