#!/bin/bash
# Faults that must neither lose a run nor leave one that can be neither resumed nor begun again. Argument 1 is the
# program.
. "$(dirname "$0")/setup.sh"

# what a user or a file wrote stays on the line, and does not steer the terminal
says 2 "found '5?'" "$convoy" model lenet5 --batch $'5\n'
says 2 "no command '?[2J'" "$convoy" $'\033[2J'
printf 'name: "a\\e[2J"\ninput: [4]\nlayers:\n  - {name: l, kind: softmax-cross-entropy}\n' >steer.yaml
says 2 "steer.yaml:1: name: expected" "$convoy" model ./steer.yaml
printf 'colour: red\nname: a\ninput: [4]\nlayers: []\n' >unknown.yaml
says 2 "unknown option 'colour', expected input, name, layers" "$convoy" model ./unknown.yaml
says 1 "standard output" sh -c '"$0" model lenet5 >&-' "$convoy"
expect 0 "$convoy" help help

"$convoy" train --help >/dev/null 2>&1 || finish # a plan-only build does not train

cat >net.yaml <<'MODEL'
name: net
input: [1, 28, 28]
layers:
  - {name: flatten, kind: flatten}
  - {name: fc, kind: dense, outputs: 10}
  - {name: loss, kind: softmax-cross-entropy}
MODEL
train=("$convoy" train ./net.yaml --train-samples 40 --test-samples 10 --batch 8 --threads 1 --quiet)

# set-up fails: the same folder serves the next try; a run without a checkpoint says what to do
says 3 "no such data folder" "${train[@]}" --data ./nowhere --out run
expect 0 "${train[@]}" --data digits --out run
says 2 "holds a run already" "${train[@]}" --data digits --out run
cp -r run begun && rm -r begun/checkpoints/*
says 7 "there is no checkpoint in it; begin the run anew, with --out begun" "$convoy" train --resume begun
expect 0 "${train[@]}" --data digits --out begun
expect 0 "$convoy" train --resume run --quiet
has out "nothing to do"

# damaged checkpoints of later steps do not push out the one that was just saved
mkdir run/checkpoints/step-00000098 run/checkpoints/step-00000099
expect 0 "$convoy" train --resume run --epochs 2 --quiet
[ -f run/checkpoints/step-00000010/state.json ] || fail "the last checkpoint is gone: $(ls run/checkpoints)"

# known before the first step, not after the last
says 1 "no/t.json: cannot create" "${train[@]}" --data digits --out early --timeline no/t.json
[ ! -e early ] || fail "a run was begun although its timeline cannot be written"
says 2 "--precision fp64 runs on backend ref alone" "${train[@]}" --data digits --precision fp64 --backend onednn
says 2 "at most 4294967295 samples" "${train[@]}" --data digits --train-samples 5000000000
says 1 "a path of 5011 bytes" "${train[@]}" --data digits --out "$(printf 'abcd/%.0s' $(seq 1000))"
[ ! -e abcd ] || fail "half of the folders of a path too long were made"

# a reader that leaves, a closed stream, a limit on files: the checkpoint is there, metrics hold nothing else
"${train[@]:0:${#train[@]}-1}" --data digits --epochs 3 --out piped 2>&1 | true
[ -d piped/checkpoints/step-00000015 ] || fail "a closed pipe ended the training"
"${train[@]:0:${#train[@]}-1}" --data digits --out closed <&- >&- 2>&-
grep -v '^{"event":' closed/metrics.jsonl && fail "the metrics hold what was printed"
[ -d closed/checkpoints/step-00000005 ] || fail "closed streams ended the training"
(
    ulimit -f 20
    says 7 "File too large" "${train[@]}" --data digits --out limited
    exit $failures
) || failures=$((failures + 1))
[ -z "$(ls limited/checkpoints)" ] || fail "a failed save left $(ls limited/checkpoints)"

# a terminal that closes: saved; the same under nohup goes on
"${train[@]}" --data digits --epochs 100000 --out hung >out 2>err &
pid=$!
for _ in $(seq 100); do
    [ -d hung/checkpoints/step-00000010 ] && break
    sleep 0.1
done
kill -HUP $pid
wait $pid
[ $? -eq 75 ] || fail "SIGHUP did not end with 75: $(cat out err)"

finish
