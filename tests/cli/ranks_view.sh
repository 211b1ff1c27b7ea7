#!/bin/bash
# What two ranks tell of their time: convoy bench and --log-view. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup.sh"
launch="$2 -n 2 $convoy"
cat >plain.yaml <<'MACHINE'
name: plain
summary: "a flop takes a nanosecond, a message a millisecond and a microsecond for each byte"
devices-per-node: {value: 2, source: "a test"}
device: {name: plain, source: "a test", cores: 1, vector-bits: 256, memory: 16 GiB, memory-bandwidth: 1 TB/s,
  peak: {fp32: 1 GFLOP/s, source: "a test"}}
links:
  - {name: wire, connects: device, endpoints: 2, latency: 1 ms, bandwidth: 1 MB/s, ports: 1, source: "a test"}
MACHINE

# Keys are those of the contract; parts of an iteration are of one rank, and no longer than the iteration.
# lenet5 has 431,080 parameters: their gradients are 1,724,320 bytes, and travel with their padding, less than a tenth.
expect 0 $launch bench lenet5 --batch 8/rank --threads 1 --layout rule --iterations 4 --warmup 1 --json
python3 - <<'PY' || fail "the JSON of convoy bench on two ranks is not as promised"
import json
answer = json.loads(open("out").read())
keys = ["model", "strategy", "ranks", "threads_per_rank", "global_batch", "precision", "images_per_s", "iteration_s",
        "floor_s", "forward_s", "backward_s", "update_s", "communication_s", "peak_memory_bytes"]
assert list(answer)[:len(keys)] == keys, list(answer)
assert answer["strategy"] == "data" and answer["ranks"] == 2 and answer["global_batch"] == 16, answer
assert answer["threads_per_rank"] == 1 and answer["floor_s"] > 0 and answer["communication_s"] > 0, answer
assert abs(answer["images_per_s"] * answer["iteration_s"] / 16 - 1) < 1e-6, answer
assert answer["peak_memory_bytes"] > 10e6, answer
steps = {row["step"]: row for row in answer["steps"]}
gradients = steps["all-reduce gradients over sample"]
assert gradients["calls"] == 4 and 1 <= gradients["bytes"] / (4 * 1724320) < 1.1, gradients
for row in answer["steps"]:
    assert row["ranks"] == 2 and 0 <= row["least_s"] <= row["seconds"], row
    assert "predicted_s" not in row, row # no machine was named
PY

# Ranks of a pipeline have kinds of their own: rows are of both, each with as many ranks as have it.
# Between the stages of lenet5 under this strategy a message goes each way in each iteration.
expect 0 $launch bench lenet5 --batch 8/rank --threads 1 --layout rule --iterations 3 --warmup 0 --json \
    --strategy pipeline --machine ./plain.yaml
python3 - <<'PY' || fail "stages do not tell their own kinds of steps"
import json
steps = {row["step"]: row for row in json.loads(open("out").read())["steps"]}
for name in ("send to the next stage", "receive from the stage before", "send to the stage before",
             "receive from the next stage"):
    assert steps[name]["calls"] == 3 and steps[name]["ranks"] == 1, (name, steps.get(name))
assert steps["softmax-cross-entropy forward"]["ranks"] == 1, steps
assert steps["send to the next stage"]["bytes"] > 0 and steps["receive from the stage before"]["bytes"] == 0, steps
assert "batch" in steps, list(steps)

# What was predicted, by hand. Both convolutions are on the first stage: a multiplication and an addition for each
# weight, and one for the bias, at 20 x 24 x 24 and 50 x 8 x 8 outputs of 16 samples, at a flop a nanosecond. The
# outputs of the second, floats, go to the next stage; their gradients come back. Receiving takes the sender's time.
flop = 16 * (20 * 24 * 24 * (2 * 25 + 1) + 50 * 8 * 8 * (2 * 20 * 25 + 1))
assert steps["convolution forward"]["calls"] == 6, steps["convolution forward"]
message_s = 1e-3 + 16 * 50 * 8 * 8 * 4 * 1e-6
for name, expected in (("convolution forward", 3 * flop * 1e-9), ("send to the next stage", 3 * message_s),
                       ("send to the stage before", 3 * message_s)):
    assert abs(steps[name]["predicted_s"] / expected - 1) < 1e-3, (name, expected, steps[name])
