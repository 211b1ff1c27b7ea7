#!/bin/bash
# A rank that is stopped is found after the time-out, by name, and ends all others. The arguments are the program and
# mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

for case in "2 1" "4 2" "4 0"; do
    begin ${case% *} --epochs 100000
    signal ${case#* } STOP
    loses 6 "rank ${case#* } (was lost|did not come to|has not gone on)"
done
finish
