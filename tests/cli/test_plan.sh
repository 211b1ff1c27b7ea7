#!/bin/bash
# convoy plan: the table, its JSON, plan files, timelines, and what is wrong. Argument 1 is the program.
machines=$(realpath "$(dirname "$0")/../../machines")
. "$(dirname "$0")/setup.sh"

# check WHAT: a program on standard input holds
check() {
    if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
        python3 - || fail "$1"
    fi
}

# narrow: no line of out is wider than 100 columns
narrow() {
    awk 'length > 100 { print "FAILED: line " NR ": " length " columns"; bad = 1 } END { exit bad }' out ||
        failures=$((failures + 1))
}

# What there is to plan for.
expect 0 "$convoy" plan --list-machines
for machine in here abci dgx1-v100 dgx-a100 dgx-h100 k80 knl laptop cpu-2core ethernet-cpu; do
    grep -q "^$machine  *[^ ]" out || fail "--list-machines lacks $machine"
done
narrow

# The table: best first, the pick and data parallelism marked, every figure with its batch, precision and unit.
expect 0 "$convoy" plan resnet18 --machine dgx1-v100 --ranks 8 --batch 32/rank
has out "8 of 5,280 V100-SXM2-16GB, batch 256 (32 a rank), fp32, momentum"
grep -Eq '^(\*=| =) data ' out || fail "data parallelism is not marked: $(cat out)"
[ "$(grep -c '^\*' out)" -ge 1 ] || fail "no pick is marked"
has out "limits of "
has out "configurations looked at in "
narrow

# The JSON: the contract's keys in their order, parts that add up, the laws of the pick.
expect 0 "$convoy" plan resnet18 --machine dgx1-v100 --ranks 8 --batch 32/rank --json
cp out plan.json
[ "$(wc -l <plan.json)" -eq 1 ] || fail "the JSON takes more than one line"
check "the JSON of convoy plan" <<'END'
import json
answer = json.load(open("plan.json"))
assert list(answer)[:7] == ["schema", "model", "machine", "ranks", "global_batch", "precision", "plans"], list(answer)
assert (answer["schema"], answer["model"], answer["machine"]) == (1, "resnet18", "dgx1-v100")
assert (answer["ranks"], answer["global_batch"], answer["precision"]) == (8, 256, "fp32")
assert answer["configurations"] >= len(answer["plans"]) and answer["search_s"] >= 0
keys = ["strategy", "mesh", "feasible", "over_memory", "why_not", "iteration_s", "images_per_s", "error_relative",
        "breakdown_s", "exposed_communication_s", "memory_bytes", "limits"]
times = ["io", "forward", "recompute", "backward", "halo", "redistribute", "gradient_exchange", "update", "bubble",
         "wait"]
memory = ["total", "weights", "gradients", "optimizer", "activations", "workspace", "communication", "data",
          "checkpoint", "runtime", "capacity"]
for plan in answer["plans"]:
    assert list(plan)[:len(keys)] == keys, list(plan)
    assert list(plan["breakdown_s"]) == times and list(plan["memory_bytes"]) == memory
    ranks = 1
    for size in plan["mesh"].values():
        ranks *= size
    assert ranks == 8, plan["mesh"]
    if not plan["feasible"]:
        assert plan["why_not"] and plan["iteration_s"] is None
        continue
    assert abs(sum(plan["breakdown_s"].values()) / plan["iteration_s"] - 1) < 1e-6, plan["strategy"]
    assert abs(plan["images_per_s"] * plan["iteration_s"] / 256 - 1) < 1e-6
    assert sum(plan["memory_bytes"][part] for part in memory[1:-1]) == plan["memory_bytes"]["total"]
    assert plan["memory_bytes"]["capacity"] == 16 * 2**30 # as machines/dgx1-v100.yaml says
    assert plan["over_memory"] == (plan["memory_bytes"]["total"] > 16 * 2**30)
    assert all(limit["name"] and limit["share"] > 0 for limit in plan["limits"])
    exposed = sum(plan["breakdown_s"][part] for part in ["halo", "redistribute", "gradient_exchange"])
    assert abs(exposed - plan["exposed_communication_s"]) <= 1e-6 * plan["iteration_s"]
