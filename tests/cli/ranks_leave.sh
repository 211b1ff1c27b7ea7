#!/bin/bash
# A rank that ends in the middle of a training with a code of its own, or leaves MPI, as a program does that returns
# early, is named and ends all others. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"
faulty=$(dirname "$convoy")/tests/ranks_faulty

# leaves RANKS CODES WORDS WHAT RANK CODE
leaves() {
    rm -rf run
    timeout -k 1 40 "$launch" -n "$1" "$faulty" "$4" "$5" "$6" >out 2>err </dev/null &
    guard=$!
    loses "$2" "^error: rank $5 $3"
}

# where mpiexec is faster than the watch the code is its own: that of the process, or 1 where that was 0
leaves 2 "6 1" "was lost: its process ended" leave 1 0
leaves 2 "6 3" "was lost: its process ended" leave 0 3
leaves 4 "6 3" "was lost: its process ended" leave 2 3
leaves 2 6 "did not come to " return 0 3
leaves 4 6 "did not come to " return 0 0
finish
