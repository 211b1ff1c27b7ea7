#!/bin/bash
# convoy calibrate on several ranks: the network is in the file, and plans read it. Arguments: the program, mpiexec.
. "$(dirname "$0")/setup.sh"
mpiexec=$2

expect 0 "$mpiexec" -n 2 "$convoy" calibrate --threads 1 --budget quick --seconds 0.01 -o two.yaml
has err "measuring the network between 2 ranks"
awk 'length > 100 { bad = 1 } END { exit bad }' out || fail "lines of more than 100 columns"
has out "all-reduce"
has two.yaml "devices-per-node: 2"
has two.yaml "measured over 2 ranks"
has out "messages, both"
has out "all-to-all"
has out "an exchange takes"
has two.yaml "exchange-slowdown"
has two.yaml "overlap: yes"
ls two.yaml.journal* >/dev/null 2>&1 && fail "journals stay behind"
expect 0 "$convoy" plan lenet5 --machine two.yaml --ranks 2 --strategy data --batch 32 --json
grep -q '"gradient_exchange":[0-9.e-]*[1-9]' out || fail "the exchange of gradients takes no time"

# The device of a file stays as it is, with its tables where they are.
mkdir beside
expect 0 "$mpiexec" -n 2 "$convoy" calibrate --threads 1 --budget quick --machine two.yaml -o beside/again.yaml
has out "all-reduce"
grep -q "errors in %" out && fail "kernels were measured"
has beside/again.yaml "kernel-tables: [\"$PWD/two.kernels/kernels.csv\"]"
[ "$(grep -m1 "memory-bandwidth" two.yaml)" = "$(grep -m1 "memory-bandwidth" beside/again.yaml)" ] ||
    fail "another device"
expect 0 "$convoy" plan lenet5 --machine beside/again.yaml --ranks 2 --batch 32
expect 2 "$mpiexec" -n 2 "$convoy" calibrate --threads 1 --machine two.yaml --model lenet5 -o three.yaml
has err "with --machine no kernels are measured"

# What one rank refuses all refuse, once.
echo "name: mine" >mine.yaml
expect 2 "$mpiexec" -n 2 "$convoy" calibrate --threads 1 -o mine.yaml
[ "$(grep -c "no calibration has written" err)" -eq 1 ] || fail "told more than once: $(cat err)"
finish
