#!/bin/bash
# convoy calibrate: what it writes is what plans read, it goes on where it was killed, and leaves foreign files alone.
# Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

if ! "$convoy" calibrate --help >/dev/null 2>&1; then # a plan-only build says what is missing
    expect 2 "$convoy" calibrate
    has err "error: 'calibrate' is not in this build"
    finish
fi
short="--threads 1 --budget quick --seconds 0.01" # a round is always whole

# ---- what is refused ----

echo "name: mine" >mine.yaml
says 2 "mine.yaml: there is a file that no calibration has written" "$convoy" calibrate $short -o mine.yaml
[ "$(cat mine.yaml)" = "name: mine" ] || fail "a foreign file was touched"
echo "my notes" >notes.yaml.journal
says 2 "notes.yaml.journal: it is no journal of a calibration" "$convoy" calibrate $short -q -o notes.yaml
expect 1 "$convoy" calibrate $short -o no/such/folder/m.yaml
has err "no/such/folder"
says 2 "--budget: expected quick, normal or full" "$convoy" calibrate --budget long
says 2 "no model" "$convoy" calibrate --model lenet7

# ---- killed, stopped, and going on ----

# begin COMMAND...: run it behind, until its journal has some rows
begin() {
    "$@" >out 2>err </dev/null &
    process=$!
    while kill -0 $process 2>/dev/null && [ "$(cat m.yaml.journal 2>/dev/null | wc -l)" -lt "$rows" ]; do
        sleep 0.05
    done
}

rows=3
begin "$convoy" calibrate --threads 1 --budget quick --seconds 600 -o m.yaml
kill -KILL $process
wait $process 2>/dev/null
[ -e m.yaml ] && fail "a machine file before the end"
had=$(($(wc -l <m.yaml.journal) - 1))
[ "$had" -ge 2 ] || fail "a journal of $had rows"
rows=$((had + 3))
begin "$convoy" calibrate --threads 1 --budget quick --seconds 600 -o m.yaml
kill -TERM $process
wait $process
[ $? -eq 75 ] || fail "stopped, but not with 75"
has err "going on with $had kernels of m.yaml.journal"
has err "m.yaml.journal keeps: the same command goes on"

# ---- to the end ----

expect 0 "$convoy" calibrate $short -o m.yaml --model lenet5 --batch 16
has err "going on with"
awk 'length > 100 { bad = 1 } END { exit bad }' out || fail "lines of more than 100 columns"
has out "errors in % on shapes held out"
has out "written to m.yaml"
[ -e m.yaml.journal ] && fail "the journal stays behind"
has m.yaml "# Measured by convoy calibrate."
has m.yaml "measured with 1 threads"
has m.yaml "resident set of a rank without tensors, measured"
row='^[0-9a-f]\{16\},[0-9]*,[0-9.e-]*,[0-9.e-]*,dense backward-data dy 16x500:plain w 500x800'
grep -q "$row" m.kernels/kernels.csv || fail "a kernel of the model is not in the table"
expect 0 "$convoy" plan lenet5 --machine m.yaml --ranks 1 --batch 16 --json
grep -q '"images_per_s":[1-9]' out || fail "nothing is planned: $(head -c 300 out)"

# Its own file is written over; as JSON the same figures.
expect 0 "$convoy" calibrate $short -o m.yaml --json
for key in peak_flop_per_s memory_Bps launch_s first_touch_Bps kernels noise fits; do
    has out "\"$key\":"
done
finish
