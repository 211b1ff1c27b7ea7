#!/bin/bash
# A rank that never starts, or ends or is stopped on its way to the start, keeps nobody waiting: the others end within
# the time-out, and one line names it. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

# start RANKS RANK WHAT: as many ranks, of which one does something else first
start() {
    cat >rank.sh <<SH
#!/bin/sh
[ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" = $2 ] && $3
exec "$convoy" $run --steps 2
SH
    chmod +x rank.sh
    timeout -k 1 40 "$launch" -n "$1" --bind-to none ./rank.sh >out 2>err </dev/null &
    guard=$!
}

start 2 1 'exec true'
loses 6 "^error: rank 1 did not come to the start within 2 s: it has ended, or is stopped"
start 4 2 'kill -STOP $$'
loses 6 "^error: rank 2 did not come to the start within 2 s"
start 4 0 'exec sleep 30'
loses 6 "^error: rank 0 did not come to the start within 2 s"
finish
