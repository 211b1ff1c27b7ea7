#!/bin/bash
# What nobody should write, and somebody will: every model, option, data set and file of weights here is refused in one
# line that says where and what was expected, with the exit code that scripts rely on. Nothing waits, and little memory
# and time is taken, whatever a file claims: limits on address space and processor time hold it. Argument 1 is the
# program.
. "$(dirname "$0")/setup.sh"

# bounded KIB CODE WORDS COMMAND...: as says, in so much address space and 4 s of processor time, within 30 s
bounded() {
    local kib=$1
    shift
    (
        failures=0
        ulimit -v "$kib" -t 4
        says "$1" "$2" timeout 30 "${@:3}"
        [ ! -s out ] || fail "${*:3}: half an answer: $(head -c 200 out)"
        exit $failures
    ) || failures=$((failures + 1))
}

# model WORDS TEXT: a model file of that text, escapes of printf in it, is refused; the program alone takes 100 MB
model() {
    printf '%b' "$2" >m.yaml
    bounded 160000 2 "error: ./m.yaml$1" "$convoy" model ./m.yaml
}

head='name: m\ninput: [4, 8, 8]\nlayers:\n'
end='  - {name: flat, kind: flatten}\n  - {name: loss, kind: softmax-cross-entropy}\n'

# layer WORDS LAYER: a layer on line 4
layer() {
    model ":4: $1" "$head  - {$2}\n$end"
}

repeat() { # COUNT TEXT
    printf "%0$1d" 0 | sed "s/0/$2/g"
}

# the graph: cycles, names, kinds
model ":4: layer a: input 'b' stands on line 5: layers stand after their inputs, without a cycle" \
    "$head  - {name: a, kind: add, input: [input, b]}\n  - {name: b, kind: relu, input: a}\n$end"
layer "layer a: input 'a' stands on line 4: layers stand after their inputs" 'name: a, kind: relu, input: a'
layer "layer a: no layer 'inputt' to take as input; did you mean 'input'?" 'name: a, kind: relu, input: inputt'
layer "layer a: input: found 5 names, expected 1 to 4" \
    'name: a, kind: concat, input: [input, input, input, input, input]'
layer "layer a: unknown kind 'convv'; did you mean 'conv'?" 'name: a, kind: convv'
layer "layer a: unknown kind '????': docs/models.md lists them" 'name: a, kind: "\\e\\e\\e\\e"'
layer "layer 'input': the name is taken" 'name: input, kind: relu'
model ":5: layer 'flat': the name is taken" "$head  - {name: flat, kind: relu}\n$end"
model ":4: layer a: no layer takes its output" \
    "$head  - {name: a, kind: relu}\n  - {name: b, kind: relu, input: input}\n$end"

# numbers: none at all, too large, products beyond 64 bits, windows and groups that do not fit
model ":2: layer input: output: shape 1x1000000000x1000000000x1000000000 is beyond 2^62 bytes" \
    "name: m\ninput: [1000000000, 1000000000, 1000000000]\nlayers:\n$end"
model ":2: input: found '9223372036854775808', expected a whole number from 1" \
    "name: m\ninput: [9223372036854775808, 1, 1]\nlayers:\n$end"
model ":2: input: found '0', expected a whole number from 1" "name: m\ninput: [0, 1, 1]\nlayers:\n$end"
model ":4: layer a: weight: shape 1000000000x1000000000x8x8 is beyond 2^62 bytes" \
    "name: m\ninput: [1000000000, 8, 8]\nlayers:\n  - {name: a, kind: conv, filters: 1000000000, kernel: 8}\n$end"
layer "layer a: output: shape 1x4x2000000006x2000000006 is beyond 2^62 bytes" \
    'name: a, kind: conv, filters: 4, kernel: 3, padding: 1000000000'
layer "layer a: filters: found '0', expected a whole number from 1" 'name: a, kind: conv, filters: 0, kernel: 3'
layer "layer a: stride: found '-1', expected a whole number from 1" \
    'name: a, kind: conv, filters: 4, kernel: 3, stride: -1'
layer "layer a: padding: found '-1', expected a whole number from 0" 'name: a, kind: max-pool, kernel: 2, padding: -1'
layer "layer a: a window of 9 along h (stride 1, dilation 1, padding 0 and 0) does not fit into an input of 1x4x8x8" \
    'name: a, kind: conv, filters: 4, kernel: 9'
