#!/bin/bash
# convoy compare --matrix: what the runs say, by a launcher that is stood in for, so that every figure follows by hand.
# Argument 1 is the program.
. "$(dirname "$0")/setup.sh"
machine() { # machine NAME CORES DEVICES [PROBE]
    cat <<MACHINE
name: $1
summary: "a flop takes a nanosecond, a message a millisecond and a microsecond for each byte"
devices-per-node: {value: $3, source: "a test"}
device: {name: $1, source: "a test", cores: $2, vector-bits: 256, memory: 16 GiB, memory-bandwidth: 1 TB/s,
  ${4:+probe: $4,}
  peak: {fp32: 1 GFLOP/s, source: "a test"}}
links:
  - {name: wire, connects: device, endpoints: $3, latency: 1 ms, bandwidth: 1 MB/s, ports: 1, source: "a test"}
MACHINE
}
machine pair 1 2 "1 ms" >pair.yaml
machine wide 2 4 >wide.yaml

# The launcher notes its words, and answers with the next line of a file named after the strategy and the threads.
cat >launch <<'LAUNCH'
#!/bin/bash
echo "$*" >>notes
while [ $# -gt 0 ]; do
    case $1 in --strategy) strategy=$2 ;; --threads) threads=$2 ;; esac
    shift
done
answers=answers.$strategy.$threads
answer=$(head -n 1 "$answers")
sed -i 1d "$answers"
[ "$answer" = fails ] && { echo "some words"; echo "error: the run has failed"; echo "mpiexec: gave up"; exit 3; } >&2
echo "a launcher's own words"
echo "{\"iteration_s\": ${answer% *}, \"probe_s\": 0.002, \"peak_memory_bytes\": ${answer#* }}"
LAUNCH
chmod +x launch
answer() { # answer STRATEGY THREADS LINES...
    printf '%s\n' "${@:3}" >"answers.$1.$2"
}
cat >list.txt <<'LIST'
# five rows
lenet5 8 2 1 data # of two ranks
lenet5 4/rank 2 1 filter
lenet5 8 2 1 channel

lenet5 8 2 2 data
cifar10-quick 8 2 1 height=2
LIST
answers() {
    answer data 1 "1.9 250000000" "1.7 240000000" "1.8 230000000"
    answer filter 1 "0.4 250000000" "0.4 250000000" "0.4 250000000"
    answer channel 1 "0.05 250000000" "0.06 250000000" "0.04 250000000"
    answer data 2 "0.5 1000" "0.5 1000" "0.5 1000"
    answer height=2 1 "0.5 1000" fails "0.5 1000"
    : >notes
}
matrix="compare --matrix list.txt --machine ./pair.yaml --machine ./wide.yaml --runs 3 --seconds 0.2"
launcher="./launch {nodes} {ranks}x{threads}"

# The median of three runs, their spread, the largest memory; a row that fails ends itself alone, with its own words.
answers
expect 1 "$convoy" $matrix --launcher "$launcher" --out runs.jsonl --csv rows.csv --json
has err "error: 1 of 5 rows could not be measured"
cp out first.json
python3 - <<'PY' || fail "the JSON of a matrix"
import itertools, json
answer = json.load(open("first.json"))
rows = answer["rows"]
assert [row["measured_s"] for row in rows] == [1.8, 0.4, 0.05, 0.5, 0.5], rows
assert (rows[0]["least_s"], rows[0]["most_s"], rows[0]["runs_s"]) == (1.7, 1.9, [1.9, 1.7, 1.8]), rows[0]
assert rows[0]["memory"]["measured_bytes"] == 250000000 and rows[1]["global_batch"] == 8, rows
assert rows[4]["why_failed"] == "the run has failed" and rows[4]["runs_s"] == [0.5], rows[4]
assert [row["machine"] for row in rows] == ["./pair.yaml"] * 3 + ["./wide.yaml", "./pair.yaml"], rows
for row in rows:
    error = row["predicted_s"] / row["measured_s"] - 1
    assert abs(row["error"] - error) < 1e-6 and abs(row["accuracy"] - max(0, 1 - abs(error))) < 1e-6, row
    assert row["inside"] == (abs(row["predicted_s"] - row["measured_s"]) <= row["error_relative"] * row["predicted_s"])
    assert row["memory"]["predicted_bytes"] > 0, row
