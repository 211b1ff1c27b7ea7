#!/bin/bash
# convoy report's pages in a real browser, Chromium without a window: something is drawn, light and dark; the console is
# silent; on a phone nothing is wider than the screen; it prints. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"
browser=$(command -v chromium || command -v chromium-headless-shell || command -v google-chrome)
if [ -z "$browser" ]; then
    echo "SKIP: no chromium here, so nobody looks at the pages; Debian's package is chromium"
    exit 77
fi
if ! command -v gnuplot >/dev/null; then
    echo "SKIP: no gnuplot here, so pages have no charts to look at"
    exit 77
fi

# browse OPTION... URL: standard output in out, what Chromium logs in err
browse() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --no-first-run --user-data-dir="$folder/profile" --virtual-time-budget=5000 "$@" >out 2>err </dev/null ||
        fail "$browser failed: $(tail -n 3 err)"
}

# judge PICTURE: the number of colours in it, the most frequent of them, and per mille of pixels that are of another
judge() {
    cat >judge.html <<END
<body><script>
const picture = new Image();
picture.onload = () => {
    const canvas = document.createElement("canvas"), colours = new Map();
    canvas.width = picture.width;
    canvas.height = picture.height;
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 0; i < data.length; i += 4) {
        const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
        colours.set(colour, (colours.get(colour) || 0) + 1);
    }
    const [common, pixels] = [...colours].reduce((a, b) => b[1] > a[1] ? b : a);
    document.body.textContent = "judged " + colours.size + " " + common.toString(16).padStart(6, "0") + " " +
        Math.floor(1000 - 4000 * pixels / data.length);
};
picture.src = "data:image/png;base64,$(base64 -w 0 "$1")";
</script></body>
END
    browse --dump-dom "file://$folder/judge.html"
    sed -n 's/.*judged \([0-9a-f ]*\).*/\1/p' out
}

# looks PAGE BACKGROUND OPTION...: it is drawn in many colours on that background, and nothing is said on the console
looks() {
    local page=$1 background=$2 colours common other
    shift 2
    rm -f picture.png
    browse --screenshot="$folder/picture.png" --window-size=1000,3000 --enable-logging=stderr "$@" \
        "file://$folder/$page"
    ! grep -q ':CONSOLE' err || fail "$page: on the console: $(grep ':CONSOLE' err | head -n 3)"
    [ -s picture.png ] || { fail "$page: no picture"; return; }
    read -r colours common other <<<"$(judge picture.png)"
    [ "${common:-none}" = "$background" ] || fail "$page: mostly ${common:-nothing}, expected $background"
    [ "${colours:-0}" -ge 50 ] || fail "$page: ${colours:-0} colours, expected at least 50"
    [ "${other:-0}" -ge 20 ] || fail "$page: ${other:-0} per mille of the page is drawn on, expected at least 20"
}

# fits PAGE WIDTH: nothing is wider than a screen of so many pixels but tables, which scroll by themselves
fits() {
    local page=$1 width=$2 found
    sed -e '/Content-Security-Policy/d' -e 's/<details>/<details open>/' "$page" >copy.html
    cat >>copy.html <<'END'
<script>
addEventListener("load", () => {
    const wide = [...document.querySelectorAll("body *")].filter(element => !element.parentElement.closest(".scroll") &&
        !element.closest("svg") && element.getBoundingClientRect().right > innerWidth + 1);
    parent.postMessage("fitted " + innerWidth + " " + document.documentElement.scrollWidth + " " + wide.length + " " +
        wide.slice(0, 3).map(element => element.tagName + "." + element.className).join(","), "*");
});
</script>
END
    cat >frame.html <<END
<body><p id="words"></p><iframe src="copy.html" style="border:0;width:${width}px;height:800px"></iframe><script>
addEventListener("message", event => document.getElementById("words").textContent = event.data);
</script></body>
END
    browse --dump-dom --allow-file-access-from-files "file://$folder/frame.html"
    found=$(sed -n 's/.*fitted \([^<]*\).*/\1/p' out)
    case $found in
    "$width $width 0 "*) ;;
    *) fail "$page on $width pixels: width, width of its content, elements that are wider: ${found:-nothing}" ;;
    esac
}

# prints PAGE
prints() {
    rm -f page.pdf
    browse --print-to-pdf="$folder/page.pdf" --no-pdf-header-footer "file://$folder/$1"
    [ "$(head -c 5 page.pdf)" = "%PDF-" ] || fail "$1 does not print"
}

# What is looked at sees what is wrong: an empty page, words on the console, a wide element.
printf '<!DOCTYPE html><html><body><script>console.error("seen")</script></body></html>\n' >bad.html
browse --screenshot="$folder/picture.png" --window-size=1000,800 --enable-logging=stderr "file://$folder/bad.html"
has err ":CONSOLE"
[ "$(judge picture.png)" = "1 ffffff 0" ] || fail "an empty page was judged $(judge picture.png)"
printf '<!DOCTYPE html><html><body style="margin:0"><p style="width:500px">wide</p></body></html>\n' >wide.html
(fits wide.html 390) >words
has words "wide.html on 390 pixels"

expect 0 "$convoy" report vgg11 --machine ethernet-cpu --ranks 8 --batch 8/rank -o plan.html
looks plan.html ffffff
looks plan.html 15181c --blink-settings=preferredColorScheme=0
fits plan.html 390
prints plan.html
expect 0 "$convoy" report resnet18 --machine abci --ranks 1:64 --vary link-bandwidth=x1/4:x4 -o study.html
looks study.html ffffff
fits study.html 390
if "$convoy" train lenet5 --data digits --train-samples 640 --test-samples 64 --epochs 2 --machine laptop --threads 1 \
    --layout rule --out run >out 2>err; then
    expect 0 "$convoy" report run -o run.html
    looks run.html ffffff
    fits run.html 390
else
    grep -q "not in this build" err || fail "train: $(cat err)"
fi
finish