layer "layer a: a window of 3 along h (stride 1, dilation 1000000000, padding 0 and 0) does not fit into" \
    'name: a, kind: conv, filters: 4, kernel: 3, dilation: 1000000000'
layer "layer a: a window of 3 along h (stride 3, dilation 1, padding 3 and 3) would lie in the padding alone" \
    'name: a, kind: max-pool, kernel: 3, padding: 3'
layer "layer a: 4 channels and 4 filters do not fall into 3 equal groups" \
    'name: a, kind: conv, filters: 4, kernel: 3, groups: 3'
layer "layer a: outputs: found '0', expected a whole number from 1" 'name: a, kind: dense, outputs: 0'
for real in nan .nan inf -.inf 1e999 -1e999 0x1p-1 '" 0.5"' '""' '[0.5]'; do
    layer "layer a: probability: found " "name: a, kind: dropout, probability: $real"
    has err ", expected a number from 0 to 0.99"
done

# YAML: anchors, tags, depth, keys, bytes that are none
model ":4: anchors and aliases are not accepted" "$head  - &a {name: a, kind: relu}\n  - *a\n$end"
model ":1: anchors and aliases are not accepted" '<<: *a\n'
model ":1: tags are not accepted, found '!!python/object'" 'name: !<!!python/object> x\n'
model ":1: tags are not accepted, found %TAG" "$(seq -f '%%TAG !%.0f! x' 10000)"
model ":1: not YAML: invalid leading UTF-8 octet" '\xff\xfea\0:\0'
model ":1: nested deeper than 32" "$(repeat 100000 '[')"
model ":1: nested deeper than 32" "$(repeat 100000 '{a: ')"
model ":1: nested deeper than 32" "$(repeat 100000 '- ')"
model ":1: a key is a list or a mapping, expected a word" "$(repeat 100000 '? ')"
model ":2: key 'name' is given twice" 'name: a\nname: b\n'
model ":4: not YAML: invalid leading UTF-8 octet" "$head  - {name: a\\xff, kind: relu}\n$end"
model ":1: not YAML: " 'name: \xc3\x28\n'
model ":1: not YAML: control characters are not allowed" 'a\0b'
model ":1: holds nothing" ''
model ":1: holds nothing" '\n# nothing\n'
model ":1: expected a mapping of options" '[]'
model ":1: expected a mapping of options" '--- |\n a\n'
model ":3: layers: expected a list of layers" 'name: m\ninput: [1]\nlayers: {}\n'

for control in '\\e' '\\a' '\\x9b' '\\u0085'; do
    model ":1: name: expected at most 200 bytes, no control characters" \
        "name: \"a${control}2J\"\ninput: [1]\nlayers: []\n"
done
model ":1: name: expected at most 200 bytes" "name: $(repeat 201 a)\ninput: [1]\nlayers: []\n"

# size: a limit that is told, and up to it no time that grows faster than the file
generate() { # COUNT KIND: a line a layer, the last but one of that kind
    printf 'name: big\ninput: [4]\nlayers:\n'
    seq -f '  - {name: l%.0f, kind: relu}' $(($1 - 2))
    printf '  - {name: end, kind: %s}\n  - {name: loss, kind: softmax-cross-entropy}\n' "$2"
}
generate 100000 relu >large.yaml
bounded 200000 2 "error: ./large.yaml:3: layers: found 100000, expected at most 20000" "$convoy" model ./large.yaml
generate 100000 reluu >large.yaml
bounded 200000 2 "error: ./large.yaml:3: layers: found 100000, expected at most 20000" "$convoy" model ./large.yaml
generate 20000 reluu >large.yaml
bounded 200000 2 "error: ./large.yaml:20002: layer end: unknown kind 'reluu'; did you mean 'relu'?" \
    "$convoy" model ./large.yaml
generate 20000 'relu, input: l1999x' >large.yaml
bounded 200000 2 "error: ./large.yaml:20002: layer end: no layer 'l1999x' to take as input; did you mean 'l1999'?" \
    "$convoy" model ./large.yaml
generate 20000 relu >large.yaml
(ulimit -v 200000 -t 4 && expect 0 "$convoy" model ./large.yaml && [ "$(grep -c ' relu ' out)" -eq 19999 ]) ||
    fail "20,000 layers take too much, or are not read: $(cat err)"
{ printf 'a: ['; repeat 1000001 '1,'; printf ']\n'; } >large.yaml
bounded 400000 2 "error: ./large.yaml:1: more than 1000000 entries" "$convoy" model ./large.yaml
truncate -s 4G sparse.yaml
bounded 160000 2 "error: ./sparse.yaml: 4294967296 bytes, expected at most 16777216" "$convoy" model ./sparse.yaml

