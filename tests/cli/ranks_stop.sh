#!/bin/bash
# A rank that is stopped, at any moment from its first to its last, is found after the time-out, by name, and ends all
# others. The arguments are the program, mpiexec, and perhaps at how many moments of a short run, from a seed; a line is
# printed for each then.
. "$(dirname "$0")/setup_ranks.sh"
moments=${3:-4}
RANDOM=${4:-5}
told=${4:-}

for case in "2 1" "4 0"; do
    begin ${case% *} --epochs 100000
    signal ${case#* } STOP
    loses 6 "^error: rank ${case#* } (was lost|did not come to|has not gone on)"
done

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# is_last RANKS RANK: the run is through, and all others have ended: nobody is left who could wait for this one
is_last() {
    local others
    for _ in $(seq 20); do
        others=0
        for ((rank = 0; rank < $1; rank++)); do
            [ "$rank" -eq "$2" ] || [ -z "$(rank_pid $rank)" ] || others=1
        done
        sleep 0.1
        grep -q "^error" err && return 1
        [ $others -eq 0 ] && return 0
    done
    return 1
}

# stop_at RANKS RANK MS: after the launch; false where it was through
stop_at() {
    local stopped_ms
    rm -rf run
    timeout -k 1 40 "$launch" -n "$1" "$convoy" $run --steps 6 --out run >out 2>err </dev/null &
    guard=$!
    sleep "$(($3 / 1000)).$(printf %03d $(($3 % 1000)))"
    for _ in $(seq 50); do
        pid=$(rank_pid "$2")
        [ -n "$pid" ] && break
        kill -0 $guard 2>/dev/null || return 1
    done
    kill -STOP $pid 2>/dev/null || return 1
    stopped_ms=$(now_ms)
    if is_last "$1" "$2"; then
        kill -CONT $pid
        ends 0
        return 1
    fi
    loses 6 "^error: rank $2 (was lost|did not come to|has not gone on)"
    took_ms=$(($(now_ms) - stopped_ms))
    [ -z "$told" ] || echo "rank $2 of $1 stopped at $3 ms, ended after $took_ms ms: $(grep ^error: err)"
}

begin_ms=$(now_ms)
expect 0 timeout 40 "$launch" -n 2 "$convoy" $run --steps 6 --out once
whole_ms=$(($(now_ms) - begin_ms))
for ((i = 0; i < moments; i++)); do
    ranks=$((2 + 2 * (i % 2)))
    stop_at $ranks $((RANDOM % ranks)) $((whole_ms * (2 * i + 1) / (2 * moments)))
done
finish
