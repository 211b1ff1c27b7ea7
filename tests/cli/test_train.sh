#!/bin/bash
# convoy train, eval and bench as a user runs them: a run, its end and its stop, resume, what is printed where.
# Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

if ! "$convoy" train --help >/dev/null 2>&1; then # a plan-only build says what is missing
    for command in train eval bench; do
        expect 2 "$convoy" $command lenet5
        has err "error: '$command' is not in this build"
    done
    finish
fi

small="--data digits --train-samples 320 --test-samples 64 --batch 32 --threads 1"

# a run: progress on standard error, the result on standard output, both without escape sequences in a file
expect 0 "$convoy" train lenet5 $small --epochs 1 --out run
has err "epoch 1/1 done"
has err "10 steps"
has err "checkpoint of step 10"
has out "test accuracy"
has out "next            convoy eval run"
grep -q "$(printf '[\033\r]')" out err && fail "an escape sequence in a file"
awk 'length > 100 { print "FAILED: " FILENAME ", line " FNR ": " length " columns"; bad = 1 } END { exit bad }' out ||
    failures=$((failures + 1))
has run/config.yaml 'model: "lenet5"'
has run/config.yaml 'batch: 32'

# the options of the run hold when it is resumed; what would make its place meaningless is refused
expect 0 "$convoy" train --resume run --epochs 2 --json --log-view
has out '"step":20,"epoch":2,'
has out '"profile":[{"step":'
has err "resume: --epochs 2 (the run had 1)"
has err "at step 10"
[ "$(wc -l <out)" -eq 1 ] || fail "the JSON takes more than one line"
expect 2 "$convoy" train --resume run --epochs 3 --batch 16
has err "error: --batch 16: the run began with 32"

# steps that end within an epoch are told as what they are, and a resumed run makes the epoch whole
expect 0 "$convoy" train lenet5 $small --steps 7 --out part
has err "epoch 1 in part  loss "
expect 0 "$convoy" train --resume part --steps 10
has err "epoch 1 done  loss "
[ "$(grep -c '"event":"epoch"' part/metrics.jsonl)" -eq 1 ] || fail "the part of an epoch stays in the metrics"
cmp -s part/checkpoints/step-00000010/model.safetensors run/checkpoints/step-00000010/model.safetensors ||
    fail "an epoch in two parts ends with other weights"

# interrupted and resumed: the same weights, bit by bit, as in one go
expect 0 "$convoy" train lenet5 $small --epochs 2 --out whole --quiet
[ ! -s err ] || fail "--quiet: $(cat err)"
a=$(find whole -name model.safetensors | sort | tail -1)
b=$(find run -name model.safetensors | sort | tail -1)
cmp -s "$a" "$b" || fail "a resumed run ends with other weights: $a, $b"

# eval: by the run, and by a file
expect 0 "$convoy" eval run --json --threads 1
has out '"samples":64,'
has out '"data":"digits"'
expect 0 "$convoy" eval lenet5 --checkpoint "$a" --data digits --test-samples 64 --threads 1
has out "of 64 samples"
# a run's checkpoints, the newest of them, its file: the same weights, and the run's options are found from each
step=$(dirname "$b")
expect 0 "$convoy" eval "$step" --json --threads 1
result=$(grep -o '"correct":.*"loss":[^,]*' out)
for of_run in "$(dirname "$step")" "$(dirname "$step")/" "$step/" "$b"; do
    expect 0 "$convoy" eval "$of_run" --json --threads 1
    [ "$(grep -o '"correct":.*"loss":[^,]*' out)" = "$result" ] || fail "eval $of_run: other figures: $(cat out)"
    expect 0 "$convoy" eval lenet5 --checkpoint "$of_run" --data digits --test-samples 64 --batch 32 --json --threads 1
    [ "$(grep -o '"correct":.*"loss":[^,]*' out)" = "$result" ] || fail "eval --checkpoint $of_run: $(cat out)"
