# What the tests of the program begin with; sourced. Argument 1 of the test is the program: it is called by its whole
# path in $convoy, from an empty folder, in an environment that says nothing to it. A test ends with finish.
set -u
convoy=$(realpath "$1")
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset "${!CONVOY_@}"
export XDG_CACHE_HOME=$folder/cache

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE COMMAND...: run it; standard output in out, standard error in err
expect() {
    local code=$1 found
    shift
    "$@" >out 2>err </dev/null
    found=$?
    [ "$found" -eq "$code" ] || fail "$* ended with $found, expected $code: $(cat err)"
}

# has FILE WORDS: the file holds the words
has() {
    grep -qF -- "$2" "$1" || fail "$1 lacks '$2': $(head -c 400 "$1")"
}

# says CODE WORDS COMMAND...: the exit code, and one line on standard error that holds the words
says() {
    local code=$1 words=$2
    shift 2
    expect "$code" "$@"
    [ "$(wc -l <err)" -eq 1 ] || fail "$*: expected one line: $(cat err)"
    has err "$words"
}

finish() {
    exit $((failures > 0))
}
