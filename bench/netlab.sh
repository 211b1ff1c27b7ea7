#!/bin/bash
# Predicted against measured over networks of several bandwidths, on one machine: hosts are network namespaces.
#
#   bench/netlab.sh NETLAB [CONVOY]     NETLAB is a script that knows `up N RATE`, `run N CMD ...` and `down`, and
#                                       runs CMD over N hosts under MPI, one rank a host; CONVOY: build/convoy
#
# Kernels are measured once, on as many hosts as there are cores; then for each number of hosts and each rate the
# network between them, and each case: planned with that file, then run RUNS times. Accuracy is
# 1 - |predicted - measured| / measured of the median. HOSTS, RATES, CASES (MODEL=BATCH of a rank), STRATEGIES, RUNS,
# WARMUP, ITERATIONS, SECONDS_OF (of measuring kernels) choose; KEEP names a folder that stays, where kernels, networks
# and rows of former calls are used again.
#
# Hosts beyond the cores share them: a rank a host has one thread, and hosts that have a core each are kept on it.
set -eu
netlab=$(readlink -f "${1:?the path of a netlab script}")
convoy=$(readlink -f "${2:-$(dirname "$0")/../build/convoy}")
hosts=${HOSTS:-2 3} rates=${RATES:-1gbit 100mbit} runs=${RUNS:-3} cores=$(nproc)
cases=${CASES:-cifar10-quick=32 resnet18=8 alexnet=8}
# %d is the number of hosts
strategies=${STRATEGIES:-data height=%d pipeline,micro-batches=4}
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work"
export OMP_WAIT_POLICY=passive OMPI_MCA_hwloc_base_binding_policy=none
finish() {
    "$netlab" down
    [ -n "${KEEP-}" ] || rm -r "$work"
}
trap finish EXIT

# over N CMD...: one rank on each of N hosts
over() {
    local n=$1
    shift
    "$netlab" run "$n" sh -c 'n=$0 cores=$1; shift; i=$(hostname); i=${i#h}
        if [ "$n" -le "$cores" ]; then exec taskset -c $((i - 1)) "$@"; else exec "$@"; fi' "$n" "$cores" "$@"
}

# strategies_of N: names for N hosts, joined by ';'
strategies_of() {
    local s all=
    for s in $strategies; do
        all="$all;${s//%d/$1}"
    done
    echo "${all#;}"
}

# field NAME: the number of a field in JSON on one line
field() {
    grep -o "\"$1\": *[0-9.eE+-]*" | head -1 | sed 's/.*: *//'
}

# ---- kernels ----

n=$((cores < 2 ? 1 : 2))
for case in $cases; do
    file=$work/device-${case%=*}.yaml
    if [ ! -e "$file" ]; then
        "$netlab" down
        "$netlab" up $n 10gbit
        over $n "$convoy" calibrate --quiet --threads 1 --budget quick --seconds "${SECONDS_OF:-20}" \
            --model "${case%=*}" --batch $((n * ${case#*=})) --strategy "$(strategies_of $n)" --out "$file" >/dev/null
    fi
done
# The first file, with the tables of all.
tables=$(cd "$work" && printf '"%s", ' device-*.kernels/kernels.csv)
sed "s|kernel-tables: .*|kernel-tables: [${tables%, }]|" "$work/device-${cases%%=*}.yaml" >"$work/device.yaml"

# ---- rows ----

touch "$work/rows"
for n in ${hosts#-}; do
    for rate in $rates; do
        "$netlab" down
        "$netlab" up "$n" "$rate"
        machine=$work/$n-$rate.yaml
        [ -e "$machine" ] || over "$n" "$convoy" calibrate --quiet --threads 1 --budget quick \
            --machine "$work/device.yaml" --out "$machine" --json >"$work/$n-$rate.json"
        for case in $cases; do
            for strategy in $strategies; do
                strategy=${strategy//%d/$n}
                name="$n $rate ${case%=*} $strategy"
                plan=$work/plan.yaml
                rm -f "$plan"
                grep -q "^$name " "$work/rows" && continue
                answer=$("$convoy" plan "${case%=*}" --batch $((n * ${case#*=})) --ranks "$n" --machine "$machine" \
                    --strategy "$strategy" --save "$plan" --json) || { echo "$name -" >>"$work/rows"; continue; }
                line="$name $(echo "$answer" | field iteration_s) $(echo "$answer" | field error_relative)"
                # stages are those of the plan; all else is cut alike with and without it, in the fastest formats
                how=(--plan "$plan")
                case $strategy in
                pipeline*) ;;
                *) how=("${case%=*}" --batch $((n * ${case#*=})) --strategy "$strategy" --machine "$machine") ;;
                esac
                for run in $(seq "$runs"); do
                    result=$(over "$n" "$convoy" bench "${how[@]}" --threads 1 --warmup "${WARMUP:-2}" \
                        --iterations "${ITERATIONS:-8}" --json)
                    line="$line $(echo "$result" | field iteration_s)"
                done
                echo "$line" >>"$work/rows"
            done
        done
    done
done

# ---- the table ----

awk '
function abs(x) { return x < 0 ? -x : x }
BEGIN { printf "%-5s %-8s %-14s %-26s %12s %7s %12s %8s %9s\n", "hosts", "rate", "model", "strategy", "predicted ms",
        "+- %", "measured ms", "spread %", "accuracy" }
NF < 7 { printf "%-5s %-8s %-14s %-26s %12s\n", $1, $2, $3, $4, "no plan"; next }
{
    runs = NF - 6
    for (i = 1; i <= runs; i++) t[i] = $(i + 6)
    for (i = 2; i <= runs; i++) for (k = i; k > 1 && t[k - 1] > t[k]; k--) { x = t[k]; t[k] = t[k - 1]; t[k - 1] = x }
    middle = t[int((runs + 1) / 2)]
    accuracy = 1 - abs($5 - middle) / middle
    printf "%-5s %-8s %-14s %-26s %12.1f %7.0f %12.1f %8.0f %8.1f%%\n", $1, $2, $3, $4, 1e3 * $5, 100 * $6,
           1e3 * middle, 100 * (t[runs] - t[1]) / middle, 100 * accuracy
    family = $4 ~ /^data/ ? "data" : $4 ~ /^pipeline/ ? "pipeline" : "spatial"
    sum[family] += accuracy; count[family]++
    key = $1 " " $2 " " $3
    group[key]; predicted[key, family] = $5; error[key, family] = $6; measured[key, family] = middle
}
END {
    split("data spatial pipeline", name, " ")
    print ""
    for (f = 1; f <= 3; f++) if (count[name[f]]) printf "%-9s mean accuracy %.1f %% over %d\n", name[f],
        100 * sum[name[f]] / count[name[f]], count[name[f]]
    for (key in group) for (a = 1; a <= 3; a++) for (b = a + 1; b <= 3; b++) {
        if (!((key, name[a]) in measured) || !((key, name[b]) in measured)) continue
        p = predicted[key, name[a]]; q = predicted[key, name[b]]
        m = measured[key, name[a]]; n = measured[key, name[b]]
        pairs++
        if ((p - q) * (m - n) > 0) right++
        else if (abs(p - q) > error[key, name[a]] * p + error[key, name[b]] * q)
            printf "%s: %s and %s are the other way round, beyond the error bars\n", key, name[a], name[b]
    }
    if (pairs) printf "order of two strategies: %d of %d right\n", right, pairs
}' "$work/rows"