# The probe took twice as long as in the calibration of one machine; of the other nobody knows.
for row in rows:
    if row["machine"] == "./wide.yaml":
        assert row["pace"] is None and row["at_pace"]["measured_s"] is None, row
        continue
    paced, half = row["at_pace"], row["measured_s"] / 2
    assert row["pace"] == 2 and abs(paced["measured_s"] - half) < 1e-12, row
    error = row["predicted_s"] / half - 1
    assert abs(paced["error"] - error) < 1e-6 and abs(paced["accuracy"] - max(0, 1 - abs(error))) < 1e-6, row
    assert paced["inside"] == (abs(row["predicted_s"] - half) <= row["error_relative"] * row["predicted_s"]), row
paced = [row["at_pace"] for row in rows if row["pace"]]
assert answer["at_pace"]["counted"] == len(paced) == 4, answer["at_pace"]
assert abs(answer["at_pace"]["mean_accuracy"] - sum(row["accuracy"] for row in paced) / 4) < 1e-6, answer["at_pace"]
assert answer["at_pace"]["worst_accuracy"] == min(row["accuracy"] for row in paced), answer["at_pace"]
mean = sum(row["accuracy"] for row in rows) / 5
assert rows[0]["inside"] and not rows[1]["inside"], rows # a flop takes a nanosecond: about 1.8 s, and a bar of a half
assert abs(answer["mean_accuracy"] - mean) < 1e-6 and answer["inside"] == sum(row["inside"] for row in rows), answer
off = sum(abs(row["predicted_s"] - row["measured_s"]) > max(0.15 * row["measured_s"], row["most_s"] - row["least_s"])
          for row in rows)
assert answer["off"] == off and answer["counted"] == 5, answer
# One set: the three strategies of lenet5 on two ranks of one thread. The runs of channel lie apart from the others'.
pairs = list(itertools.combinations(rows[:3], 2))
agreed = sum((a["predicted_s"] < b["predicted_s"]) == (a["measured_s"] < b["measured_s"]) for a, b in pairs)
order = answer["order"]
assert (order["sets"], order["pairs"], order["agreed"], order["apart"]) == (1, 3, agreed, 3), order
assert abs(order["kendall_tau"] - (2 * agreed - 3) / 3) < 1e-9, order
assert [(m["strategy_family"], m["threads_per_rank"], m["rows"]) for m in answer["by_strategy"]] == \
    [("data", 1, 1), ("filter", 1, 1), ("channel", 1, 1), ("data", 2, 1), ("spatial", 1, 1)], answer["by_strategy"]
assert answer["memory"]["rows"] == 3, answer["memory"]
PY

# The line of a run: the launcher's words with their figures, this program, and what convoy bench is asked. Of 0.05 s
# an iteration, 0.2 s are four: five are measured at the least.
[ "$(wc -l <notes)" -eq 14 ] || fail "runs: $(cat notes)"
has notes "1 2x1 $convoy bench lenet5 --batch 8 --threads 1 --strategy data --optimizer momentum --bucket 25000000B"
[ "$(grep "strategy channel" notes | tail -n 2 | grep -c -- "--iterations 5 --warmup 3 --json --quiet$")" -eq 2 ] ||
    fail "other iterations: $(cat notes)"

