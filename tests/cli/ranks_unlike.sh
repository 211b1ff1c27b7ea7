#!/bin/bash
# Ranks that were asked for different things end at once, and one line names the one that differs, and in what; what all
# find wrong is no rank's in particular. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

other="timeout 40 $launch -n 1 $convoy $run --epochs 2 : -n 1 $convoy"
expect 2 $other $run --epochs 2 --seed 3
says_once "^error: rank 1 has another option seed than rank 0"
expect 2 $other train cifar10-quick ${run#train lenet5} --epochs 2
says_once "^error: rank 1 has another model than rank 0"
expect 2 $other $run --epochs 2 --batch few
says_once "^error: rank 1: .*few"
expect 2 timeout 40 "$launch" -n 2 "$convoy" $run --epochs 2 --strategy nonsense
says_once "^error: .*nonsense"
! grep -qE '^error: rank' err || fail "a wrong option that all have is said to be of one rank: $(cat err)"
finish
