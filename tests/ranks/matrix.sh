#!/bin/bash
# Every strategy against the serial run: convoy verify for each case of a file, as a table. Usage: matrix.sh CONVOY
# MPIEXEC CASES [REPORT]. Exit code 1 where a case differs, fails or does not end.
#
# A line of CASES is: MODEL | options of verify | RANKS:STRATEGY ...; # begins a comment, and a line that
# ends in a backslash goes on in the next.
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
failures=0

# value KEY: of the answer; layers come last, so the first of a name is the model's
value() {
    grep -o "\"$1\": *[^,}]*" "$scratch/out" | head -1 | sed 's/.*: *//'
}

# run_case MODEL RANKS STRATEGY OPTIONS...
run_case() {
    local model=$1 ranks=$2 strategy=$3 verdict
    shift 3
    timeout -k 10 "$limit_s" "$launcher" -n "$ranks" "$convoy" verify "$model" --strategy "$strategy" --threads 1 \
        --layout rule --json "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    local code=$?
    case $code in
    0) verdict=passes ;;
    124 | 137) verdict="no end" ;;
    *) verdict=FAILS ;;
    esac
    printf '%-34s %5s  %-42s %-7s %9.2g %9.2g %9.2g  %s\n' "$model" "$ranks" "$strategy" "$verdict" \
        "$(value loss_relative)" "$(value gradient_relative)" "$(value weight_relative)" "$*"
    if [ "$code" -ne 0 ]; then
        failures=$((failures + 1))
        grep -m 1 '^error' "$scratch/err"
    fi
}

run_all() {
    printf '%-34s %5s  %-42s %-7s %9s %9s %9s  %s\n' model ranks strategy verdict loss gradients weights options
    while IFS='|' read -r model options strategies; do
        for case in $strategies; do
            # shellcheck disable=SC2086  # options are words
            run_case "${model%% *}" "${case%%:*}" "${case#*:}" $options
        done
    done < <(sed ':more; /\\$/ { N; s/ *\\\n */ /; b more }; s/#.*//; /^ *$/d' "$cases")
    echo "$failures cases differ"
}

run_all >"$report"
exit $((failures > 0))
