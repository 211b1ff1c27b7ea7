#!/bin/bash
# convoy sweep: the tables, CSV, JSON, what is wrong. Argument 1 is the program.
page=$(realpath "$(dirname "$0")/../../docs/sweep.md")
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

# Where nothing is said: five parameters of five values, on 11 numbers of ranks, and the machine as it is.
expect 0 "$convoy" sweep resnet50 --machine abci --csv study.csv
has out "resnet50 on abci: 4,352 x V100-SXM2-16GB, batch 32 a rank (weak scaling), fp32, momentum"
has out "device: on 1 rank "
has out "cluster: on 1,024 ranks"
has out "286 points, "
narrow
check "the CSV of the study" <<'END'
import csv
rows = list(csv.DictReader(open("study.csv", newline="")))
assert len(rows) == 286, len(rows)
varied = [row for row in rows if row["varied"]]
assert len(varied) == 275 and {row["varied"] for row in varied} == {"batch", "arithmetic", "memory-bandwidth",
                                                                    "link-bandwidth", "link-latency"}
parts = ["io", "forward", "recompute", "backward", "halo", "redistribute", "gradient_exchange", "update", "bubble",
         "wait"]
for row in rows:
    iteration = float(row["iteration_s"])
    assert row["feasible"] == "yes" and row["over_memory"] == "no" and row["why_not"] == ""
    assert abs(sum(float(row[part + "_s"]) for part in parts) / iteration - 1) < 1e-6
    assert abs(float(row["images_per_s"]) * iteration / int(row["global_batch"]) - 1) < 1e-6
    assert abs(float(row["images_per_s"]) / float(row["ideal_images_per_s"]) / float(row["efficiency"]) - 1) < 1e-6
    assert (row["elasticity_arithmetic"] != "") == (row["varied"] == "")
own = {int(row["ranks"]): row for row in rows if not row["varied"]}
assert sorted(own) == [2**i for i in range(11)]
for row in varied: # figures of the machine are those that are varied, and no others
    base, factor = own[int(row["ranks"])], float(eval(row["value"][1:]))
    for name, column in [("arithmetic", "peak_flop_per_s"), ("memory-bandwidth", "memory_Bps"), ("batch",
                         "global_batch"), ("link-bandwidth", "link_Bps"), ("link-latency", "link_latency_s")]:
        expected = float(base[column]) * (factor if row["varied"] == name else 1)
        assert abs(float(row[column]) / expected - 1) < 1e-6, (row["varied"], column)
END

# The same figures as convoy plan gives for a machine file that says the same.
cat >two.yaml <<'END'
name: two
summary: a machine of a test
nodes: 8
devices-per-node: 4
device: {name: d, kind: gpu, cores: 80, memory: 16 GB, memory-bandwidth: 500 GB/s, peak: {fp32: 10 TFLOP/s}}
links:
  - {name: inside, connects: device, endpoints: 4, bandwidth: 50 GB/s, latency: 5 us}
  - {name: net, connects: inside, endpoints: 8, bandwidth: 10 GB/s, latency: 20 us}
END
sed -e 's/50 GB/25 GB/' -e 's/10 GB/5 GB/' two.yaml >links.yaml
sed -e 's/10 TFLOP/40 TFLOP/' two.yaml >fast.yaml
sed -e 's/10 GB/1.25 GB/' two.yaml >slow.yaml
sed -e 's/500 GB/250 GB/' two.yaml >memory.yaml
for strategy in data channel pipeline; do
    expect 0 "$convoy" sweep resnet18 --machine two.yaml --ranks 8 --batch 16/rank --strategy $strategy --json \
        --vary link-bandwidth=x1/2,10Gbit/s --vary arithmetic=40TFLOP/s --vary memory-bandwidth=x0.5 --vary batch=32
    cp out study.json
    for plan in "two 16" "links 16" "slow 16" "fast 16" "memory 16" "two 32"; do
        set -- $plan
        expect 0 "$convoy" plan resnet18 --machine "$1.yaml" --ranks 8 --batch "$2/rank" --strategy $strategy --json
        cat out
    done >plans.json
    check "$strategy: plan and sweep" <<'END'
