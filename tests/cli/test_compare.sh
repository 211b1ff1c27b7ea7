#!/bin/bash
# convoy compare: accuracies that follow from what it prints, no row left out. Argument 1 is the program.
measured=$(realpath "$(dirname "$0")/../data/compare.csv")
. "$(dirname "$0")/setup.sh"

check() {
    if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
        python3 - "$measured" || fail "$1"
    fi
}

# Every row of the file, in its order, with all its columns; accuracy and means as they are defined.
expect 0 "$convoy" compare --measured "$measured" --json
check "the JSON of convoy compare" <<'END'
import csv, json, sys
answer = json.load(open("out"))
rows = list(csv.DictReader(open(sys.argv[1])))
assert list(answer) == ["rows", "by_strategy", "mean_accuracy"]
assert len(answer["rows"]) == len(rows)
groups = {}
for told, row in zip(answer["rows"], rows):
    for key in ["model", "machine", "strategy", "precision", "family", "class"]:
        assert told[key] == row[key], (key, told, row)
    assert told["ranks"] == int(row["ranks"]) and told["global_batch"] == int(row["global_batch"])
    assert abs(told["measured_s"] - float(row["iteration_s"])) < 1e-9
    expected = max(0, 1 - abs(told["predicted_s"] - told["measured_s"]) / told["measured_s"])
    assert abs(told["accuracy"] - expected) < 1e-6
    assert told["low_confidence"] == (row["class"] == "managed-memory"), row
    groups.setdefault(row["family"], []).append(told["accuracy"])
assert set(answer["by_strategy"]) == set(groups), (answer["by_strategy"], set(groups))
for family, values in groups.items():
    assert abs(answer["by_strategy"][family] - sum(values) / len(values)) < 1e-6
mean = sum(sum(values) for values in groups.values()) / len(rows)
assert abs(answer["mean_accuracy"] - mean) < 1e-6
END

# For people: within 100 columns, the warning of low confidence with its count.
expect 0 "$convoy" compare --measured "$measured"
awk 'length > 100 { print "FAILED: line " NR ": " length " columns"; bad = 1 } END { exit bad }' out ||
    fail "lines are too wide"
grep -q '^? .* of low confidence' out || fail "no warning of managed memory"
rows=$(grep -c '?$' out)
[ "$rows" -eq "$(grep -c managed-memory "$measured")" ] || fail "rows of low confidence: $rows"

# Rates in place of seconds, columns in another order, quotes, notes; a strategy without a schedule counts 0.
cat >rates.csv <<'END'
note,images_per_s,precision,global_batch,ranks,strategy,machine,model
"a ""fast"" one, it says",1000,FP32,64,2,data,dgx1-v100,resnet18
,500,fp32,64,64,"height=64",dgx1-v100,lenet5
,500,fp32,64,1000000,data,dgx1-v100,lenet5
END
expect 0 "$convoy" compare --measured rates.csv --json
check "rates" <<'END'
import json
first, second, third = json.load(open("out"))["rows"]
assert first["note"] == 'a "fast" one, it says' and abs(first["measured_s"] - 0.064) < 1e-12
assert first["feasible"] and first["precision"] == "fp32"
assert second["accuracy"] == 0 and not second["feasible"] and "cuts no layer" in second["why_not"]
assert third["accuracy"] == 0 and third["why_not"]
END
expect 0 "$convoy" compare --measured rates.csv
has out "line 3: no schedule, so accuracy 0: "

# What is wrong: the line and the column.
head -1 "$measured" >bare.csv
expect 0 "$convoy" compare --measured bare.csv --json
has out '{"rows":[],"by_strategy":{},"mean_accuracy":null}'
names=model,machine,strategy,ranks,global_batch,precision,iteration_s
while IFS='|' read -r row words; do
    printf '%s\n%s\n' "$names" "$row" >wrong.csv
    says 2 "$words" "$convoy" compare --measured wrong.csv
done <<'END'
lenet6,abci,data,4,64,fp32,1|wrong.csv:2: no model 'lenet6'
lenet5,abbci,data,4,64,fp32,1|wrong.csv:2: no machine 'abbci'
lenet5,abci,dat,4,64,fp32,1|wrong.csv:2: strategy dat
lenet5,abci,auto,4,64,fp32,1|wrong.csv:2: strategy: found 'auto'
lenet5,abci,sample=2,4,64,fp32,1|wrong.csv:2: strategy sample=2
lenet5,abci,data,0,64,fp32,1|wrong.csv:2: ranks: found '0'
lenet5,abci,data,4,many,fp32,1|wrong.csv:2: global_batch: found 'many'
lenet5,abci,data,4,64,fp31,1|wrong.csv:2: precision: found 'fp31'
lenet5,abci,data,4,64,fp32,-1|wrong.csv:2: iteration_s: found '-1'
lenet5,abci,data,4,64,fp32,|wrong.csv:2: iteration_s: found nothing
lenet5,abci,data,4,64,fp32|wrong.csv:2: found 6 cells, expected 7
END
printf 'model,machine,ranks\nlenet5,abci,4\n' >wrong.csv
says 2 "wrong.csv:1: no column 'strategy'" "$convoy" compare --measured wrong.csv
says 2 "convoy compare needs measurements" "$convoy" compare
says 2 "no-such.csv" "$convoy" compare --measured no-such.csv

finish
