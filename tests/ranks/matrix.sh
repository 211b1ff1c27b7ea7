#!/bin/bash
# Every strategy against the serial run: convoy verify for each case of a file, as a table. Usage: matrix.sh CONVOY
# MPIEXEC CASES [REPORT]. Exit code 1 where a case differs, fails or does not end.
#
# A line of CASES is: MODEL | options of verify | RANKS:STRATEGY ...; # begins a comment, and a line that ends in a
# backslash goes on in the next. RANKS:plan=FILE runs a plan file. A line "set NAME | | RANKS:STRATEGY ..." names cases
# that later lines have as @NAME. A case "passes, weak" where the noise of single precision hides a hundredth.
set -u
convoy=$(realpath "$1")
launcher=$2
cases=$(realpath "$3")
report=${4:-/dev/stdout}
cd "$(dirname "$0")" || exit 1
unset "${!CONVOY_@}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache
limit_s=600
failures=0 count=0
declare -A sets
row='%-34s %5s  %-42s %-12s %9.2g %9.2g %9.2g %9.2g %4d  %s\n'

# value KEY: of the answer; layers come last, so the first of a name is the model's
value() {
    grep -o "\"$1\": *[^,}]*" "$scratch/out" | head -1 | sed 's/.*: *//'
}

# run_case MODEL RANKS STRATEGY OPTIONS...
run_case() {
    local model=$1 ranks=$2 way=(--strategy "$3") verdict start=$SECONDS
    case $3 in plan=*) way=(--plan "${3#plan=}") ;; esac
    shift 3
    timeout -k 10 "$limit_s" "$launcher" -n "$ranks" "$convoy" verify "$model" "${way[@]}" --threads 1 \
        --layout rule --json "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    local code=$?
    case $code in
    0) verdict=passes ;;
    124 | 137) verdict="no end" ;;
    *) verdict=FAILS ;;
    esac
    [ "$verdict,$(value weak)" = passes,true ] && verdict="passes, weak"
    # shellcheck disable=SC2059  # one form for all rows
    printf "$row" "$model" "$ranks" "${way[1]}" "$verdict" "$(value loss_relative)" "$(value gradient_relative)" \
        "$(value weight_relative)" "$(value noise)" $((SECONDS - start)) "$*"
    count=$((count + 1))
    if [ "$code" -eq 0 ]; then
        echo "$(value precision) $(value gradient_relative) $(value weight_relative)" >>"$scratch/figures"
    else
        failures=$((failures + 1))
        grep -m 1 '^error' "$scratch/err"
    fi
}

# Largest figures of double precision.
print_worst() {
    awk '$1 ~ /fp64/ { if ($2 > g) g = $2; if ($3 > w) w = $3; n++ }
        END { if (n) printf "%d in double: gradients off by %.2g at most, weights by %.2g\n", n, g, w }' \
        "$scratch/figures"
}

run_all() {
    printf '%-34s %5s  %-42s %-12s %9s %9s %9s %9s %4s  %s\n' model ranks strategy verdict loss gradients weights \
        noise s options
    while IFS='|' read -r model options strategies; do
        case $model in
        "set "*)
            read -r _ name <<<"$model"
            sets[$name]=$strategies
            continue
            ;;
        esac
        for word in $strategies; do
            case $word in @*) word=${sets[${word#@}]} ;; esac
            for case in $word; do
                # shellcheck disable=SC2086  # options are words
                run_case "${model%% *}" "${case%%:*}" "${case#*:}" $options
            done
        done
    done < <(sed ':more; /\\$/ { N; s/ *\\\n */ /; b more }; s/#.*//; /^ *$/d' "$cases")
    touch "$scratch/figures"
    print_worst
    echo "$failures of $count cases differ; $SECONDS s"
}

run_all >"$report"
exit $((failures > 0))