import json
points = json.load(open("study.json"))["points"]
plans = [json.loads(line)["plans"][0] for line in open("plans.json")]
assert len(points) == len(plans) == 6
for point, plan in zip(points, plans):
    found = point["estimate"]
    assert found["feasible"] and abs(found["iteration_s"] / plan["iteration_s"] - 1) < 1e-9, (point, plan)
    assert found["memory_bytes"] == plan["memory_bytes"]["total"], (point, plan)
    assert found["limit"] == (plan["limits"][0]["name"] if plan["limits"] else "-"), (point, plan)
END
done

# The machine file that has twice the links of abci.
expect 0 "$convoy" sweep vgg16 --machine abci --ranks 32 --vary link-bandwidth=x2 --json
cp out study.json
expect 0 "$convoy" plan vgg16 --machine abci-2x-links --ranks 32 --strategy data --json
check "abci with twice the links" <<'END'
import json
found = json.load(open("study.json"))["points"][1]["estimate"]["iteration_s"]
assert abs(json.load(open("out"))["plans"][0]["iteration_s"] / found - 1) < 1e-9
END

# The example of docs/sweep.md, but for the seconds that it took.
sed -n '/^\$ convoy sweep/,/^```/p' "$page" | sed -e '$d' >example
read -r _ _ line <example
expect 0 "$convoy" $line
sed -e 1d example | sed -e 's/ in [0-9.]* m*s$//' >expected
sed -e 's/ in [0-9.]* m*s$//' out | diff expected - >difference || fail "docs/sweep.md: $(cat difference)"

# Several strategies: the first is the one of the table, the best is told; regions have a legend.
expect 0 "$convoy" sweep vgg16 --machine two.yaml --ranks 1,8,32 --strategy data --strategy filter --strategy auto \
    --vary link-bandwidth=x1/4,x4 --csv best.csv
has out "best of all that fit"
has out "best strategy, on ranks"
has out "- nothing fits"
narrow
check "the best of several" <<'END'
import csv
for row in csv.DictReader(open("best.csv", newline="")):
    assert row["best_strategy"] == "" or float(row["best_iteration_s"]) <= float(row["iteration_s"]) or row[
        "over_memory"] == "yes"
END

# Strong scaling: the batch is that of all ranks, and more ranks than samples are told.
expect 0 "$convoy" sweep resnet18 --machine two.yaml --ranks 1:32 --batch 16 --vary precision=fp32 --csv strong.csv
has out "(strong scaling)"
has out "needs a batch of at least 32"
narrow
check "strong scaling" <<'END'
import csv
rows = list(csv.DictReader(open("strong.csv", newline="")))
assert [row["global_batch"] for row in rows] == ["16"] * 12
assert [row["feasible"] for row in rows] == (["yes"] * 5 + ["no"]) * 2 and rows[5]["iteration_s"] == ""
END

# All together.
expect 0 "$convoy" sweep lenet5 --machine two.yaml --ranks 2,8 --cross --vary batch=16,64 --vary link-latency=x1/2:x2
has out "12 points, "
has out "batch 64, link-latency x2"
narrow

# Words from files and the environment, as for every option.
printf 'ranks: "1,2"\nvary: "batch=8;arithmetic=x2"\n' >sweep.yaml
CONVOY_STRATEGY=data expect 0 "$convoy" sweep lenet5 --machine two.yaml --config sweep.yaml
has out "6 points, "

# Charts, where gnuplot is; where it is not a line says so, and the rest stays.
expect 0 env PATH="$folder" "$convoy" sweep lenet5 --machine two.yaml --ranks 1:8 --csv rest.csv -o none.svg
[ "$(wc -l <err)" -eq 1 ] || fail "expected one line: $(cat err)"
has err "warning: no charts: gnuplot is not installed"
has out "cluster: on 8 ranks"
[ -s rest.csv ] && [ ! -e none.svg ] || fail "without gnuplot there should be CSV and no SVG"
if command -v gnuplot >/dev/null; then
    expect 0 "$convoy" sweep vgg11 --machine two.yaml --ranks 1:8 --strategy data --strategy auto \
        --vary link-bandwidth=x1/4:x4 -o charts
    for chart in time throughput efficiency elasticity best-link-bandwidth; do
        [ -s "charts/$chart.svg" ] || fail "no chart of $chart"
        has "charts/$chart.svg" "vgg11 on two, batch 32 a rank, fp32"
    done
    expect 0 "$convoy" sweep vgg11 --machine two.yaml --ranks 1:8 --strategy data --strategy auto --cross \
        --vary link-bandwidth=x1/4:x4 --vary batch=8,32 --vary precision=fp32 --vary link-latency=x1,x2 -o crossed
    [ "$(ls crossed | tr '\n' ' ')" = "best-batch-link-bandwidth.svg best-batch-link-latency.svg \
best-link-bandwidth-link-latency.svg efficiency.svg elasticity.svg throughput.svg time.svg " ] ||
        fail "charts of parameters varied together: $(ls crossed)"
    has crossed/best-batch-link-bandwidth.svg "on 8 ranks, link latency x1: vgg11 on two"
    expect 0 "$convoy" sweep vgg11 --machine two.yaml --ranks 1:8 --strategy data --strategy auto --cross \
        --vary link-bandwidth=x1/4:x4 --vary precision=fp32 -o single
    [ -s single/best-link-bandwidth.svg ] || fail "no chart of the one parameter that has several values"
    expect 0 "$convoy" sweep lenet5 --machine two.yaml --ranks 1:8 -o all.svg
    check "the charts are XML" <<'END'
