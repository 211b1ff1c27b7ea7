#!/bin/bash
# A rank that ends, or is stopped, on its way to the start keeps nobody waiting: the others end within the time-out.
# The arguments are the program and mpiexec.
. "$(dirname "$0")/setup.sh"
launch=$2

# start WHAT: two ranks, of which the second does something else first
start() {
    cat >rank.sh <<SH
#!/bin/sh
[ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" = 1 ] && $1
exec "$convoy" train lenet5 --data digits --steps 2 --train-samples 128 --test-samples 8 --timeout 2
SH
    chmod +x rank.sh
    timeout 60 "$launch" -n 2 --bind-to none ./rank.sh >out 2>err
}

for way in 'exec true' 'kill -STOP $$'; do
    code=0
    start "$way" || code=$?
    [ $code -eq 6 ] || fail "'$way': mpiexec ended with $code, expected 6: $(cat err)"
    [ "$(grep -c 'error: rank 0: other ranks did not come to the start within 2 s' err)" -eq 1 ] ||
        fail "'$way': expected one line that says so: $(cat err)"
done
finish