[pick] = [plan for plan in answer["plans"] if plan["pick"]]
data = next(plan for plan in answer["plans"] if plan["strategy"] == "data")
assert pick["feasible"] and pick["iteration_s"] <= data["iteration_s"]
assert answer["why"]
fits = [plan["iteration_s"] for plan in answer["plans"] if plan["feasible"] and not plan["over_memory"]]
assert fits == sorted(fits), fits
END
expect 0 "$convoy" plan resnet18 --machine dgx1-v100 --ranks 8 --json --top 1
check "--top" <<'END'
import json
plans = json.load(open("out"))["plans"]
assert 1 <= sum(plan["feasible"] for plan in plans) <= 2 and any(plan["strategy"] == "data" for plan in plans)
END

# One strategy, with data parallelism beside it; saved and read again to the same bytes.
while read -r model ranks strategy; do
    rm -f saved.yaml
    expect 0 "$convoy" plan "$model" --machine abci --ranks "$ranks" --strategy "$strategy" --batch 16/rank \
        --optimizer adam --save saved.yaml --json
    cp out first
    expect 0 "$convoy" plan --plan saved.yaml --json
    cmp -s first out || fail "$model $strategy: the plan file gives $(head -c 300 out), not $(head -c 300 first)"
done <<'END'
resnet18 8 data
resnet18 8 sample=2,height=4
resnet18 8 sample=2,channel=4
vgg11 4 filter
vgg11 8 stage=4,sample=2,micro-batches=4
lenet5 1 serial
END
has saved.yaml 'strategy: "serial"'

# The pick of a search, too.
expect 0 "$convoy" plan vgg11 --machine dgx1-v100 --ranks 16 --batch 8/rank --save saved.yaml --json
cp out first
expect 0 "$convoy" plan --plan saved.yaml --json
check "the saved pick" <<'END'
import json
[pick] = [plan for plan in json.load(open("first"))["plans"] if plan["pick"]]
again = json.load(open("out"))["plans"][0]
for key in ["strategy", "mesh", "iteration_s", "breakdown_s", "memory_bytes", "recompute"]:
    assert pick[key] == again[key], (key, pick[key], again[key])
END

# Epochs and prices: 10,000 samples at a batch of 64 are 157 iterations.
expect 0 "$convoy" plan resnet18 --machine dgx1-v100 --ranks 2 --batch 64 --strategy data --samples 10000 --epochs 3 \
    --price 3USD/h --json
check "epochs and prices" <<'END'
import json
plan = json.load(open("out"))["plans"][0]
assert abs(plan["epoch_s"] / (157 * plan["iteration_s"]) - 1) < 1e-6
assert abs(plan["training_s"] / (3 * plan["epoch_s"]) - 1) < 1e-6
assert abs(plan["price_usd"] / (2 * 3 * plan["training_s"] / 3600) - 1) < 1e-6
END

says 2 "--epochs needs --samples" "$convoy" plan resnet18 --machine dgx1-v100 --ranks 2 --epochs 3
expect 0 "$convoy" plan resnet18 --machine dgx1-v100 --ranks 2 --strategy channel
grep -Eq '^channel takes [0-9.]+ times as long as data \(' out || fail "channel is not held against data"

# A timeline: a process for each stage, steps one after the other on each stream.
expect 0 "$convoy" plan vgg11 --machine dgx1-v100 --ranks 2 --strategy pipeline,micro-batches=4 --batch 32 \
    --timeline trace.json
check "the timeline" <<'END'
import json
events = json.load(open("trace.json"))["traceEvents"]
assert {event["pid"] for event in events} == {0, 1}
steps = [event for event in events if event["ph"] == "X"]
assert len(steps) > 20
for stream in {(step["pid"], step["tid"]) for step in steps}:
    end = 0
    for step in sorted((s for s in steps if (s["pid"], s["tid"]) == stream), key=lambda s: (s["ts"], s["dur"])):
        assert step["ts"] >= end - 1e-3, (stream, step)
        end = step["ts"] + step["dur"]
END

# The second opinion.
expect 0 "$convoy" plan vgg11 --machine dgx1-v100 --ranks 8 --strategy data --closed-form
has out "closed forms (Kahira et al., HPDC 2021)"
has out "not in the form: "
narrow

