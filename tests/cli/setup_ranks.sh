# What the tests of faults on several ranks share; sourced. No rank is left waiting: whatever happens to one of them,
# all end in seconds with the right code, one line names the rank, and the last checkpoint goes on bit by bit. The
# arguments are the program and mpiexec. A small training; begin starts it, ends says how it has to end.
. "$(dirname "$0")/setup.sh"
launch=$2
data="--data digits --train-samples 320 --test-samples 32 --batch 32 --threads 1 --layout rule --quiet"
run="train lenet5 $data --timeout 2 --checkpoint-every 5 --no-metrics-rates"

patient="--timeout 60" # where nobody is to be late, however slow the disk is

# rank_pid RANK: the process of a rank that runs in this folder; nothing where there is none
rank_pid() {
    for pid in $(pgrep -x convoy); do
        if [ "/proc/$pid/cwd" -ef . ] && grep -qzE "^(OMPI_COMM_WORLD|PMI)_RANK=$1\$" "/proc/$pid/environ"; then
            echo "$pid"
        fi
    done 2>/dev/null
}

# signal RANK NAME
signal() {
    kill "-$2" "$(rank_pid "$1")" 2>/dev/null || fail "rank $1 was not there to be sent SIG$2: $(cat err)"
}

# begin RANKS OPTIONS...: start it anew in the folder `run`, and wait until it has saved there
begin() {
    local ranks=$1
    shift
    rm -rf run
    timeout -k 1 40 "$launch" -n "$ranks" "$convoy" $run --out run "$@" >out 2>err </dev/null &
    guard=$!
    for _ in $(seq 600); do
        { [ -n "$(ls -d run/checkpoints/step-???????? 2>/dev/null)" ] || ! kill -0 $guard 2>/dev/null; } && break
        sleep 0.05
    done
    launcher=$(pgrep -P $guard)
}

# says_once WORDS: one line says what happened, and it matches
says_once() {
    [ "$(grep -c '^error: ' err)" -eq 1 ] || fail "expected one line: $(cat err)"
    grep '^error: ' err | grep -qE -- "$1" || fail "no '$1' in: $(cat err)"
}

# ends CODES: what was begun ends, with one of the codes
ends() {
    wait $guard
    local code=$?
    case " $1 " in
    *" $code "*) ;;
    *) fail "ended with $code, expected $1: $(cat err)" ;;
    esac
}

# loses CODES WORDS: as ends, and says so
loses() {
    ends "$1"
    says_once "$2"
}

# whole RANKS STEPS: the run that is left alone, in the folder `whole`
whole() {
    rm -rf whole
    expect 0 timeout 100 "$launch" -n "$1" "$convoy" $run $patient --steps "$2" --out whole
    last=checkpoints/$(ls whole/checkpoints | tail -n 1)
}

# equals AFTER [EVENTS]: `run` has ended as `whole` did, bit by bit, but for these events of its metrics
equals() {
    local apart="\"event\":\"(${2:-start|end})\""
    for file in model optimizer; do
        cmp "whole/$last/$file.safetensors" "run/$last/$file.safetensors" || fail "$1: $file differs after the resume"
    done
    diff <(grep -vE "$apart" whole/metrics.jsonl) <(grep -vE "$apart" run/metrics.jsonl) >diff ||
        fail "$1: metrics: $(head diff)"
}

# goes_on AFTER RANKS [EVENTS]: resumed, `run` ends as `whole` did
goes_on() {
    expect 0 timeout 100 "$launch" -n "$2" "$convoy" train --resume run --quiet $patient
    equals "$1" "${@:3}"
}
