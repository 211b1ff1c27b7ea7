#!/bin/bash
# Run the unit tests that need no generated code under valgrind: reads of what was never written, and leaks, which the
# sanitizers' build finds in part only. Usage: check_valgrind.sh FOLDER_OF_TESTS
set -eu
log=$(mktemp)
export TEST_UNDER_VALGRIND=1
trap 'rm -f "$log"' EXIT
count=0
for test in "$1"/base_test_* "$1"/tensor_test_* "$1"/op_test_* "$1"/model_test_*; do
    [ -x "$test" ] || continue
    if ! valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        "$test" >"$log" 2>&1; then
        cat "$log"
        echo "valgrind: $test failed" >&2
        exit 1
    fi
    count=$((count + 1))
done
[ "$count" -gt 0 ]
echo "valgrind: $count test programs without an error"