done
(cd "$step" && "$convoy" eval . --threads 1 --quiet >/dev/null 2>&1) || fail "eval of the folder that one is in"
mkdir nothing
expect 7 "$convoy" eval lenet5 --checkpoint nothing --data digits
has err "error: nothing: no checkpoint in it; expected a run, its folder of checkpoints, a checkpoint or a safetensors"
expect 7 "$convoy" eval lenet5 --checkpoint gone --data digits
has err "error: gone: there is nothing of that name; expected a run, its folder of checkpoints"
expect 2 "$convoy" eval lenet5 --data digits
has err "error: convoy eval needs weights"

# a signal saves and stops with 75; without a run folder as well
"$convoy" train lenet5 --data digits --threads 1 --epochs 1000 --out stopped >out 2>err </dev/null &
pid=$!
for _ in $(seq 600); do
    [ -e stopped/config.yaml ] && break
    sleep 0.1
done
kill -USR1 $pid
wait $pid
code=$?
[ $code -eq 75 ] || fail "SIGUSR1: ended with $code, expected 75: $(cat err)"
has out "next            convoy train --resume stopped"
grep -q "^error:" err && fail "a stop is no error: $(cat err)"
[ -n "$(find stopped -name state.json)" ] || fail "SIGUSR1: no checkpoint"

# faults have their codes, and one line
expect 3 "$convoy" train lenet5 --data no-such-folder
has err "error: no-such-folder"
[ "$(grep -c '^error:' err)" -eq 1 ] || fail "more than one error: $(cat err)"
expect 5 "$convoy" train lenet5 $small --learning-rate 1e6
has err "error: "
expect 2 "$convoy" train lenet5 $small --backend none

