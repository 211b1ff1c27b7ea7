#!/bin/bash
# What no compiler checks: sizes, blanks, leftovers, and that the library never exits, aborts or prints.
# Usage: check_style.sh [ROOT]. One line for each breach; exit code 1 where there is one.
set -eu
export LC_ALL=C # awk then counts bytes, in every awk alike; below, characters are made of them
cd "${1:-$(dirname "$0")/..}"

find src include tests examples bench tools cmake docs CMakeLists.txt Makefile README.md CONTRIBUTING.md \
    -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.txt' -o -name '*.cmake' -o -name '*.md' -o -name '*.scd' \
    -o -name '*.py' -o -name Makefile \) -not -path 'tests/data/*' 2>/dev/null | sort | xargs awk '
function report(words) {
    printf "%s:%d: %s\n", FILENAME, FNR, words
    breaches++
}

function finish_file() {
    if (code && lines > 600) {
        printf "%s: %d lines, at most 600 (150 to 350 read best)\n", name, lines
        breaches++
    }
}

FNR == 1 {
    finish_file()
    files++
    name = FILENAME
    code = FILENAME ~ /\.[ch]$/
    library = code && FILENAME ~ /^src\// && FILENAME !~ /^src\/cli\//
    body = 0
}
{
    lines = FNR
    characters = $0
    gsub(/[\200-\277]/, "", characters) # all but the first byte of a character in UTF-8
}
FILENAME !~ /\.(md|scd)$/ && length(characters) > 120 { report(length(characters) " columns, at most 120") }
FILENAME !~ /(Makefile|\.scd)$/ && /\t/ { report("a tab") }
/[ \t]$/ { report("blanks at the end") }
/(TO)DO|(FIX)ME|(^|[^A-Z])(X)XX([^A-Z]|$)|#[ \t]*if (0)$/ { report("unfinished work: do it or file it") }
/\/(work|home|root|Users)\// { report("a path of one machine") }

# Functions: from a brace in the first column to the next.
code && /^\{/ { body = FNR }
code && /^\}/ && body {
    if (FNR - body - 1 > 60) {
        report("a function of " FNR - body - 1 " lines, at most 60 (under 50, best about 17)")
    }
    body = 0
}

library && /(^|[^a-zA-Z0-9_])(exit|_exit|_Exit|abort|assert|printf|vprintf|puts|putchar|perror)\(/ {
    report("the library never exits, aborts or prints")
}
library && /fprintf\((stdout|stderr)/ { report("the library never prints") }
library && /(^|[^a-zA-Z0-9_])(malloc|calloc|realloc|strdup)\(/ && FILENAME != "src/base/memory.c" {
    report("memory comes from cvy_calloc(), cvy_recalloc(), cvy_strdup()")
}
END {
    finish_file()
    if (breaches || !files) {
        exit 1
    }
    printf "style: %d files\n", files
}
'
