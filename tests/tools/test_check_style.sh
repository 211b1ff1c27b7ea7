#!/bin/bash
# The style checker sees each kind of breach, and lets what only looks like one pass.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check_style.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/src/cli" "$tree/docs"

# refuse WORDS FILE LINE…: with this file the checker must fail and say WORDS; the file is taken away again
refuse() {
    local words=$1 file=$tree/$2
    shift 2
    printf '%s\n' "$@" >"$file"
    if bash "$check" "$tree" >"$tree/said"; then
        echo "passed: $*" >&2
        exit 1
    fi
    if ! grep -qF "$words" "$tree/said"; then
        echo "expected '$words', got:" >&2
        cat "$tree/said" >&2
        exit 1
    fi
    rm "$file"
}

# repeat COUNT LINE: the line so many times
repeat() {
    awk -v count="$1" -v line="$2" 'BEGIN { while (count-- > 0) { print line } }'
}

wide=$(repeat 120 … | tr -d '\n') # 120 characters in 360 bytes
printf '%s\n' "/* $(repeat 7 x | tr -d '\n') XXXL, snprintf(a), a->exit_code */" "${wide}" >"$tree/src/base/fine.c"
repeat 600 'int x;' >"$tree/src/base/long.h"
printf 'int main(void)\n{\n    printf("done");\n    exit(0);\n}\n' >"$tree/src/cli/main.c"
bash "$check" "$tree"

refuse 'src/base/a.c:2: 121 columns, at most 120' src/base/a.c '' "${wide}x"
refuse 'a tab' src/base/a.c "$(printf '\tint x;')"
refuse 'blanks at the end' docs/a.md 'words '
refuse 'unfinished work' src/base/a.c "/* TO""DO: more */"
refuse 'unfinished work' src/base/a.c "#if ""0"
refuse 'a path of one machine' docs/a.md "see /ho""me/me/convoy"
refuse 'src/base/a.c: 601 lines, at most 600' src/base/a.c "$(repeat 601 'int x;')"
refuse 'a function of 61 lines' src/base/a.c 'void f(void)' '{' "$(repeat 61 '    g();')" '}'
refuse 'never exits, aborts or prints' src/base/a.c '    exit(1);'
refuse 'never exits, aborts or prints' src/base/a.c '    (void)printf("x");'
refuse 'the library never prints' src/base/a.c '    fprintf(stderr, "x");'
refuse 'memory comes from cvy_calloc()' src/base/a.c '    x = malloc(4);'
bash "$check" "$tree"