# bench: the keys of the contract, in order
expect 0 "$convoy" bench lenet5 --batch 8 --threads 1 --warmup 1 --iterations 2 --json
keys="model strategy ranks threads_per_rank global_batch precision images_per_s iteration_s floor_s forward_s"
keys="$keys backward_s update_s communication_s peak_memory_bytes recompute_s primitives_floor_s iterations measured_s"
keys="$keys step_overhead_s probe_s steps"
[ "$(sed 's/\(.*"steps":\).*/\1/' out | grep -o '"[a-z_]*":' | tr -d '":' | paste -sd' ')" = "$keys" ] ||
    fail "keys of bench: $(cat out)"
has out '"model":"lenet5","strategy":"serial","ranks":1,"threads_per_rank":1,"global_batch":8,"precision":"fp32",'
expect 0 "$convoy" bench lenet5 --batch 8 --threads 1 --warmup 1 --iterations 2 --primitives
has out "floor"
has out "primitives  "
awk 'length > 100 { print "FAILED: bench, line " NR ": " length " columns"; bad = 1 } END { exit bad }' out ||
    failures=$((failures + 1))
grep -q recompute out && fail "bench tells of recomputation where there is none: $(cat out)"
expect 0 "$convoy" bench resnet18:size=32,classes=10 --batch 4 --threads 1 --warmup 0 --iterations 1 --recompute cheap
has out "  recompute "

# sum KEY: of the steps of bench
sum() {
    sed 's/.*"steps"://' out | grep -oE "\"$1\":[-+0-9.e]+" | cut -d: -f2 | awk '{ sum += $1 } END { print sum }'
}
# near A B SHARE WHAT: the two differ by at most a share of the second
near() {
    awk -v a="$1" -v b="$2" -v share="$3" 'BEGIN { d = a - b; exit !(d <= share * b && -d <= share * b) }' ||
        fail "$4: $1 beside $2"
}
# figure KEY: of bench itself
figure() {
    sed 's/"steps":.*//' out | grep -oE "\"$1\":[-+0-9.e]+" | cut -d: -f2
}

# the steps of bench account for its time, and their floors for its floor; of 3 iterations each step has 3 calls
expect 0 "$convoy" bench lenet5 --batch 8 --threads 1 --warmup 1 --iterations 3 --json
[ "$(figure iterations)" = 3 ] || fail "iterations of bench: $(cat out)"
awk -v s="$(figure step_overhead_s)" 'BEGIN { exit !(s > 0 && s < 1e-3) }' || fail "step overhead: $(cat out)"
near "$(sum seconds)" "$(figure measured_s)" 0.2 "seconds of steps"
near "$(sum share)" 1 0.2 "shares of steps"
near "$(sum floor_s)" "$(awk -v f="$(figure floor_s)" 'BEGIN { print 3 * f }')" 1e-4 "floors of steps"
has out '"step":"convolution backward-weights"'
grep -q '"step":"batch","algorithm":"","calls":3,' out || fail "calls of steps: $(cat out)"
expect 0 "$convoy" bench lenet5 --batch 8 --threads 1 --warmup 0 --iterations 1 --json --primitives
near "$(sum floor_s)" "$(figure primitives_floor_s)" 1e-4 "floors of steps by primitives"

# predictions stand beside seconds where a machine is named, by the line or a plan: at a flop a nanosecond by hand, at
# 20 x 24 x 24 and 50 x 8 x 8 outputs of two operations a weight and one for the bias, 3 iterations of 8 samples
cat >plain.yaml <<'MACHINE'
name: plain
summary: "a flop takes a nanosecond"
device: {name: plain, source: "a test", cores: 1, vector-bits: 256, memory: 16 GiB, memory-bandwidth: 1 TB/s,
  peak: {fp32: 1 GFLOP/s, source: "a test"}}
MACHINE
forward_s=$(awk 'BEGIN { print 3 * 8 * (20 * 24 * 24 * (2 * 25 + 1) + 50 * 8 * 8 * (2 * 20 * 25 + 1)) * 1e-9 }')
predicted() {
    grep -o '"step":"convolution forward"[^}]*' out | grep -oE '"predicted_s":[-+0-9.e]+' | cut -d: -f2
}
few="--threads 1 --warmup 0 --iterations 3 --layout rule"
expect 0 "$convoy" bench lenet5 --batch 8 $few --json --machine ./plain.yaml
near "$(predicted)" "$forward_s" 1e-3 "predicted seconds"
expect 0 "$convoy" plan lenet5 --machine ./plain.yaml --ranks 1 --batch 8 --save plain-plan.yaml
expect 0 "$convoy" bench --plan plain-plan.yaml $few --json
near "$(predicted)" "$forward_s" 1e-3 "predicted seconds of a plan"
expect 0 "$convoy" train lenet5 $small --steps 2 --layout rule --log-view --strategy auto
has out "predict."
expect 0 "$convoy" train lenet5 $small --steps 2 --layout rule --log-view
grep -qF "predict." out && fail "something was predicted for no machine: $(cat out)"
expect 2 "$convoy" train lenet5 $small --log-view --machine no-such
has err "no-such"

# what was measured is remembered in the folder that is asked for, or nowhere
[ -n "$(ls "$XDG_CACHE_HOME"/convoy/plan-*.yaml)" ] || fail "nothing was remembered"
expect 0 "$convoy" bench lenet5 --batch 7 --threads 1 --warmup 0 --iterations 1 --cache elsewhere
[ "$(ls elsewhere | wc -l)" -eq 1 ] || fail "--cache: $(ls elsewhere)"
before=$(ls "$XDG_CACHE_HOME"/convoy | wc -l)
expect 0 "$convoy" bench lenet5 --batch 9 --threads 1 --warmup 0 --iterations 1 --layout rule
[ "$(ls "$XDG_CACHE_HOME"/convoy | wc -l)" -eq "$before" ] || fail "--layout rule remembered something"

# less memory, the same bits; a batch in parts says so in the plan
for what in none cheap all; do
    expect 0 "$convoy" train resnet18:size=32,classes=10 --data random --train-samples 12 --test-samples 4 --batch 4 \
        --threads 1 --steps 2 --recompute $what --out recompute-$what
    has recompute-$what/plan.yaml "recompute: $what"
    cmp -s recompute-none/checkpoints/step-00000002/model.safetensors \
        recompute-$what/checkpoints/step-00000002/model.safetensors || fail "--recompute $what: other weights"
done
expect 0 "$convoy" train lenet5 $small --steps 2 --micro-batches 3 --out parts
has parts/plan.yaml "micro-batches: 3"
expect 2 "$convoy" train lenet5 $small --micro-batches 100000
has err "error: micro-batches: expected 1 to the batch of"
expect 2 "$convoy" train lenet5 $small --recompute some
has err "none"

finish
