#!/bin/bash
# convoy compare: accuracies that follow from what it prints, no row left out. Argument 1 is the program.
measured=$(realpath "$(dirname "$0")/../data/compare.csv")
machines=$(realpath "$(dirname "$0")/../../machines")
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

# A model is what the machine's set-up has of it, unless the row says otherwise; a plan is of what it was asked for.
cat >set-up.csv <<'END'
model,machine,strategy,ranks,global_batch,precision,iteration_s
vgg16:size=226,abci,data,64,2048,fp32,0.5
"vgg16:size=226,ceil-mode=yes,adaptive-pool=no",abci,data,64,2048,fp32,0.5
"vgg16:size=226,ceil-mode=no,adaptive-pool=yes",abci,data,64,2048,fp32,0.5
vgg16:size=226,dgx1-v100,data,64,2048,fp32,0.5
END
expect 0 "$convoy" compare --measured set-up.csv --json
check "models of a set-up" <<'END'
import json
own, said, other, elsewhere = json.load(open("out"))["rows"]
assert own["model"] == "vgg16:size=226" and own["predicted_model"] == said["model"], own
assert own["predicted_s"] == said["predicted_s"] > 1.05 * other["predicted_s"], (own, other)
assert other["predicted_model"] == other["model"] and elsewhere["predicted_model"] == "vgg16:size=226"
END
expect 0 "$convoy" compare --measured set-up.csv
has out "  there vgg16:size=226,ceil-mode=yes,adaptive-pool=no"
sed 's/model-options: {value: "[^"]*"/model-options: {value: "ceiling=yes"/' "$machines/abci.yaml" >ceiling.yaml
sed 's/,abci,/,ceiling.yaml,/' set-up.csv >wrong.csv
expect 2 "$convoy" compare --measured wrong.csv
has err "wrong.csv:2: options of models: found 'ceiling=yes', expected key=value of an option of some model of the zoo"

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
says 2 "convoy compare needs a run, measurements or a list" "$convoy" compare
says 2 "no-such.csv" "$convoy" compare --measured no-such.csv

# A run: what was predicted before it stands beside what it took; files of runs are as hostile as others.
says 2 "convoy compare needs a run, measurements or a list" "$convoy" compare
says 2 "convoy compare needs a run, measurements or a list" "$convoy" compare run --measured "$measured"
says 2 "nowhere: no such run" "$convoy" compare nowhere
mkdir begun
says 2 "begun: holds no profile.json" "$convoy" compare begun
row='{"step":"convolution forward","algorithm":"","calls":6,"seconds":0.06,"flop":1,"bytes":1,"rank":1,"ranks":2,'
row+='"least_s":0.05,"predicted_s":0.03}'
row2='{"step":"dense forward","algorithm":"","calls":3,"seconds":0.012,"flop":1,"bytes":1,"rank":0,"ranks":2,'
row2+='"least_s":0.011,"predicted_s":0.015}'
row3='{"step":"batch","algorithm":"","calls":3,"seconds":0.003,"flop":0,"bytes":0,"rank":0,"ranks":2,"least_s":0.003}'
cat >begun/profile.json <<PROFILE
{"schema":1,"model":"net","strategy":"data","precision":"fp32","ranks":2,"threads_per_rank":1,"global_batch":8,
 "measured":{"iterations":3,"iteration_s":0.025,"peak_memory_bytes":100000000,"steps":[$row,$row2,$row3]},
 "predicted":{"machine":"abci","iteration_s":0.02,"error_relative":0.1,"memory_bytes":110000000}}
