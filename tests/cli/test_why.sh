#!/bin/bash
# convoy why, fits and ranks-for: their answers hold against those of convoy plan. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

check() {
    if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
        python3 - "$convoy" || fail "$1"
    fi
}

# narrow: no line of out is wider than 100 columns
narrow() {
    awk 'length > 100 { print "FAILED: line " NR ": " length " columns"; bad = 1 } END { exit bad }' out ||
        failures=$((failures + 1))
}

# ---- why ----

expect 0 "$convoy" why vgg11 --machine dgx1-v100 --strategy sample=2,channel=4
narrow
has out "vgg11 on dgx1-v100: 8 of 5,280"
has out "channel: its input is whole"
grep -Eq '^features.0 +filter +128x16x224x224' out || fail "the first convolution: $(grep '^features.0 ' out)"
grep -Eq '^  total +[0-9.]+ [MG]B of 17.2 GB' out || fail "no total of memory"
expect 0 "$convoy" why vgg11 --machine dgx1-v100 --strategy sample=2,channel=4 --json
cp out why.json
expect 0 "$convoy" plan vgg11 --machine dgx1-v100 --ranks 8 --strategy sample=2,channel=4 --json
check "why and plan" <<'END'
import json
why, plan = json.load(open("why.json")), json.load(open("out"))["plans"][0]
for key in ["strategy", "iteration_s", "breakdown_s", "memory_bytes"]:
    assert why["plan"][key] == plan[key], key
layers = {layer["name"]: layer for layer in why["layers"]}
# 64 filters over 4 ranks, 64 samples over 2 of them and 32 a rank: 256 samples over 2
assert layers["features.0"]["cut"] == "filter" and layers["features.0"]["local_output"][1:] == [16, 224, 224]
assert layers["features.0"]["local_output"][0] == 128
forward = sum(layer["forward_s"] for layer in layers.values())
assert abs(forward - plan["breakdown_s"]["forward"]) <= 0.02 * plan["breakdown_s"]["forward"]
END
expect 0 "$convoy" why vgg11 --machine abci --ranks 2 --strategy pipeline,micro-batches=4
has out "local outputs are a micro-batch's, of 4 in an iteration"
grep -q '^stage 1$' out || fail "no second stage"
says 4 "needs a batch of at least 4" "$convoy" why lenet5 --machine abci --ranks 4 --strategy data --batch 2

# ---- fits: the largest batch fits, and the next one does not ----

expect 0 "$convoy" fits resnet18 --machine abci --ranks 2 --json
cp out fits.json
check "fits" <<'END'
import json, subprocess, sys
answer = json.load(open("fits.json"))
assert answer["fits"] and answer["strategy"] == "data" and answer["capacity_bytes"] == 16e9
assert [way["recompute"] for way in answer["ways"]] == ["none", "cheap", "all"]
def is_over(batch, recompute):
    line = [sys.argv[1], "plan", "resnet18", "--machine", "abci", "--ranks", "2", "--strategy", "data", "--batch",
            str(batch), "--recompute", recompute, "--json"]
    return json.loads(subprocess.run(line, capture_output=True, check=True).stdout)["plans"][0]["over_memory"]
before = 0
for way in answer["ways"]:
    largest = way["largest_batch"]
    assert largest % 2 == 0 and largest >= before and way["largest_batch_per_rank"] == largest / 2
    assert not is_over(largest, way["recompute"]) and is_over(largest + 2, way["recompute"])
    before = largest
END
expect 0 "$convoy" fits resnet18 --machine abci
has out "strategy serial"
narrow
says_error() { [ "$(wc -l <err)" -eq 1 ] && has err "$1"; }
expect 4 "$convoy" fits resnet18 --machine abci --batch 100000
says_error "does not fit in 16 GB a rank with serial; batch "
expect 4 "$convoy" fits resnet18 --machine abci --max-memory 1MB
says_error "at any batch"

# ---- ranks-for: the fewest are in time, one node less is not ----

expect 0 "$convoy" ranks-for resnet18 --machine abci --ranks 64 --hours 4 --samples 1281167 --epochs 10 \
    --batch 32/rank --strategy data --price 2USD/h --json
cp out ranks.json
check "ranks-for" <<'END'
import json, subprocess, sys
answer = json.load(open("ranks.json"))
fewest = answer["ranks"]
assert fewest and fewest <= 64
def get_hours(ranks):
    line = [sys.argv[1], "plan", "resnet18", "--machine", "abci", "--ranks", str(ranks), "--strategy", "data",
            "--batch", "32/rank", "--samples", "1281167", "--epochs", "10", "--json"]
    return json.loads(subprocess.run(line, capture_output=True, check=True).stdout)["plans"][0]["training_s"] / 3600
assert get_hours(fewest) <= 4
less = fewest - (4 if fewest > 4 else 1)
assert less < 1 or get_hours(less) > 4, (fewest, get_hours(less))
for row in answer["rows"]:
    assert row["global_batch"] == 32 * row["ranks"]
    assert abs(row["price_usd"] / (2 * row["ranks"] * row["training_s"] / 3600) - 1) < 1e-6
    assert row["in_time"] == (row["training_s"] <= 4 * 3600)
first = answer["rows"][0]
assert first["ranks"] == 1 and abs(first["efficiency"] - 1) < 1e-9
END
expect 4 "$convoy" ranks-for resnet18 --machine abci --ranks 4 --hours 0.001 --samples 1281167 --epochs 90 \
    --strategy data
has err "no number of ranks up to 4 trains in 0.001 h"
narrow
says 2 "needs --hours" "$convoy" ranks-for resnet18 --machine abci

finish