for name in ("receive from the stage before", "receive from the next stage", "batch"):
    assert "predicted_s" not in steps[name], steps[name]
PY

# The table of a training stays within 100 columns, and shows how ranks differ, and what was predicted.
expect 0 $launch train lenet5 --data digits --train-samples 64 --test-samples 16 --batch 16 --steps 2 --threads 1 \
    --layout rule --strategy height=2 --log-view --timeline trace.json --machine ./plain.yaml
has out "x min"
has out "halo over height"
has out "halo of gradients over height"
has out "all-reduce gradients over height"
awk '/ predict\. / { at = index($0, "predict.") }
    /^(halo over|convolution forward|all-reduce gradients)/ { found += at && substr($0, at, 8) + 0 > 0 }
    END { exit found != 3 }' out || fail "kinds of steps have no prediction: $(cat out)"
awk 'length($0) > 100 { bad = 1 } END { exit bad }' out || fail "a line is wider than 100 columns: $(cat out)"
python3 -c '
import json
names = {event["name"] for event in json.load(open("trace.json"))}
assert "gradient_exchange" in names and "conv2 halo" in names, sorted(names)' || fail "communication has other names"

# A run tells its ranks apart: of a pipeline the loss is on the second alone, and each has predictions of its own stage.
expect 0 $launch train lenet5 --data digits --train-samples 64 --test-samples 16 --batch 16 --steps 3 --threads 1 \
    --layout rule --strategy stage=2 --machine ./plain.yaml --out stages
expect 0 "$convoy" compare stages --json
python3 - <<'PY' || fail "a run does not tell its ranks apart"
import json
answer = json.load(open("out"))
ranks = [{step["step"]: step for step in rank["steps"]} for rank in answer["by_rank"]]
assert len(ranks) == 2 and "softmax-cross-entropy forward" not in ranks[0], ranks
assert ranks[1]["softmax-cross-entropy forward"]["measured_s"] > 0, ranks[1]
rows = {step["step"]: step for step in answer["steps"]}
for name, row in rows.items():
    own = [rank[name]["measured_s"] for rank in ranks if name in rank]
    assert abs(max(own) - row["measured_s"]) <= 1e-6 * max(own), (name, own, row)
# By hand: the convolutions, all of which the first stage has, as above, a flop a nanosecond; with one evaluation, of a
# batch, they are called four times in three iterations.
flop = 16 * (20 * 24 * 24 * (2 * 25 + 1) + 50 * 8 * 8 * (2 * 20 * 25 + 1))
forward = ranks[0]["convolution forward"]["predicted_s"]
assert abs(forward / (flop * 1e-9 * 4 / 3) - 1) < 1e-3, (forward, flop)
assert max(r["peak_memory_bytes"] for r in answer["by_rank"]) == answer["memory"]["measured_bytes"], answer["by_rank"]
PY
expect 0 "$convoy" compare stages --all
has out "rank 1, an iteration's"

# A machine that has too few devices is told before the run; what cannot be cut so is, too.
expect 2 $launch bench lenet5 --batch 8 --threads 1 --log-view --machine cpu-2core
has err "error: 2 ranks: machine cpu-2core has 1 device"
expect 4 $launch bench lenet5 --batch 8 --threads 1 --log-view --machine ./plain.yaml \
    --strategy pipeline,micro-batches=16
has err "nothing is predicted: on plain: "
# Buckets are as the line says, or the machine's file, or 25 MB; the run notes them.
sed 's/^devices-per-node/execution: {bucket: 3 MB}\n&/' plain.yaml >bucket.yaml
small="train lenet5 --data digits --train-samples 64 --test-samples 32 --steps 1 --threads 1 --layout rule"
expect 0 $launch $small --machine ./bucket.yaml --out machines
has machines/plan.yaml "bucket-bytes: 3000000"
expect 0 $launch $small --machine ./bucket.yaml --bucket 1MB --out given
has given/plan.yaml "bucket-bytes: 1000000"
expect 0 $launch $small --machine ./plain.yaml --out usual
has usual/plan.yaml "bucket-bytes: 25000000"
finish