# what is no file of a model
mkfifo pipe.yaml
ln -s ring.yaml ring.yaml
for path in ./pipe.yaml /dev/zero /dev/null ./; do
    bounded 160000 2 "error: $path: not a regular file" "$convoy" model $path
    bounded 160000 2 "error: $path: not a regular file" "$convoy" model lenet5 --config $path
done
bounded 160000 2 "error: ./ring.yaml: Too many levels of symbolic links" "$convoy" model ./ring.yaml
bounded 160000 2 "error: ./none.yaml: No such file or directory" "$convoy" model ./none.yaml

# options
for batch in 0 -1 9223372036854775807 9223372036854775808 1e3 nan 0x10 ' 5' 5/node 5.0; do
    bounded 160000 2 "error: --batch: expected a count (N or N/rank) from 1 to 16777216, found '$batch'" \
        "$convoy" model lenet5 --batch "$batch"
done
bounded 160000 2 "error: --batch: expected N[/rank], found nothing" "$convoy" model lenet5 --batch ''
bounded 160000 2 "a.yaml: File name too long" "$convoy" model "./$(repeat 5000 a).yaml"
bounded 160000 2 "error: resnet50: classes: found '0', expected a whole number from 1" \
    "$convoy" model resnet50:classes=0
bounded 160000 2 "error: resnet50: size: found '9223372036854775808', expected a whole number" \
    "$convoy" model resnet50:size=9223372036854775808
bounded 160000 2 "error: lenet5: options '$(repeat 60 a)...', expected key=value" \
    "$convoy" model "lenet5:$(repeat 100000 a)"

"$convoy" train --help >/dev/null 2>&1 || finish # a plan-only build reads models alone

bounded 1000000 4 "B of tensors at batch 16777216, this machine has " \
    "$convoy" bench lenet5 --batch 16777216 --iterations 1 --threads 1
for rate in nan inf 1e999 -1; do
    bounded 400000 2 "error: --learning-rate: expected a number from 0 to 1000000, found '$rate'" \
        "$convoy" train lenet5 --data digits --lr $rate --out run
done
bounded 400000 2 "error: --seed: expected a whole number from 0 to 9007199254740992, found '9223372036854775807'" \
    "$convoy" train lenet5 --data digits --seed 9223372036854775807 --out run
[ ! -e run ] || fail "a refused option left a run"

# data WORDS [OPTION...]: the folder set is refused
data() {
    local words=$1
    shift
    bounded 250000 3 "error: set$words" "$convoy" data check set "$@"
    rm -rf set
    mkdir set
}
mkdir set

# data sets: pipes, devices, nothing, holes, headers that claim more than there is
for path in /dev/zero /dev/null ./pipe.yaml; do
    bounded 250000 3 "error: $path: a file, expected the folder that holds it" "$convoy" data check $path
done
data ": the data folder is empty"
for name in train-images-idx3-ubyte train_x.npy train.npz test.bin; do
    mkdir set/$name
    data ": holds no data set of a known kind"
done
for kind in fifo zero; do
    for name in train-images-idx3-ubyte train-labels-idx1-ubyte; do
        [ $kind = fifo ] && mkfifo set/$name || ln -s /dev/zero set/$name
    done
    data "/train-images-idx3-ubyte: not a regular file"
    for name in train_x.npy train_y.npy; do
        [ $kind = fifo ] && mkfifo set/$name || ln -s /dev/zero set/$name
    done
    data "/train_x.npy: not a regular file"
    [ $kind = fifo ] && mkfifo set/train.npz || ln -s /dev/zero set/train.npz
    data "/train.npz: not a regular file"
    [ $kind = fifo ] && mkfifo set/test.bin || ln -s /dev/zero set/test.bin
    data "/test.bin: not a regular file"
done
touch set/train-images-idx3-ubyte set/train-labels-idx1-ubyte
data "/train-images-idx3-ubyte: ends after 0 bytes of its header, expected 4"
touch set/train_x.npy set/train_y.npy
data "/train_x.npy: an empty file, expected an NPY array"
touch set/train.npz
data "/train.npz: cannot open: "
touch set/test.bin
data "/test.bin: 0 bytes, expected records of 3074"
truncate -s 400G set/test.bin
data "/test.bin: 429496729600 bytes, expected records of 3074"
printf '\0\0\010\003\377\377\377\377\377\377\377\377\377\377\377\377' |
    tee set/train-images-idx3-ubyte >set/train-labels-idx1-ubyte
