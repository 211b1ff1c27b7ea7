#!/bin/bash
# Every command of docs/parallel.md: its blocks marked sh, one after the other in one folder, as a reader would run
# them. Sizes are small, runs are of one epoch, and ranks may share cores: the environment says so, not the document.
document=$(realpath "$(dirname "$0")/../../docs/parallel.md")
. "$(dirname "$0")/setup.sh"
"$convoy" train --help >/dev/null 2>&1 || exit 0
ldd "$convoy" | grep -q libmpi || exit 0 # built without MPI
ldd "$convoy" | grep -q libasan && exit 0 # the document is of the program, which other tests run under sanitizers
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none MPIR_CVAR_POLLS_BEFORE_YIELD=1 CONVOY_LAYOUT=rule
export CONVOY_TRAIN_SAMPLES=64 CONVOY_TEST_SAMPLES=16 CONVOY_EPOCHS=1
mkdir bin
ln -s "$convoy" bin/convoy
export PATH=$folder/bin:$PATH

commands=0
while read -r line; do
    bash -c "$line" >out 2>err </dev/null || fail "$line: ended with $?: $(head -c 600 err)"
    commands=$((commands + 1))
done < <(awk '/^```/ { inside = !inside && $0 == "```sh"; next } inside' "$document")
[ "$commands" -ge 20 ] || fail "found $commands commands in $document"
has out "convolution forward"

# What does not fit says so in one line of rank 0, and mpiexec's own lines follow.
refuses() {
    local code=$1 words=$2
    shift 2
    expect "$code" "$@"
    [ "$(grep -c "^error:" err)" -eq 1 ] || fail "$*: expected one error: $(cat err)"
    has err "$words"
}
refuses 2 "strategy height=3: height=3 is 3 ranks, expected 2" \
    mpiexec -n 2 convoy train lenet5 --data digits --strategy height=3
refuses 4 "sample=2 needs a batch of at least 2, got 1" mpiexec -n 2 convoy train lenet5 --data digits --batch 1
refuses 2 "plan.yaml: the plan is for 2 ranks, found 3: start it with mpiexec -n 2" \
    mpiexec -n 3 convoy train --plan plan.yaml --data digits
finish