PROFILE
# By hand: an iteration 0.02 of 0.025 s; kinds 10 of 20 ms and 5 of 4 ms: 1 ms too much, 10 too little, 2 cancel.
expect 0 "$convoy" compare begun
has out "iteration                                      20 ms       25 ms    -20.0 %     80.0 %"
has out "memory of a rank, at most                     110 MB      100 MB    +10.0 %     90.0 %"
has out "convolution forward                            10 ms       20 ms    -50.0 %    -40.0 %     1  1.20"
has out "dense forward                                   5 ms        4 ms    +25.0 %     +4.0 %     0  1.09"
has out "errors of kinds: 1 ms too much and 10 ms too little an iteration; 2 ms of them cancel"
has out "kinds without a prediction took 1 ms an iteration"
has out "+-10 %: the iteration lies outside that"
awk 'length > 100 { bad = 1 } END { exit bad }' out || fail "lines of a run are too wide"
expect 0 "$convoy" compare begun --json
check "the JSON of a run" <<'END'
import json
answer = json.load(open("out"))
assert abs(answer["iteration"]["accuracy"] - 0.8) < 1e-9 and abs(answer["iteration"]["error"] + 0.2) < 1e-9, answer
assert abs(answer["excess_s"] - 0.001) < 1e-9 and abs(answer["lack_s"] - 0.01) < 1e-9, answer
assert [step["predicted_s"] for step in answer["steps"]][2] is None, answer
END
# Ranks apart. By hand, ms an iteration: rank 0 is said 10 and 5, and took 16.7 and 4; rank 1 took 20 and 3.67.
mkdir apart
rank0='{"iteration_s":0.024,"peak_memory_bytes":90000000,"seconds":[0.05,0.012,0.003],"predicted_s":[0.03,0.015,0]}'
rank1='{"iteration_s":0.025,"peak_memory_bytes":100000000,"seconds":[0.06,0.011,0],"predicted_s":[0.03,0.015,0]}'
sed "s/\(\"least_s\":0.003}\]\)}/\1,\"ranks\":[$rank0,$rank1]}/" begun/profile.json >apart/profile.json
expect 0 "$convoy" compare apart
has out "    0      24 ms      15 ms    20.7 ms   -27.4 %       1 ms    6.67 ms     90 MB   +22.2 %"
has out "    1      25 ms      15 ms    23.7 ms   -36.6 %    1.33 ms      10 ms    100 MB   +10.0 %"
grep -q "rank 1, an iteration's" out && fail "kinds of each rank unasked"
expect 0 "$convoy" compare apart --all
[ "$(grep -c "rank [01], an iteration's" out)" -eq 2 ] || fail "no kinds of each rank: $(cat out)"
has out "convolution forward                            10 ms     16.7 ms   -40.0 %"
awk 'length > 100 { bad = 1 } END { exit bad }' out || fail "lines of ranks are too wide"
expect 0 "$convoy" compare apart --json
check "the JSON of ranks" <<'END'
import json
first, second = json.load(open("out"))["by_rank"]
assert second["rank"] == 1 and second["peak_memory_bytes"] == 100000000 and second["iteration_s"] == 0.025, second
assert abs(second["lack_s"] - 0.01) < 1e-9 and abs(second["excess_s"] - 0.004 / 3) < 1e-9, second
assert abs(first["unpredicted_s"] - 0.001) < 1e-9 and len(first["steps"]) == 3 and len(second["steps"]) == 2, first
END
for damage in 's/\[0.05,0.012,/[0.05,/' 's/0.05,0.012/0.05,-1/' 's/"iteration_s":0.024/"iteration_s":"x"/' \
    's/,{"iteration_s":0.025,"peak.*\]}\]/]/'; do
    mkdir -p damaged
    sed "$damage" apart/profile.json >damaged/profile.json
    says 2 "damaged/profile.json:" "$convoy" compare damaged
done
for damage in 's/"calls":6/"calls":-6/' 's/"seconds":0.06/"seconds":"long"/' 's/"schema":1/"schema":2/' \
    's/"steps"/"step"/' 's/"ranks":2,"threads/"ranks":0,"threads/' 's/}}$/}/'; do
    mkdir -p damaged
    sed "$damage" begun/profile.json >damaged/profile.json
    says 2 "damaged/profile.json:" "$convoy" compare damaged
done
sed 's/"predicted":{.*/"predicted":null}/' begun/profile.json >damaged/profile.json
says 2 "damaged: nothing was predicted of the run; convoy train --machine M predicts it" "$convoy" compare damaged

# Train writes it, and says the iteration's line itself.
if "$convoy" train --help >/dev/null 2>&1; then
    expect 0 "$convoy" train lenet5 --data digits --train-samples 64 --test-samples 32 --steps 2 --layout rule \
        --machine laptop --out run
    grep -qE "^predicted       [0-9.]+ .?s an iteration on laptop, measured " out || fail "no prediction in: $(cat out)"
    expect 0 "$convoy" compare run
    has out "lenet5: 1 rank (serial)"
    has out "convolution forward"
fi
finish
