#!/bin/bash
# convoy model: counts that the papers and torchvision publish, and a JSON that other programs read. Argument 1 is the
# program.
. "$(dirname "$0")/setup.sh"

# torchvision 0.15: sum(p.numel() for p in model.parameters())
while read -r model parameters; do
    "$convoy" model "$model" --json >json 2>err || fail "$model: $(cat err)"
    has json "\"parameters\":$parameters,"
done <<'END'
lenet5 431080
resnet18 11689512
resnet50 25557032
END

# options that make no sense, of every model: one line that names the model and the option, at once
names=$("$convoy" model --list --json | grep -o '"name":"[^"]*","help":"[^"]*","options"' | cut -d '"' -f 4)
[ "$(wc -w <<<"$names")" -ge 22 ] || fail "models of the zoo: $names"
for model in $names; do
    last=classes
    [ "$model" = cosmoflow ] && last=outputs
    for option in size=1 size=-3 size=0 size=65537 size=99999999999999999999 size=[64,0] size=1e9 channels=0 \
        channels=-1 channels=4294967297 $last=0 $last=-1 $last=9223372036854775808; do
        timeout 60 "$convoy" model "$model:$option" >out 2>err
        [ $? -eq 2 ] || fail "$model:$option ended with $?, expected 2: $(cat err)"
        [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "$model:$option: expected one line: $(cat out err)"
        has err "error: $model: ${option%%=*}: found '"
    done
done

# sizes that are allowed, but that no machine has the memory for, are as quick to say so
if "$convoy" bench --help >/dev/null 2>&1; then
    for model in $names; do
        case $model in
        cosmoflow) size=512 ;;
        unet3d) size=1024 ;;
        *) size=65536 ;;
        esac
        timeout 60 "$convoy" bench "$model:size=$size,channels=65536" --batch 64 >out 2>err
        [ $? -eq 4 ] || fail "$model of size $size ended with $?, expected 4: $(cat err)"
        [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "$model of size $size: expected one line: $(cat out err)"
        has err "a smaller batch takes less"
    done
fi

# keys of the contract, in its order, on one line
"$convoy" model lenet5 --json >json
[ "$(wc -l <json)" -eq 1 ] || fail "the JSON takes more than one line"
grep -Eq '^\{"name":"lenet5","parameters":431080,"forward_flop":[0-9.e+]+,"layers":\[\{.*\}\]\}$' json ||
    fail "keys of the JSON: $(head -c 120 json)"
has json '{"name":"conv1","kind":"conv","output":[20,24,24],"parameters":520,'
cp json one
"$convoy" model lenet5 --json --batch 8 >json
cmp -s one json || fail "the JSON is of one sample, whatever the batch"
if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    python3 - <<'END' || fail "the JSON does not add up"
import json
model = json.load(open("one"))
layers = model["layers"]
assert list(model) == ["name", "parameters", "forward_flop", "layers"]
assert sum(layer["parameters"] for layer in layers) == model["parameters"]
assert abs(sum(layer["forward_flop"] for layer in layers) - model["forward_flop"]) < 1
# conv1: 24 x 24 positions of 20 filters of 5 x 5 over one channel, a multiply-add counts 2, at most one bias each
conv1 = next(layer for layer in layers if layer["name"] == "conv1")
assert 0 <= conv1["forward_flop"] - 2 * 24 * 24 * 20 * 25 <= 24 * 24 * 20
END
fi

# the table: a line a layer, n first, within 100 columns
"$convoy" model resnet50:classes=10 --batch 4 >table || fail "resnet50 with ten classes"
has table "4x64x112x112"
has table "4x10"
[ "$(grep -c ' conv  ' table)" -eq 53 ] || fail "resnet50 has 53 convolutions, found $(grep -c ' conv  ' table)"
awk 'length > 100 { print "FAILED: line " NR " has " length " columns"; bad = 1 } END { exit bad }' table ||
    failures=$((failures + 1))

# a model from a file, and errors that name its line
cat >tiny.yaml <<'END'
name: tiny
input: [1, 8, 8]
layers:
  - {name: c, kind: conv, filters: 4, kernel: 3}
  - {name: flat, kind: flatten}
  - {name: d, kind: dense, outputs: 3}
  - {name: loss, kind: softmax-cross-entropy}
END
if "$convoy" model tiny.yaml --json >json 2>err; then
    has json '"name":"tiny"'
    has json '{"name":"c","kind":"conv","output":[4,6,6],"parameters":40,'
    has json '{"name":"d","kind":"dense","output":[3],"parameters":435,'
else
    fail "tiny.yaml: $(cat err)"
fi

for wrong in lenett missing.yaml lenet5:size=x lenet5:sise=28; do
    "$convoy" model "$wrong" >out 2>err
    [ $? -eq 2 ] || fail "$wrong was not refused"
    [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "$wrong: expected one line: $(cat out err)"
done
"$convoy" model lenett 2>err
has err "did you mean 'lenet5'?"

"$convoy" model --list >list || fail "--list"
has list "resnet50"
has list "classes"
"$convoy" model --list --json >list || fail "--list --json"
has list '{"name":"lenet5","help":'

# doctor, the other command that needs nothing: findings with a level each, kernels that agree with plain loops
"$convoy" doctor --kernels >out 2>err || fail "doctor: $(cat err)"
grep -Evq '^(ok|note|warning) ' out && fail "doctor: a line without a level: $(grep -Ev '^(ok|note|warning) ' out)"
has out "version"
has out "conv backward-weights"
grep '^warning *kernels' out && fail "a kernel is wrong"
"$convoy" doctor --json >json || fail "doctor --json"
has json '"findings":[{"level":"ok","check":"version"'

finish
