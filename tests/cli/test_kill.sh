#!/bin/bash
# kill -9 at random moments, resume, and the weights are those of the run that was left alone, bit for bit; and the
# other ends of a run: a signal, NaN, a damaged checkpoint. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

"$convoy" train --help >/dev/null 2>&1 || exit 0 # a plan-only build does not train

# dropout, batch norm and a tail batch: everything that a resume must restore
cat >net.yaml <<'MODEL'
name: net
input: [1, 28, 28]
layers:
  - {name: conv1, kind: conv, filters: 8, kernel: 5, stride: 2}
  - {name: bn1, kind: batch-norm}
  - {name: relu1, kind: relu}
  - {name: flatten, kind: flatten}
  - {name: drop, kind: dropout, probability: 0.3}
  - {name: fc, kind: dense, outputs: 10}
  - {name: loss, kind: softmax-cross-entropy}
MODEL
options="--data digits --train-samples 310 --test-samples 50 --batch 32 --threads 1 --schedule cosine"
options="$options --checkpoint-every 4"

begin_ns=$(date +%s%N)
"$convoy" train ./net.yaml $options --epochs 6 --out whole --quiet >/dev/null || fail "the run that is left alone"
whole_ms=$((($(date +%s%N) - begin_ns) / 1000000))
newest() { ls -d "$1"/checkpoints/step-???????? | tail -n 1; }

RANDOM=7
kills=0
"$convoy" train ./net.yaml $options --epochs 6 --out killed --quiet >/dev/null 2>&1 &
for _ in $(seq 60); do
    pid=$!
    delay_ms=$((whole_ms * (10 + RANDOM % 50) / 100)) # a share of the whole run, so that fast machines are caught too
    sleep "$((delay_ms / 1000)).$(printf %03d $((delay_ms % 1000)))"
    if kill -9 $pid 2>/dev/null; then
        kills=$((kills + 1))
    fi
    wait $pid 2>/dev/null
    if [ -d killed/checkpoints/step-00000060 ]; then
        [ $kills -ge 1 ] && break
        rm -rf killed
    fi
    if [ -n "$(ls -d killed/checkpoints/step-???????? 2>/dev/null)" ]; then
        "$convoy" train --resume killed --quiet >/dev/null 2>err &
    else
        rm -rf killed
        "$convoy" train ./net.yaml $options --epochs 6 --out killed --quiet >/dev/null 2>err &
    fi
done
wait
[ -d killed/checkpoints/step-00000060 ] || "$convoy" train --resume killed --quiet >/dev/null || fail "the last resume"
[ $kills -ge 1 ] || fail "nothing was killed"
for file in model.safetensors optimizer.safetensors; do
    cmp "$(newest whole)/$file" "$(newest killed)/$file" || fail "$file differs after $kills kills"
done
[ "$(grep -c '"event": *"step"' killed/metrics.jsonl)" -eq 60 ] || fail "metrics.jsonl has not each step once"

# a signal: saved, code 75, and the same end
"$convoy" train ./net.yaml $options --epochs 2000 --out stopped --quiet >stop 2>stop_err &
pid=$!
for _ in $(seq 100); do
    [ -d stopped/checkpoints/step-00000008 ] && break
    sleep 0.1
done
# meanwhile nobody else trains in its folder
for word in --resume --out; do
    expect 2 "$convoy" train ./net.yaml --data digits $word stopped --quiet
    has err "error: stopped: process $pid on "
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
done
kill -USR1 $pid
wait $pid
[ $? -eq 75 ] || fail "SIGUSR1 did not end with 75"
grep -q "stopped/checkpoints/step-" stop || fail "the stop does not say what was saved: $(cat stop stop_err)"

# a rate that makes numbers run away: code 5 and the layer
"$convoy" train lenet5 --data digits --train-samples 640 --test-samples 10 --batch 32 --learning-rate 1e6 --quiet \
    >/dev/null 2>err
[ $? -eq 5 ] || fail "a diverging run did not end with 5: $(cat err)"
grep -q "layer [a-z0-9]*: " err || fail "a diverging run does not name the layer: $(cat err)"
[ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"

# the newest checkpoint damaged: the one before it serves, and the run ends as ever
cp -r whole damaged
printf 'x' | dd of="$(newest damaged)/model.safetensors" bs=1 seek=300 conv=notrunc 2>/dev/null
"$convoy" train --resume damaged --quiet >/dev/null 2>err || fail "resume from the checkpoint before: $(cat err)"
cmp "$(newest whole)/model.safetensors" "$(newest damaged)/model.safetensors" || fail "other weights after falling back"

# all of them damaged: one line, code 7
for checkpoint in damaged/checkpoints/step-*; do
    truncate -s 100 "$checkpoint/model.safetensors"
done
"$convoy" train --resume damaged --quiet >/dev/null 2>err
[ $? -eq 7 ] || fail "damaged checkpoints did not end with 7"
grep -q "model.safetensors" err || fail "the damaged file is not named: $(cat err)"

# a signal in the middle of a generated kernel, wherever that has its stack pointer, leaves memory whole
for i in $(seq 12); do
    (
        LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 exec "$convoy" train lenet5 --data digits --threads 1 \
            --epochs 1000 --layout channels-last --out "signal$i" --quiet
    ) >/dev/null 2>err </dev/null &
    pid=$!
    for _ in $(seq 600); do
        [ -e "signal$i/config.yaml" ] && break
        sleep 0.05
    done
    sleep "0.$i"
    kill -USR1 $pid
    wait $pid
    code=$?
    [ $code -eq 75 ] || fail "signal $i ended with $code, expected 75: $(cat err)"
done

finish
