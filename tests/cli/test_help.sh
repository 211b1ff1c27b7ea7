#!/bin/bash
# Help, version, unknown commands: what a person meets first. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

# one_error WORDS: standard error is one line, "error: …WORDS…", and nothing is on standard output
one_error() {
    [ ! -s out ] || fail "standard output is not empty: $(head -1 out)"
    [ "$(wc -l <err)" -eq 1 ] || fail "expected one line, found: $(cat err)"
    grep -q "^error: " err || fail "expected 'error: …', found: $(cat err)"
    grep -qF -- "$1" err || fail "expected '$1', found: $(cat err)"
}

expect 0 "$convoy" --version
grep -Eqx 'convoy [0-9]+\.[0-9]+\.[0-9]+' out || fail "version: $(cat out)"

for word in help --help -h; do
    expect 0 "$convoy" $word
    [ ! -s err ] || fail "convoy $word writes to standard error: $(cat err)"
    for command in train eval bench model doctor data plan sweep why fits ranks-for compare; do
        grep -q "^  $command " out || fail "convoy $word does not list $command"
    done
done

# narrow WHAT: the help in out keeps within 79 columns
narrow() {
    awk -v what="$1" '
        length > 79 { print "FAILED: " what ", line " NR ": " length " columns"; bad = 1 }
        / $/ { print "FAILED: " what ", line " NR ": a blank at the end"; bad = 1 } END { exit bad }' out ||
        failures=$((failures + 1))
}

narrow "convoy help"

# Every command that this build has explains itself, however it is asked.
commands="model doctor plan sweep why fits ranks-for compare"
"$convoy" train --help >/dev/null 2>&1 && commands="$commands train eval bench data"
for command in $commands; do
    expect 0 "$convoy" help "$command"
    cp out first
    expect 0 "$convoy" "$command" --help
    cmp -s first out || fail "convoy help $command and convoy $command --help differ"
    head -1 out | grep -q "^usage: convoy $command" || fail "convoy $command --help begins with: $(head -1 out)"
    grep -q -- "--config FILE" out || fail "convoy $command --help does not tell of --config"
    narrow "$command --help"
done

expect 2 "$convoy"
one_error "convoy help"
expect 2 "$convoy" modle
one_error "no command 'modle'; did you mean 'model'?"
expect 2 "$convoy" help dcotor
one_error "did you mean 'doctor'?"
expect 2 "$convoy" --threads 2 doctor
one_error "the command comes first"

# Colour never reaches a file.
grep -q "$(printf '\033')" err && fail "an escape sequence on standard error of a file"

# Output that cannot be written is a failure.
if [ -w /dev/full ]; then
    "$convoy" model lenet5 >/dev/full 2>err
    [ $? -eq 1 ] || fail "a full disk went unnoticed"
    one_error "standard output"
fi

finish
