#!/bin/bash
# `make` says what it builds, not which folders the make that CMake starts goes into, nor that it has jobs of its own.
set -eu
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that runs the tests
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/build"
printf 'all:\n\t@echo built\n' >"$folder/build/Makefile"
printf '#!/bin/sh\n[ "$1" != --build ] || exec make -j2 -C "%s"\n' "$folder/build" >"$folder/bin/cmake"
chmod +x "$folder/bin/cmake"
PATH=$folder/bin:$PATH make -j2 >"$folder/said" 2>&1
if [ "$(cat "$folder/said")" != built ]; then
    echo "expected 'built', found: $(cat "$folder/said")" >&2
    exit 1
fi
