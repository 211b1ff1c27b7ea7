#!/bin/bash
# Asked to stop, by a signal to the launcher or to any one rank, all ranks stop behind the same step, save, and end with
# 75; the run goes on from there bit by bit. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"
steps=60
whole 2 $steps

# stops WHAT: what was begun has stopped and saved, and goes on; where it stopped it saved, too
stops() {
    ends 75
    grep -q "run/checkpoints/step-" out || fail "$1: the stop does not say what was saved: $(cat out err)"
    [ ! -d "run/$last" ] || fail "$1: it was through before it was stopped"
    goes_on "$1" 2 "start|end|checkpoint"
}

begin 2 --steps $steps
kill -USR1 "$launcher"
stops "SIGUSR1 of mpiexec"
for rank in 0 1; do
    begin 2 --steps $steps
    signal $rank TERM
    stops "SIGTERM of rank $rank"
done

# mpiexec hands SIGTERM on, ends its ranks a second later, which steps this short need not, and answers 1 itself
begin 4 --epochs 100000
kill -TERM "$launcher"
ends "75 1"
grep -q "run/checkpoints/step-" out || fail "SIGTERM of mpiexec: nothing was saved: $(cat out err)"
finish
