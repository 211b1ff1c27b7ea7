#!/bin/bash
# What `make install` lays down is enough to build against: by pkg-config, by CMake, and after the tree was moved.
set -eu
program=$1
build=$(dirname "$program")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

DESTDIR=$work/stage cmake --install "$build" --prefix /opt/convoy >"$work/log" || fail "$(cat "$work/log")"
mv "$work/stage/opt/convoy" "$work/moved"
prefix=$work/moved
"$prefix/bin/convoy" --version | grep -q '^convoy [0-9]' || fail "the installed program does not run"
version=$("$prefix/bin/convoy" --version | cut -d ' ' -f 2)

# Machines lie where a program in bin looks for them by name.
for machine in "$(dirname "$0")"/../../machines/*.yaml; do
    [ -s "$prefix/share/convoy/machines/${machine##*/}" ] || fail "$machine is not installed"
done

# Each page that was made lies where man looks, the completion where bash-completion does.
[ -s "$build/manual/pages" ] || fail "the build made no list of manual pages"
while read -r page; do
    installed=$(cd "$prefix" && find . -name "$page")
    if [ -d "$build/manual/man/man1" ]; then # else there was no scdoc
        [ "$installed" = "./share/man/man${page##*.}/$page" ] || fail "page $page is installed as '$installed'"
    fi
done <"$build/manual/pages"
[ -z "$(find "$prefix" -name 'convoy-manual*')" ] || fail "a tool of the build is installed"
bash -c '. "$1" && complete -p convoy' - "$prefix/share/bash-completion/completions/convoy" >"$work/log" 2>&1 ||
    fail "completion: $(cat "$work/log")"

cat >"$work/count.c" <<'END'
#include <convoy/convoy.h>
#include <stdio.h>

int main(void)
{
    cvy_model *model;
    if (cvy_model_open("lenet5", &model) != CVY_OK) {
        fprintf(stderr, "%s\n", cvy_error_message());
        return 1;
    }
    printf("%lld\n", (long long)cvy_model_parameters(model));
    cvy_model_destroy(&model);
    return 0;
}
END

# a build under the sanitizers needs their flags from whoever links against it
flags=
grep -q '^CONVOY_SANITIZE:BOOL=ON' "$build/CMakeCache.txt" && flags=-fsanitize=address,undefined

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name convoy.pc)")
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion convoy)" = "$version" ] || fail "convoy.pc and the program differ in version"
cc -Wall -Werror $flags $(pkg-config --cflags convoy) "$work/count.c" -o "$work/count" \
    $(pkg-config --static --libs convoy)
by_pkg_config=$("$work/count")

mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(convoy $version REQUIRED)
add_executable(count ../count.c)
target_link_libraries(count convoy::convoy)
END
cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" >"$work/log" 2>&1 &&
    cmake --build "$work/user/build" >>"$work/log" 2>&1 || fail "$(cat "$work/log")"
by_cmake=$("$work/user/build/count")

[ "$by_pkg_config" -gt 10000 ] || fail "lenet5 has $by_pkg_config parameters?"
[ "$by_pkg_config" = "$by_cmake" ] || fail "$by_pkg_config parameters by pkg-config, $by_cmake by CMake"
