#!/bin/bash
# convoy report: pages that hold all that they show, whole and without markup of others. Argument 1 is the program.
source=$(realpath "$(dirname "$0")/../..")
. "$(dirname "$0")/setup.sh"
# shellcheck source=tests/cli/browser.sh
. "$source/tests/cli/browser.sh"

# well_formed PAGE: elements are closed as they were opened, ids are there once, links lead to one of them, and nothing
# comes from elsewhere
well_formed() {
    command -v python3 >/dev/null && python3 -c '' 2>/dev/null || return 0
    python3 - "$1" <<'END' || fail "$1 is not whole"
import html.parser, re, sys
VOID = {"meta", "link", "br"}
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []
    def note(self, tag, attributes):
        assert tag not in ("script", "iframe", "object", "embed", "img"), tag
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#") or value == "data:,", (tag, value)
                self.links.append(value)
            self.links += ["#" + found for found in re.findall(r"url\(#([^)]*)\)", value or "")]
    def handle_starttag(self, tag, attributes):
        self.note(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.note(tag, attributes)
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.getpos(), tag, self.open[-3:])
        self.open.pop()
text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
assert not page.open, page.open
twice = {name for name in page.ids if page.ids.count(name) > 1}
assert not twice, twice
missing = [link for link in page.links if link.startswith("#") and link[1:] not in page.ids]
assert not missing, missing
assert "http://" not in text.replace("http://www.w3.org/", ""), "something from elsewhere"
assert "https://" not in text and "@import" not in text
END
}

# sections PAGE NAME...: the page has them, in this order, and no others
sections() {
    local page=$1 found
    shift
    found=$(sed -n 's/^<section aria-labelledby="\([a-z-]*\)">$/\1/p' "$page" | tr '\n' ' ')
    [ "$found" = "$* " ] || fail "$page has the sections $found, expected $*"
}

# ---- plans ----

expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 4 --batch 4/rank -o plan.html
has out "plan.html"
sections plan.html summary plans memory limits timeline layers traffic scaling configuration
well_formed plan.html
expect 0 "$convoy" plan vgg11 --machine ethernet-cpu --ranks 4 --batch 4/rank --save plan.yaml
pick=$(sed -n 's/^\* *\([^ ]*\) .*/\1/p' out)
has plan.html "The pick: $pick"

# A plan file gives the page of that plan.
expect 0 "$convoy" report plan.yaml -o saved.html
has saved.html "The strategy: $pick"
well_formed saved.html

# Stages are drawn from the simulation of all of them.
expect 0 "$convoy" report lenet5 --machine ethernet-cpu --strategy stage=2,micro-batches=4 --batch 8 -o stages.html
has stages.html "Seconds of the stages"
well_formed stages.html

# One device has nobody to send to, and nothing to scale over where the machine has no more.
expect 0 "$convoy" report lenet5 --machine laptop --ranks 1 -o one.html
sections one.html summary plans memory limits timeline layers configuration
well_formed one.html

# Nothing fits: the page has the reasons, and the code says so.
says 4 "fits" "$convoy" report resnet50 --machine abci --ranks 2 --max-memory 64MB -o tight.html
has tight.html "No plan fits"
well_formed tight.html

# Names of files are text, whatever they hold.
mkdir '<img src=x onerror=alert(1)>'
sed 's/^name: .*/name: "<script>alert(1)<\/script>"/' "$source/machines/ethernet-cpu.yaml" >"<b>'m'&.yaml"
cat >'<img src=x onerror=alert(1)>/"m".yaml' <<'END'
name: small
input: [1, 12, 12]
layers:
  - {name: conv1, kind: conv, filters: 8, kernel: 3}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: dense, outputs: 10}
  - {name: loss, kind: softmax-cross-entropy}
END
expect 0 "$convoy" report './<img src=x onerror=alert(1)>/"m".yaml' --machine "./<b>'m'&.yaml" --ranks 2 -o names.html
has names.html "&lt;img src=x onerror=alert(1)&gt;"
grep -qE '<(script|img|b)[ >]' names.html && fail "names.html holds markup of a name"
well_formed names.html

# Without gnuplot the tables stay, and one line says why.
expect 0 env PATH="$folder" "$convoy" report vgg11 --machine ethernet-cpu --ranks 4 -o tables.html
[ "$(grep -c "gnuplot is not installed" tables.html)" -eq 1 ] || fail "tables.html does not say why it has no charts"
grep -q "<svg" tables.html && fail "tables.html has charts"
sections tables.html summary plans memory limits timeline layers traffic scaling configuration
well_formed tables.html

# ---- studies ----

expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 1:8 --vary link-bandwidth=x1/4,x4 -o study.html
sections study.html summary ranks varied elasticity best scaling configuration
has study.html "cluster: on 8 ranks"
well_formed study.html
expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 1,2 --strategy data --vary batch=8 -o data.html
sections data.html summary ranks varied elasticity scaling configuration
well_formed data.html

# ---- what is wrong ----

says 2 "found 'many'" "$convoy" report lenet5 --machine abci --ranks many
says 2 "a plan is of its own ranks" "$convoy" report plan.yaml --ranks 1:4

says 2 "convoy report needs a run, a plan file" "$convoy" report
says 2 "convoy report needs a machine" "$convoy" report lenet5
says 1 "nowhere/page.html" "$convoy" report lenet5 --machine abci --ranks 2 -o nowhere/page.html
finish
