#!/bin/bash
# No rank is left waiting: whatever happens to one of several ranks, all end in seconds with the right code, one line
# names the rank, and the last checkpoint goes on bit by bit. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

"$convoy" train --help >/dev/null 2>&1 || exit 0 # a plan-only build does not train
command -v mpiexec >/dev/null || exit 0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=0

data="--data digits --train-samples 320 --test-samples 32 --batch 32 --threads 1 --layout rule --quiet"
run="train lenet5 $data --timeout 2 --checkpoint-every 5 --no-metrics-rates"

# The processes of a run that was begun as mpiexec PID, one a line.
ranks_of() { pgrep -P "$1" -x convoy; }

# begin RANKS OPTIONS...: start it, and wait until it has saved in the folder `run`
begin() {
    local ranks=$1
    shift
    timeout -k 1 40 mpiexec -n "$ranks" "$convoy" $run "$@" >out 2>err </dev/null &
    guard=$!
    for _ in $(seq 300); do
        [ -n "$(ls -d run/checkpoints/step-???????? 2>/dev/null)" ] && break
        sleep 0.1
    done
    launcher=$(pgrep -P $guard)
}

# ends CODES WORDS: what was begun ends, with one of the codes, and one line of it says so
ends() {
    wait $guard
    local code=$?
    case " $1 " in
    *" $code "*) ;;
    *) fail "ended with $code, expected $1: $(cat err)" ;;
    esac
    [ "$(grep -c '^error: ' err)" -eq 1 ] || fail "expected one line: $(cat err)"
    grep '^error: ' err | grep -qE -- "$2" || fail "no '$2' in: $(cat err)"
}

# a rank that is killed: found at once. Where mpiexec is faster than the watch the code is its own, 137.
mpiexec -n 2 "$convoy" $run --steps 150 --out whole >/dev/null 2>err || fail "the run that is left alone: $(cat err)"
RANDOM=11
for victim in 1 2 1; do
    rm -rf run
    begin 2 --steps 150 --out run
    sleep "0.0$((RANDOM % 9))"
    kill -9 "$(ranks_of "$launcher" | sed -n "${victim}p")" 2>/dev/null || fail "nothing was there to kill"
    ends "6 137" "rank $((victim - 1)) was lost: its process ended"
    mpiexec -n 2 "$convoy" train --resume run --quiet >/dev/null 2>err || fail "the resume: $(cat err)"
    for file in model optimizer; do
        cmp whole/checkpoints/step-00000150/$file.safetensors run/checkpoints/step-00000150/$file.safetensors ||
            fail "$file differs after the resume"
    done
    diff <(grep -E '"(step|epoch)"' whole/metrics.jsonl | grep -v '"start"\|"end"') \
        <(grep -E '"(step|epoch)"' run/metrics.jsonl | grep -v '"start"\|"end"') >diff || fail "metrics: $(head diff)"
done

# a rank that is stopped: found after the time-out
for ranks in 2 4; do
    rm -rf run
    begin $ranks --epochs 100000 --out run
    kill -STOP "$(ranks_of "$launcher" | sed -n 2p)"
    ends 6 "rank 1 (was lost|did not come to|has not gone on)"
done

# a signal to the launcher stops all ranks after the same step
rm -rf run
begin 2 --epochs 100000 --out run
kill -USR1 "$launcher"
wait $guard
[ $? -eq 75 ] || fail "SIGUSR1 did not end with 75: $(cat err)"
grep -q "run/checkpoints/step-" out || fail "the stop does not say what was saved: $(cat out err)"

# a number that is none: the layer is named, on whatever rank it is, and the checkpoint before it is whole
for strategy in data height=2 channel pipeline; do
    expect 5 timeout 40 mpiexec -n 2 "$convoy" $run --epochs 2 --strategy $strategy --learning-rate 1e6
    grep -qE '^error: .*layer [a-z0-9]+: ' err || fail "$strategy: the layer is not named: $(cat err)"
    [ "$(grep -c '^error: ' err)" -eq 1 ] || fail "$strategy: expected one line: $(cat err)"
done

# ranks that were asked for different things, or find different things
other="timeout 40 mpiexec -n 1 $convoy $run --epochs 2 : -n 1 $convoy"
expect 2 $other $run --epochs 2 --seed 3
has err "error: rank 1 has another option seed than rank 0"
expect 2 $other train cifar10-quick ${run#train lenet5} --epochs 2
has err "error: rank 1 has another model than rank 0"
expect 3 $other ${run/--data digits/--data nowhere} --epochs 2
has err "error: rank 1: nowhere: no such data folder"

finish
