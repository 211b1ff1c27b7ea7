#!/bin/bash
# convoy report: pages that hold all that they show, whole and without markup of others. Argument 1 is the program.
source=$(realpath "$(dirname "$0")/../..")
. "$(dirname "$0")/setup.sh"

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

# Two ranks of data parallelism: all gradients, 431,080 numbers of 4 bytes, go round a ring twice, half each time.
# On a GPU nothing is padded.
expect 0 "$convoy" report lenet5 --machine abci --ranks 2 --strategy data -o ring.html
for rank in 0 1; do
    bytes='<td class="number">1.72 MB</td>'
    has ring.html "<th scope=\"row\">$rank</th>$bytes$bytes<td class=\"words\">$((1 - rank)): 1.72 MB</td>"
done

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
sections study.html summary time scaling varied elasticity best configuration
has study.html "cluster: on 8 ranks"
well_formed study.html
expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 1,2 --strategy data --vary batch=8 -o data.html
sections data.html summary time scaling varied elasticity configuration
well_formed data.html

# Two parameters varied together: a chart of the best on the most ranks, and below it its figures, those of the table of
# all points.
expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 1,8 --vary link-bandwidth=x1/64,x1,x64 \
    --vary batch=x1/32,x1 --cross -o cross.html
sections cross.html summary time scaling varied elasticity best configuration
well_formed cross.html
if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    python3 - <<'END' || fail "the best of cross.html"
import html, re
page = open("cross.html", encoding="utf-8").read()
def table(words):
    text = page[page.index("<summary>" + words):]
    rows = re.findall("<tr>(.*?)</tr>", text[:text.index("</table>")], re.S)
    return [[html.unescape(cell) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows]
pair, all_points = table("The best by"), {row[0]: row[1:] for row in table("The best at all points")[1:]}
assert pair[0][1:] == ["x1/64", "x1", "x64"] and [row[0] for row in pair[1:]] == ["x1/32", "x1"], pair
cells = {}
for row in pair[1:]:
    for link, best in zip(pair[0][1:], row[1:]):
        assert all_points["batch %s, link-bandwidth %s" % (row[0], link)][-1] == best, (row, link)
        cells[best] = cells.get(best, 0) + 1
assert len(cells) > 1, cells
END
fi

# A count of ranks is that of the study, too.
expect 0 "$convoy" report lenet5 --machine ethernet-cpu --ranks 4 --vary batch=8 -o four.html
has four.html "cluster: on 4 ranks"

# ---- comparisons ----

expect 0 "$convoy" report "$source/tests/data/compare.csv" -o compare.html
sections compare.html compare accuracy
has compare.html "Comparison of compare.csv"
well_formed compare.html

# ---- runs ----

mkdir run
printf 'model: "<i>lenet5"\n' >run/config.yaml
cat >run/metrics.jsonl <<'END'
{"event":"start","step":0,"epoch":0,"model":"lenet5"}
{"event":"step","step":1,"epoch":0,"loss":2.5,"images_per_s":100,"learning_rate":0.01,"train_accuracy":0.1}
{"event":"step","step":2,"epoch":0,"loss":null,"images_per_s":100,"learning_rate":0.01,"train_accuracy":0.2}
not a line
{"event":"step","step":1,"epoch":0,"loss":9,"images_per_s":100,"learning_rate":0.01,"train_accuracy":0.2}
{"event":"epoch","step":2,"epoch":1,"loss":2.25,"train_accuracy":0.15,"validation_accuracy":0.625,"validation_loss":2}
{"event":"step","st
END
expect 0 "$convoy" report run
sections run/report.html summary training environment
has run/report.html "<dt>best validation accuracy</dt><dd>62.50 %</dd>"
has run/report.html '<td class="number">2.25</td><td class="number">15.00 %</td>'
has run/report.html "&lt;i&gt;lenet5"
well_formed run/report.html

# With a profile: an iteration of 20 ms, of which 15 were predicted; a kind of 12 ms, of which 9 were.
cat >run/profile.json <<'END'
{"schema": 1, "model": "lenet5", "strategy": "data", "precision": "fp32", "ranks": 2, "threads_per_rank": 1,
 "global_batch": 64, "measured": {"iterations": 10, "iteration_s": 0.02, "peak_memory_bytes": 50000000, "steps": [
   {"step": "convolution <forward>", "calls": 10, "seconds": 0.12, "flop": 1e9, "bytes": 1e6, "rank": 1, "ranks": 2,
    "least_s": 0.06, "predicted_s": 0.09},
   {"step": "batch", "calls": 10, "seconds": 0.01, "flop": 0, "bytes": 0, "rank": 0, "ranks": 2, "least_s": 0.01}]},
 "predicted": {"machine": "laptop", "iteration_s": 0.015, "error_relative": 0.3, "memory_bytes": 40000000}}
END
expect 0 "$convoy" report run -o profile.html
sections profile.html summary training compare environment
has profile.html "<dd>15 ms (-25.0"
has profile.html "the iteration lies outside that, accuracy 75.0 %"
has profile.html 'convolution &lt;forward&gt;</th><td class="number">12 ms</td><td class="number">9 ms</td>'
has profile.html '<td class="number">-25.0 %</td><td class="number">-15.0 %</td><td class="number">1</td>'
has profile.html '<td class="number">2.00</td>'
well_formed profile.html

# The plan that ran is priced where there is one, and where its machine is gone the page says so.
expect 0 "$convoy" plan lenet5 --machine ethernet-cpu --ranks 2 --batch 64 --strategy data --save run/plan.yaml
expect 0 "$convoy" report run --machine ethernet-cpu -o priced.html
sections priced.html summary training compare plans memory limits timeline layers traffic scaling configuration \
    environment
well_formed priced.html
sed -i 's/"laptop"/"gone"/' run/profile.json
expect 0 "$convoy" report run -o gone.html
has gone.html "The plan is not priced"
well_formed gone.html

# ---- what is wrong ----

says 2 "found 'many'" "$convoy" report lenet5 --machine abci --ranks many
says 2 "no machine 'nowhere'" "$convoy" report run --machine nowhere
says 2 "it holds no config.yaml" "$convoy" report .
printf 'model,ranks\nlenet5,1\n' >short.csv
says 2 "no column 'machine'" "$convoy" report short.csv
says 2 "a plan is of its own ranks" "$convoy" report plan.yaml --ranks 1:4

says 2 "convoy report needs a run, a plan file" "$convoy" report
says 2 "convoy report needs a machine" "$convoy" report lenet5
says 1 "nowhere/page.html" "$convoy" report lenet5 --machine abci --ranks 2 -o nowhere/page.html
finish
