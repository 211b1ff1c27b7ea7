#!/bin/bash
# A rank that has no memory, wherever in set-up or training, ends all ranks with 1, at once, and one line names it. The
# arguments are the program, mpiexec, and perhaps at how many places memory fails on each rank.
. "$(dirname "$0")/setup_ranks.sh"
faulty=$(dirname "$convoy")/tests/ranks_faulty
places=${3:-2}
failures_of_memory=0

# lacks_memory RANKS RANK STRATEGY: at places spread over all that the rank allocates
lacks_memory() {
    local ranks=$1 rank=$2 code count place
    export STRATEGY=$3
    rm -rf run
    count=$(timeout 40 "$launch" -n "$ranks" "$faulty" count "$rank" 0 2>err) || fail "no fault: $(cat err)"
    for ((place = 1; place <= places; place++)); do
        rm -rf run
        at=$((count * (2 * place - 1) / (2 * places)))
        timeout -k 1 40 "$launch" -n "$ranks" "$faulty" memory "$rank" $at >out 2>err </dev/null
        code=$?
        [ $code -eq 0 ] && continue # it could do without
        failures_of_memory=$((failures_of_memory + 1))
        [ $code -eq 1 ] || fail "allocation $at of rank $rank of $ranks, $3: ended with $code: $(cat err)"
        says_once "^error: rank $rank: .*no memory"
    done
}

lacks_memory 2 0 channel
lacks_memory 2 1 data
lacks_memory 4 3 sample=2,channel=2
[ $failures_of_memory -ge $((2 * places)) ] || fail "memory failed $failures_of_memory times only"
finish
