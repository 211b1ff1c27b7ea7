#!/bin/bash
# Every test that docs/promises.md names is there.
root=$(realpath "$(dirname "$0")/../..")
failures=0
named=0
while read -r name; do
    named=$((named + 1))
    if [[ $name == *.* ]]; then
        find "$root/tests" -name "$name" | grep -q .
    else
        grep -rqF --include='*.c' "static void $name(" "$root/tests"
    fi || { echo "FAILED: docs/promises.md names $name, which is no test" && failures=$((failures + 1)); }
done < <(grep '^| ' "$root/docs/promises.md" | grep -oE '`[a-z_0-9.]+`' | tr -d '`')
[ "$named" -ge 40 ] || { echo "FAILED: found $named names" && failures=$((failures + 1)); }
exit $((failures > 0))