data "/train-images-idx3-ubyte: the header says 4294967295x4294967295x4294967295 bytes, beyond any file"
printf '\0\0\010\003\0\0\377\377\0\0\377\377\0\0\001\0' | tee set/train-labels-idx1-ubyte |
    gzip >set/train-images-idx3-ubyte
data "/train-images-idx3-ubyte: the header says 65535x65535x256 bytes, so 1099478073616, more than a gzip file of"
shape="{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 8, 8), }"
printf '\x93NUMPY\x01\0\x60\0%-95s\n' "$shape" |
    tee set/train_x.npy >set/train_y.npy
data "/train_x.npy: the header says 9223372036854775807x8x8 elements of 8 bytes, but 0 bytes follow it"
printf '\x93NUMPY\x02\0\377\377\377\377' | tee set/train_x.npy >set/train_y.npy
data "/train_x.npy: a header of 4294967295 bytes in a file of 12"

# a set of whole records, most of it a hole, is larger than the memory that there is: told before any of it is read
truncate -s 3074000000000 set/test.bin
says 1 "error: set/test.bin: no memory for 3.07 TB, " timeout 30 "$convoy" data check set

# weights: what is no such file, and headers that would make large trees
printf 'name: net\ninput: [1, 28, 28]\nlayers:\n  - {name: flat, kind: flatten}\n' >net.yaml
printf '  - {name: fc, kind: dense, outputs: 10}\n  - {name: loss, kind: softmax-cross-entropy}\n' >>net.yaml
evaluate=("$convoy" eval ./net.yaml --data digits --test-samples 10 --threads 1 --quiet --checkpoint)
weights() { # WORDS FILE
    bounded 600000 7 "error: $1" "${evaluate[@]}" "$2"
}
put_weights() { # LENGTH TEXT...: the length in eight bytes of escapes, the pieces behind it
    printf '%b' "$1" >w
    cat >>w
}
weights "pipe.yaml: not a regular file" pipe.yaml
weights "/dev/zero: not a regular file" /dev/zero
weights ".: no checkpoint in it; expected a run" .
weights "none: there is nothing of that name; expected a run" none
put_weights '' </dev/null
weights "w: 0 bytes: not a safetensors file, or cut off" w
printf '{}' | put_weights '\377\377\377\377\377\377\377\377'
weights "w: a header of 18446744073709551615 bytes in a file of 10" w
printf '{"a":' | put_weights '\0\0\0\001\0\0\0\0' # a header of 16 MiB in a file of 4 GiB
truncate -s 4G w
(ulimit -v 8000000 -t 4 && says 7 "error: w: byte 5: " timeout 30 "${evaluate[@]}" w) || fail "a sparse file of weights"
{ printf '{"__metadata__":['; repeat 5592400 '[],'; } | put_weights '\0\0\0\001\0\0\0\0' # 16 MiB
weights "w: byte 16: a value of more than 1048576 bytes, the most that is read" w
{ printf '{"a":'; repeat 16777211 '['; } | put_weights '\0\0\0\001\0\0\0\0'
weights "w: byte " w
has err "maximum parsing depth reached"

# a run: its options and the record of its checkpoint are files as well
mkdir -p run/checkpoints/step-00000001
printf 'model: lenet5\ndata: digits\nthreads: 1\nlearning-rate: .nan\n' >run/config.yaml
bounded 600000 2 "error: run/config.yaml:4: learning-rate: expected a number from 0" "$convoy" train --resume run
printf 'model: lenet5\ndata: digits\nthreads: 1\n' >run/config.yaml
record() { # WORDS
    bounded 600000 7 "none of its 1 checkpoints is whole; of the newest: run/checkpoints/step-00000001/state.json: $1" \
        "$convoy" train --resume run --quiet
    rm -rf run/checkpoints/step-00000001/state.json
}
record "No such file or directory"
mkdir run/checkpoints/step-00000001/state.json
record "not a regular file"
mkfifo run/checkpoints/step-00000001/state.json
record "not a regular file"
truncate -s 4G run/checkpoints/step-00000001/state.json
record "4294967296 bytes, expected at most 1048576"
repeat 1000000 '[' >run/checkpoints/step-00000001/state.json
record "damaged: its checksum does not hold"
rm run/config.yaml
mkfifo run/config.yaml
bounded 600000 2 "error: run/config.yaml: not a regular file" "$convoy" train --resume run

finish
