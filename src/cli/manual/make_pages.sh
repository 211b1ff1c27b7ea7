#!/bin/bash
# Make the manual pages and the completion for bash. Usage: make_pages.sh CONVOY-MANUAL PROSE OUT [SCDOC].
# Pages go to OUT/man/manN, the completion to OUT/completions/convoy; the list of pages, OUT/pages, comes last.
# Without scdoc there are no pages, but prose that is missing is found all the same.
set -eu
manual=$1 prose=$2 out=$3 scdoc=${4:-}
here=$(dirname "$0")

rm -rf "$out/man" "$out/completions" "$out/pages"
mkdir -p "$out/man" "$out/completions"
for page in $("$manual" list); do
    "$manual" page "$page" "$prose" >"$out/page.scd"
    if [ -n "$scdoc" ]; then
        volume=$out/man/man${page##*.}
        mkdir -p "$volume"
        "$scdoc" <"$out/page.scd" >"$out/page.roff"
        # What is copied to a command line or searched for is neither broken at a line's end nor has another hyphen;
        # requests and motions keep theirs.
        sed -e 's/^\.TH .*/&\n.nh/' -e '/^\./b' -e '/^\\h/b' -e 's/-/\\-/g' "$out/page.roff" >"$volume/$page"
    fi
done
{
    "$manual" completion
    cat "$here/completion.sh"
} >"$out/completions/convoy"
rm -f "$out/page.scd" "$out/page.roff"
"$manual" list >"$out/pages"
