#!/bin/bash
# Run the unit tests that need no generated code under valgrind: reads of what was never written, and leaks, which the
# sanitizers' build finds in part only. Usage: check_valgrind.sh FOLDER_OF_TESTS
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TEST_UNDER_VALGRIND=1 folder

# judge TEST: run it; what it printed is shown if it failed
judge() {
    local name=${1##*/}
    if valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite "$1" \
        >"$folder/$name" 2>&1; then
        return 0
    fi
    cat "$folder/$name"
    echo "valgrind: $1 failed" >&2
    return 1
}
export -f judge

# On all cores; models take longest, so they begin.
tests=()
for test in "$1"/model_test_* "$1"/base_test_* "$1"/tensor_test_* "$1"/op_test_*; do
    [ -x "$test" ] && tests+=("$test")
done
[ "${#tests[@]}" -gt 0 ]
printf '%s\0' "${tests[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'judge "$0"'
echo "valgrind: ${#tests[@]} test programs without an error"
