#!/bin/bash
# A rank that is killed, at any moment, ends all: within seconds, by name; and the run goes on bit by bit. The arguments
# are the program, mpiexec, and perhaps how many times to kill, and a seed; a line is printed for each then.
. "$(dirname "$0")/setup_ranks.sh"
times=${3:-3}
RANDOM=${4:-11}
steps=60
export LC_ALL=C

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Before ranks are watched the launcher alone names the one that was lost. Where it is faster the code is its own, 137.
was_named() {
    grep -qE "^error: rank $1 was lost: its process ended" err || grep -qE "process rank $1 .*signal 9" err ||
        fail "rank $1 was not named: $(cat err)"
    [ "$(grep -c '^error: ' err)" -le 1 ] || fail "more than one line: $(cat err)"
}

# kill_one RANKS: of a run that takes whole_ms, some rank at some moment
kill_one() {
    local ranks=$1 victim=$((RANDOM % $1)) delay_ms=$((whole_ms * (RANDOM % 90) / 100)) pid="" killed_ms code=0
    rm -rf run
    timeout -k 1 100 "$launch" -n "$ranks" "$convoy" $run $patient --steps $steps --out run >out 2>err </dev/null &
    guard=$!
    sleep "$((delay_ms / 1000)).$(printf %03d $((delay_ms % 1000)))"
    while [ -z "$pid" ] && kill -0 $guard 2>/dev/null; do
        pid=$(rank_pid "$victim") # which may still be on its way
    done
    kill -9 $pid 2>/dev/null || return 1 # it was through
    killed_ms=$(now_ms)
    wait $guard || code=$?
    [ $code -eq 0 ] && return 1
    took_ms=$(($(now_ms) - killed_ms))
    [ $code -eq 6 ] || [ $code -eq 137 ] || fail "ended with $code: $(cat err)"
    was_named "$victim"
    saved=$(ls run/checkpoints 2>/dev/null | grep -c '^step-[0-9]*$')
    if [ "$saved" -gt 0 ]; then
        goes_on "rank $victim of $ranks was killed after $delay_ms ms" "$ranks"
    fi
    report="rank $victim of $ranks killed after $delay_ms of $whole_ms ms, $saved saved: code $code after $took_ms ms"
}

for ((i = 0; i < times; i++)); do
    ranks=$((2 + 2 * (RANDOM % 2)))
    if [ ! -d "whole-$ranks" ]; then
        begin_ms=$(now_ms)
        whole $ranks $steps
        whole_ms=$(($(now_ms) - begin_ms))
        mv whole whole-$ranks
        echo $whole_ms >whole-$ranks/ms
    fi
    ln -sfn whole-$ranks whole
    whole_ms=$(cat whole-$ranks/ms)
    report=""
    for _ in $(seq 20); do
        kill_one $ranks && break
    done
    [ -n "$report" ] || fail "nothing was killed"
    [ $# -le 2 ] || echo "$report"
done
finish
