#!/bin/bash
# Run the harnesses of tests/fuzz one after the other under libFuzzer, each for so long or until it finds something.
# What it learns stays in BUILD/fuzz/NAME for the next time. An input that breaks something is written to BUILD/fuzz, as
# NAME-crash-… or the like, and belongs into tests/fuzz/corpus/NAME with the fix. Usage: fuzz.sh BUILD SECONDS [NAME...]
set -eu
build=$1 seconds=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- $(cd "$root/tests/fuzz" && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')

failures=0
for name in "$@"; do
    learnt=$build/fuzz/$name log=$build/fuzz/$name.log words=$root/tests/fuzz/$name.dict
    mkdir -p "$learnt"
    echo "fuzz: $name for $seconds s"
    # a header must not make a reader take much more memory than its file has bytes
    OMP_NUM_THREADS=1 "$build/tests/fuzz_$name" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
        -rss_limit_mb=512 -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$build/fuzz/$name-" \
        $([ ! -f "$words" ] || echo "-dict=$words") "$learnt" "$root/tests/fuzz/corpus/$name" >"$log" 2>&1 || {
        failures=$((failures + 1))
        grep -aE 'broken|ERROR|SUMMARY|Test unit' "$log" || tail -5 "$log"
    }
    grep -aE '^stat::(number_of_executed_units|peak_rss_mb)' "$log" || true
    grep -a ' cov: ' "$log" | tail -1
done
exit $((failures > 0))