import glob, xml.dom.minidom
for path in glob.glob("charts/*.svg") + glob.glob("crossed/*.svg") + ["all.svg"]:
    assert xml.dom.minidom.parse(path).documentElement.tagName == "svg", path
assert open("all.svg").read().count('class="convoy-chart"') == 4
END
fi

# What is wrong: one line, the right code.
says 2 "convoy sweep needs a machine" "$convoy" sweep lenet5
says 2 "convoy sweep needs a model" "$convoy" sweep --machine abci
says 2 "did you mean 'link-bandwidth'?" "$convoy" sweep lenet5 --machine abci --vary link-bandwith=x2
says 2 "no parameter 'colour', expected batch, arithmetic" "$convoy" sweep lenet5 --machine abci --vary colour=x2
says 2 "give them as --ranks" "$convoy" sweep lenet5 --machine abci --vary ranks=1:4
says 2 "expected NAME=VALUES" "$convoy" sweep lenet5 --machine abci --vary batch
says 2 "a bandwidth with its unit" "$convoy" sweep lenet5 --machine abci --vary link-bandwidth=10
says 2 "the range x4:x1/4 is empty" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x4:x1/4
says 2 "no range of factors" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x1:40TFLOP/s
says 2 "a value is missing" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x1,
says 2 "expected a factor" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x0
says 2 "expected a factor" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x1/0
says 2 "x2 stands there twice" "$convoy" sweep lenet5 --machine abci --vary arithmetic=x1:x4,x2
says 2 "it is varied twice" "$convoy" sweep lenet5 --machine abci --vary batch=x2 --vary batch=x4
says 2 "did you mean 'bf16'?" "$convoy" sweep lenet5 --machine abci --vary precision=bf1
says 2 "has no rate at bf16" "$convoy" sweep lenet5 --machine abci --vary precision=fp16,bf16
says 2 "found '0'" "$convoy" sweep lenet5 --machine abci --ranks 0
says 2 "found '0'" "$convoy" sweep lenet5 --machine abci --ranks 0:4
says 2 "the range 8:4 is empty" "$convoy" sweep lenet5 --machine abci --ranks 8:4
says 2 "2 stands there twice" "$convoy" sweep lenet5 --machine abci --ranks 1:4,2
says 2 "found 'many'" "$convoy" sweep lenet5 --machine abci --ranks many
says 2 "8192 ranks: machine abci has 4352 devices" "$convoy" sweep lenet5 --machine abci --ranks 1:8192
says 2 "did you mean 'data'?" "$convoy" sweep lenet5 --machine abci --strategy dat
says 2 "less than one" "$convoy" sweep lenet5 --machine abci --vary batch=x1/64
says 2 "--study varies five parameters" "$convoy" sweep lenet5 --machine abci --study --vary batch=x2
says 2 "--cross needs --vary" "$convoy" sweep lenet5 --machine abci --cross
says 2 "vary fewer values" "$convoy" sweep lenet5 --machine abci --cross --vary arithmetic=x0.001:x1000 \
    --vary link-latency=x0.001:x1000 --vary memory=x0.001:x1000 --vary link-bandwidth=x0.001:x1000
says 4 "cuts no layer" "$convoy" sweep lenet5 --machine abci --strategy height=64 --ranks 64 --batch 1
[ -e no/where ] || says 1 "no/where" "$convoy" sweep lenet5 --machine two.yaml --csv no/where/study.csv

finish