# What was measured is kept, whatever cuts the file; the row that had failed is tried again.
printf '{"host":"cut' >>runs.jsonl
answers
answer height=2 1 "0.3 1000" "0.4 1000"
expect 0 "$convoy" $matrix --launcher "$launcher" --out runs.jsonl --csv rows.csv --json
[ "$(wc -l <notes)" -eq 2 ] || fail "measured again: $(cat notes)"
[ "$(wc -l <runs.jsonl)" -eq 15 ] || fail "kept: $(cat runs.jsonl)"
python3 - <<'PY' || fail "what was kept"
import json
first, second = json.load(open("first.json"))["rows"], json.load(open("out"))["rows"]
assert first[:4] == second[:4] and second[4]["runs_s"] == [0.5, 0.3, 0.4] and second[4]["why_failed"] is None, second
PY
expect 0 "$convoy" compare --measured rows.csv --json
python3 - <<'PY' || fail "the CSV of a matrix"
import json
rows = json.load(open("out"))["rows"]
assert [row["measured_s"] for row in rows] == [1.8, 0.4, 0.05, 0.5, 0.4], rows
PY

# For people: within 100 columns; machines that do not fit, and rows that nothing predicts, are told.
expect 0 "$convoy" $matrix --out runs.jsonl
awk 'length > 100 { print "FAILED: line " NR ": " length " columns"; bad = 1 } END { exit bad }' out ||
    fail "lines are too wide"
has out "  data                2x1     1.8 s  11 %"
has out "pairs as measured"
machine single 1 2 | sed -e '/^links/,$d' -e 's/value: 2/value: 1/' >single.yaml
answers
expect 0 "$convoy" compare --matrix list.txt --machine ./single.yaml --runs 3 --out runs.jsonl --launcher "$launcher"
has out "line 2: not predicted: no --machine has so many devices"
expect 0 "$convoy" compare --matrix list.txt --machine ./pair.yaml --runs 3 --out runs.jsonl --launcher "$launcher"
has out "line 6: predicted for devices of 1 core: no --machine has devices of 2"

# Runs that were kept before there were probes have no pace.
sed 's/"probe_s":[^,]*,//' runs.jsonl >old.jsonl
expect 0 "$convoy" compare --matrix list.txt --machine ./pair.yaml --runs 3 --out old.jsonl --launcher "$launcher" \
    --json
has out '"pace":null'

# What is wrong in the list, the line or the file is told before anything is run.
while IFS='|' read -r line words; do
    printf 'lenet5 8 1 1 serial\n%s\n' "$line" >wrong.txt
    says 2 "wrong.txt:2: $words" "$convoy" compare --matrix wrong.txt --machine ./pair.yaml
done <<'LINES'
lenet5 8 1 serial|found 4 words, expected MODEL BATCH RANKS THREADS STRATEGY
lenet5 8 1 1 serial more|found more than 5 words
lenet5 8 0 1 serial|ranks: found '0', expected 1 to
lenet5 8 1 x serial|threads: found 'x', expected 1 to
lenet5 0 1 1 serial|--batch: expected a count
lenet5 8 1 1 auto|strategy: found 'auto'
LINES
says 2 "--machine NAME or FILE" "$convoy" compare --matrix list.txt
says 2 "--launcher goes with --matrix" "$convoy" compare --measured rows.csv --launcher x
says 2 "convoy compare needs a run" "$convoy" compare run --matrix list.txt
says 2 "list.txt:1:" "$convoy" compare --matrix list.txt --machine ./pair.yaml --out list.txt
says 2 "--launcher: ./nothing does not start" \
    "$convoy" compare --matrix list.txt --machine ./pair.yaml --launcher ./nothing

# A row of one rank needs no launcher, and is convoy bench indeed.
if "$convoy" train --help >/dev/null 2>&1; then
    printf 'lenet5 8 1 1 serial\nlenet5 8 1 1 serial,oops=1\nnonet 8 1 1 serial\n' >own.txt
    expect 1 "$convoy" compare --matrix own.txt --machine ./pair.yaml --runs 1 --seconds 0.01 --quiet --json
    python3 - <<'PY' || fail "a row of one rank"
import json
rows = json.load(open("out"))["rows"]
assert 1e-5 < rows[0]["measured_s"] < 10 and rows[0]["memory"]["measured_bytes"] > 10e6, rows[0]
assert "oops" in rows[1]["why_failed"] and "nonet" in rows[2]["why_failed"] and "nonet" in rows[2]["why_not"], rows
PY
fi
finish