# What is wrong: one line, the right code, nothing on standard output.
says 2 "no machine 'abbci'; did you mean 'abci'?" "$convoy" plan lenet5 --machine abbci
says 2 "convoy plan needs a machine" "$convoy" plan lenet5
says 2 "convoy plan needs a model" "$convoy" plan --machine abci
says 2 "expected a whole number from 1" "$convoy" plan lenet5 --machine abci --ranks 0
says 2 "17 ranks: machine laptop has 1 device" "$convoy" plan lenet5 --machine laptop --ranks 17
says 2 "expected a size with its unit" "$convoy" plan lenet5 --machine abci --max-memory 16
says 2 "expected a price with its unit" "$convoy" plan lenet5 --machine abci --price 2
for batch in 3/node ' 4' +4 0x4 4.0 nan; do
    says 2 "--batch: expected a count from 1" "$convoy" plan lenet5 --machine abci --batch "$batch"
done
says 2 "did you mean 'data'?" "$convoy" plan lenet5 --machine abci --ranks 4 --strategy dat
says 2 "sample=4 is 4 ranks, expected 8" "$convoy" plan lenet5 --machine abci --ranks 8 --strategy sample=4
says 2 "--micro-batches goes with a --strategy" "$convoy" plan lenet5 --machine abci --micro-batches 2
says 2 "--norm-axes: found 'hight'" "$convoy" plan lenet5 --machine abci --norm-axes hight
says 2 "has no rate at bf16" "$convoy" plan lenet5 --machine k80 --ranks 1 --precision bf16
says 4 "more steps than a run can hold" "$convoy" plan lenet5 --machine abci --strategy serial --batch 65536 \
    --micro-batches 65536
expect 0 timeout 60 "$convoy" plan resnet50 --machine abci --ranks 32 --strategy pipeline --batch 65536 \
    --micro-batches 65536
says 4 "needs a batch of at least 8" "$convoy" plan lenet5 --machine abci --ranks 8 --batch 4 --strategy data
says 4 "cuts no layer" "$convoy" plan lenet5 --machine abci --strategy height=64 --batch 64
printf 'schema: 1\nmodel: lenet5\n' >broken.yaml
says 2 "broken.yaml:1: expected a plan, found no 'model-hash'" "$convoy" plan --plan broken.yaml
says 2 "no-such.yaml" "$convoy" plan --plan no-such.yaml
says 2 "--ranks: the plan of --plan has decided it" "$convoy" plan --plan saved.yaml --ranks 8
says 2 "--batch: the plan of --plan has decided it" "$convoy" plan --plan saved.yaml --batch 16/rank
says 2 "the plan is of another model than lenet5" "$convoy" plan lenet5 --plan saved.yaml
expect 0 "$convoy" plan --plan saved.yaml --machine abci
has out "on abci: "
says 2 "at most 1000000 USD/h" "$convoy" plan lenet5 --machine abci --price 1e308USD/h
expect 0 "$convoy" plan lenet5 --machine abci --strategy serial --batch 8
has out "1 of 4,352"
expect 4 "$convoy" plan resnet18 --machine abci --ranks 2 --max-memory 1MB
[ "$(wc -l <err)" -eq 1 ] || fail "expected one line: $(cat err)"
has err "fits 2 ranks of abci in no way"

# Where the device is this processor, its kernels by Winograd's algorithm are asked for their scratch memory; of one
# that only has another name nobody knows it. A gradient of 512 x 512 filters of 3x3 has 36 sums where it has 9 taps.
expect 0 "$convoy" doctor --json
python3 - "$machines/cpu-2core.yaml" <<'END' || skip_processor=1
import json, re, sys
found = {one["check"]: one["found"] for one in json.load(open("out"))["findings"]}
name, bits = re.match(r"(.*), (\d+)-bit", found["processor"]).groups()
text = re.sub("vector-bits: {value: 512", "vector-bits: {value: " + bits, open(sys.argv[1]).read())
for file, device in (("this.yaml", name), ("other.yaml", "another processor")):
    open(file, "w").write(text.replace("name: 2-core Xeon", f"name: \"{device}\"", 1))
sys.exit(0 if int(bits) >= 256 and "cpu" in found["version"] else 1)
END
if [ -z "${skip_processor:-}" ]; then
    for machine in this other; do
        expect 0 "$convoy" plan resnet18:size=64 --machine $machine.yaml --ranks 1 --batch 8 --json
        cp out $machine.json
    done
    check "scratch memory of this processor's kernels" <<'END'
import json
this, other = (json.load(open(f"{name}.json"))["plans"][0]["memory_bytes"]["workspace"] for name in ("this", "other"))
assert this >= other + 4 * 512 * 512 * (36 - 9), (this, other)
END
fi

finish
