#!/bin/bash
# Manual pages say what the program says, name pages that exist, render without warnings. Argument 1 is the program.
build=$(realpath "$(dirname "$1")")
source=$(realpath "$(dirname "$0")/../..")
. "$(dirname "$0")/setup.sh"
pages=$build/manual/man
make_pages=$source/src/cli/manual/make_pages.sh
manual=$build/tools/convoy-manual

# plain PAGE: its words without marks
plain() {
    sed -e 's/\\f[BIR]//g' -e 's/\\&//g' -e 's/\\-/-/g' "$1"
}

# section NAME: of the plain page on standard input, without its heading
section() {
    awk -v name=".SH $1" '/^\.SH / { inside = $0 == name; next } inside'
}

# same WHAT: the lines of the files expected and found are the same
same() {
    diff expected found >difference || fail "$1: $(tr '\n' ' ' <difference)"
}

# Prose that is missing, or that lacks its section, fails the build, and is named.
cp -r "$source/docs/man" prose
expect 0 bash "$make_pages" "$manual" prose made
rm prose/convoy-model.scd
expect 2 bash "$make_pages" "$manual" prose made
has err "error: prose/convoy-model.scd: missing; it is the prose of the manual page convoy-model(1)"
[ ! -e made/pages ] || fail "pages that are not whole look finished"
printf '# DESCRIPTION\n\nWords.\n' >prose/convoy-model.scd
expect 2 bash "$make_pages" "$manual" prose made
has err "error: prose/convoy-model.scd: no line @options"
printf '# DESCRIPTION\n\n@optoins\n' >prose/convoy-model.scd
expect 2 bash "$make_pages" "$manual" prose made
has err "error: prose/convoy-model.scd:3: no section '@optoins'"

if [ ! -d "$pages/man1" ]; then # a machine without scdoc makes no pages
    grep -q '^SCDOC:.*NOTFOUND' "$build/CMakeCache.txt" || fail "$pages/man1 is missing"
    finish
fi

# Every command of this build has a page, with the options of its help, aliases too, and no others.
commands=$("$convoy" help | awk '/^  [a-z]/ && !/not in this build/ && $1 != "convoy" && $1 != "help" { print $1 }')
[ -n "$commands" ] || fail "convoy help lists nothing"
for command in $commands; do
    page=$pages/man1/convoy-$command.1
    [ -r "$page" ] || { fail "no page of convoy $command"; continue; }
    "$convoy" "$command" --help >help
    plain "$page" | section OPTIONS >options
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*.*\)/\1\2/p' help | sed -e 's/^ *//' -e 's/  .*//' >expected
    grep -E '^(-., )?--[a-z0-9-]+' options >found
    same "options of convoy $command"
    tr -s ' \n' ' ' <help | grep -o '(\(default [^ ()]*; \)\?also [^)]*)' | grep -o -- '--[a-z0-9-]*' | sort >expected
    grep -o 'Also --[^.]*' options | grep -o -- '--[a-z0-9-]*' | sort >found
    same "aliases of convoy $command"
    tr -s ' \n' ' ' <help | grep -o '(default [^;)]*' | sed 's/(default //' >expected
    grep -o 'Default: .*' options | sed -e 's/Default: //' -e 's/\. Also .*//' -e 's/\.$//' >found
    same "defaults of convoy $command"
    head -3 help | grep -o 'convoy .*' | tail -1 >expected
    plain "$page" | section SYNOPSIS | grep "^convoy" | head -3 >found
    grep -qxFf found expected || fail "synopsis of convoy $command: $(cat found)"
    grep -q "^convoy-$command(1)$" <(plain "$pages/man1/convoy.1" | section COMMANDS) ||
        fail "convoy(1) does not list convoy-$command(1)"
done
plain "$pages/man1/convoy-model.1" | grep -q 'Samples per iteration.*Default: 1\.' ||
    fail "convoy model has a batch of 1"

# What stands in the zoo and in docs/models.md, which is written by hand, stands in the pages, and no more.
"$convoy" model --list | awk '/^[a-z]/ { name = $1 } /^    / { print name, $1 }' >expected
plain "$pages/man7/convoy-models.7" | section MODELS | tr -d '"' >zoo
awk '$1 == ".SS" { name = $2 } /^[a-z][a-z-]*$/ { print name, $1 }' zoo >found
same "options of zoo models"
awk '/^## / { inside = $0 == "## Kinds of layers" } !inside { next }
    /^### / { print name = $2 } /^\| `/ { print name, substr($2, 2, length($2) - 2) }' "$source/docs/models.md" |
    sort >expected
plain "$pages/man5/convoy-layers.5" | section "KINDS OF LAYERS" | tr -d '"' |
    awk '$1 == ".SS" { print name = $2 } /^[a-z][a-z-]*$/ { print name, $1 }' | sort >found
same "layers and their options, docs/models.md and convoy-layers(5)"

# A page that is referred to exists; prose that no page takes up would never be read.
cat "$pages"/man*/* >all
plain all | grep -o 'convoy[a-z-]*([1-9])' | sort -u | tr '()' ' .' | while read -r name volume; do
    [ -r "$pages/man${volume%.}/$name.${volume%.}" ] || echo "$name(${volume%.})"
done >missing
[ ! -s missing ] || fail "pages refer to $(cat missing), which is missing"
for page in "$pages"/man*/*; do
    plain "$page" | section "SEE ALSO" | grep -q 'convoy' || fail "$page names no page to see"
done
(cd "$pages" && ls man* | grep '\.[1-9]$' | sort) >found
sort "$build/manual/pages" >expected
same "pages and their list"
if "$convoy" train --help >/dev/null 2>&1; then
    for prose in "$source"/docs/man/*.scd; do
        name=$(basename "$prose" .scd)
        ls "$pages"/man*/"$name".[1-9] >/dev/null 2>&1 || grep -qx "@include $name.scd" "$source"/docs/man/*.scd ||
            fail "$prose is in no page"
    done
fi

# Examples, of pages and of help, have options that exist.
{
    plain all | section EXAMPLES | sed -e 's/\\\\/\\/g' -e 's/^\$ //' -e 's/^  *//' |
        sed -e ':a' -e '/\\$/{N;s/\\\n//;ta' -e '}'
    for command in $commands; do
        "$convoy" "$command" --help | sed -n '/^Examples:/,$p' | sed 's/^  *//'
    done
} | grep -E "^convoy ($(echo $commands | tr ' ' '|'))( |\$)" | tr -d '"' | sort -u >examples
[ "$(wc -l <examples)" -ge 5 ] || fail "few examples: $(cat examples)"
while read -r _ command line; do
    expect 0 "$convoy" "$command" --help $line
done <examples

# Rendered as a reader sees it, where there is something to render with.
export LC_ALL=C.UTF-8
for page in "$pages"/man*/*; do
    if command -v groff >/dev/null; then
        groff -k -man -Tutf8 -ww "$page" >rendered 2>warnings || fail "groff refuses $page"
        [ ! -s warnings ] || fail "groff on $page: $(head -3 warnings)"
    fi
    if command -v man >/dev/null && man --version >/dev/null 2>&1; then
        MANWIDTH=80 man --warnings -l -Tutf8 "$page" >rendered 2>warnings || fail "man refuses $page"
        [ ! -s warnings ] || fail "man on $page: $(head -3 warnings)"
    fi
done

finish
