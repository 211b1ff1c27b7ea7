#!/bin/bash
# Hold every #include of src, include and examples against the table in layers.txt, and every #if CVY_HAVE_… too.
# Usage: check_layers.sh [ROOT]. One line for each breach; exit code 1 where there is one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}"

find src include examples -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs awk '
function report(words) {
    printf "%s:%d: %s\n", FILENAME, FNR, words
    breaches++
}

# Whether a path starts with one of the prefixes in a list.
function lies_in(path, prefixes,    n, i, prefix) {
    n = split(prefixes, prefix, " ")
    for (i = 1; i <= n; i++) {
        if (index(path, prefix[i]) == 1) {
            return 1
        }
    }
    return 0
}

# Everything between src/ and the last slash: "backend/onednn".
function folder_of(path) {
    sub(/^src\//, "", path)
    sub(/\/[^\/]*$/, "", path)
    return path
}

function room_of(folder) {
    sub(/\/.*/, "", folder)
    return folder
}

function check_library_header(header,    i) {
    for (i = 1; i <= headers; i++) {
        if (header ~ pattern[i]) {
            if (!lies_in(FILENAME, places[i])) {
                report("<" header "> belongs to " places[i])
            }
            return
        }
    }
    report("<" header "> is in no row of tools/layers.txt")
}

function check_own_header(header,    from, to) {
    if (header ~ /^convoy\/[a-z_0-9]+\.h$/) {
        return
    }
    if (FILENAME !~ /^src\//) {
        report("\"" header "\" is not public: include convoy/… alone")
        return
    }
    from = folder_of(FILENAME)
    to = folder_of(header)
    if (header !~ /\// || !(room_of(to) in level)) {
        report("\"" header "\" is in no folder of tools/layers.txt; write folder/file.h")
    } else if (to != from && to ~ /\//) {
        report("\"" header "\" is private to " to)
    } else if (room_of(to) != room_of(from) && level[room_of(to)] >= level[room_of(from)]) {
        report("\"" header "\": " room_of(from) " (level " level[room_of(from)] ") must not include " room_of(to) \
            " (level " level[room_of(to)] ")")
    }
}

FILENAME == table && $1 == "level" {
    for (i = 3; i <= NF; i++) {
        level[$i] = $2
    }
}
FILENAME == table && $1 == "header" {
    pattern[++headers] = $2
    for (i = 3; i <= NF; i++) {
        places[headers] = places[headers] (i > 3 ? " " : "") $i
    }
}
FILENAME == table && $1 == "have" {
    $1 = ""
    registries = $0
}
FILENAME == table { next }

FNR == 1 {
    files++
    if (FILENAME ~ /^src\// && !(room_of(folder_of(FILENAME)) in level)) {
        report("the folder is in no row of tools/layers.txt")
    }
}
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    header = $0
    sub(/^[^<"]*[<"]/, "", header)
    sub(/[>"].*/, "", header)
    if ($0 ~ /include[ \t]*</) {
        check_library_header(header)
    } else {
        check_own_header(header)
    }
}
/^[ \t]*#[ \t]*(if|elif|ifdef|ifndef).*CVY_HAVE_/ {
    if (!lies_in(FILENAME, registries)) {
        report("CVY_HAVE_… is asked for outside the registries:" registries)
    }
}
END {
    if (breaches) {
        exit 1
    }
    if (!files) {
        print "no source files found" > "/dev/stderr"
        exit 1
    }
    printf "layers: %d files keep to tools/layers.txt\n", files
}
' table="$here/layers.txt" "$here/layers.txt"
