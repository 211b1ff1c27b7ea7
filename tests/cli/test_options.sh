#!/bin/bash
# Options from the line, the environment and a file, as the program takes them. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

# refused WORDS COMMAND...: exit code 2, one line on standard error that holds the words, nothing on standard output
refused() {
    local words=$1 found
    shift
    "$@" >out 2>err </dev/null
    found=$?
    [ "$found" -eq 2 ] || fail "$* ended with $found, expected 2: $(cat err)"
    [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "$*: expected one line: $(cat out err)"
    grep -qF -- "error: $words" err || fail "$*: expected '$words', found: $(cat err)"
}

# first_layer COMMAND...: the batch is the first extent of every output of the table
first_layer() {
    "$@" 2>err | awk '$1 == "conv1" { split($3, n, "x"); print n[1] }'
}

equal() {
    [ "$1" = "$2" ] || fail "$3: expected $1, found $2 $(cat err)"
}

# model shows batch 1; each source lies over the one before
equal 1 "$(first_layer "$convoy" model lenet5)" default
echo "batch: 2" >two.yaml
printf 'model: lenet5\nbatch-size: 3/rank\n' >three.yaml
equal 2 "$(first_layer "$convoy" model lenet5 --config two.yaml)" file
equal 3 "$(first_layer "$convoy" model --config two.yaml --config three.yaml)" "later file, which names the model"
equal 4 "$(CONVOY_BATCH=4 first_layer "$convoy" model lenet5 --config two.yaml)" environment
equal 5 "$(CONVOY_BATCH=4 first_layer "$convoy" model lenet5 --config two.yaml --batch 5)" line
equal 6 "$(CONVOY_BATCH_SIZE=4 first_layer "$convoy" model -b 6 lenet5)" "line, alias in the environment"
equal 2 "$(CONVOY_CONFIG=two.yaml first_layer "$convoy" model lenet5)" "file named by the environment"
equal 7 "$(first_layer "$convoy" model --batch-size=7/rank lenet5)" alias

refused "no option '--bacth'; did you mean '--batch'?" "$convoy" model lenet5 --bacth 3
refused "--batch: expected a count (N or N/rank) from 1 to 16777216, found '0'" "$convoy" model lenet5 --batch 0
refused "--batch: expected a count" "$convoy" model lenet5 --batch 1e3
refused "option '--batch' needs a value" "$convoy" model lenet5 --batch
refused "convoy model takes MODEL, found one more: 'lenet6'" "$convoy" model lenet5 lenet6
refused "CONVOY_BATCH: expected" env CONVOY_BATCH=x "$convoy" model lenet5
refused "--model resnet18: 'lenet5' stands there, too, expected one of them" "$convoy" model lenet5 --model resnet18
refused "--model resnet18: 'lenet5' stands there, too" "$convoy" model --model=resnet18 lenet5
equal 7 "$(CONVOY_MODEL=vgg11 first_layer "$convoy" model lenet5 --batch 7)" "the line's model, not the environment's"
refused "environment variable CONVOY_BTACH belongs to no option; did you mean CONVOY_BATCH" \
    env CONVOY_BTACH=1 "$convoy" model lenet5
refused "environment variable CONVOY_HELP belongs to no option: help is for the command line, --help" \
    env CONVOY_HELP=1 "$convoy" model lenet5
refused "missing.yaml: " "$convoy" model lenet5 --config missing.yaml
printf 'batch: 2\nepohcs: 3\n' >bad.yaml
refused "bad.yaml:2: no option 'epohcs'" "$convoy" model lenet5 --config bad.yaml
printf 'batch: [1, 2]\n' >bad.yaml
refused "bad.yaml:1: batch: expected one value" "$convoy" model lenet5 --config bad.yaml

# A variable that another command takes is no error here.
equal 1 "$(CONVOY_EPOCHS=3 first_layer "$convoy" model lenet5)" "a variable of train"

if "$convoy" train --help >/dev/null 2>&1; then
    refused "convoy train needs a model" "$convoy" train --data digits
    refused "convoy train needs data" "$convoy" train lenet5
    refused "strategy sample=2" "$convoy" train lenet5 --data digits --strategy sample=2
    refused "--cache: two.yaml is no folder" "$convoy" train lenet5 --data digits --cache two.yaml
    refused "--bucket: found '25', expected a size" "$convoy" train lenet5 --data digits --bucket 25
    rules="sgd, momentum, nesterov, adamw, adam, lars or lamb"
    refused "--optimizer: expected $rules, found 'adamm'; did you mean 'adamw'?" \
        "$convoy" train lenet5 --data digits --optimizer adamm
    refused "--learning-rate: expected a number from 0 to" "$convoy" train lenet5 --data digits --lr -1
    refused "clip-norm and clip-value: expected one of them" \
        "$convoy" train lenet5 --data digits --clip-grad 1 --clip-value 1
    refused "lars goes by the norm of each gradient" \
        "$convoy" train lenet5 --data digits --optimizer lars --clip-value 1
    refused "milestones: expected epochs that rise" \
        "$convoy" train lenet5 --data digits --schedule multistep --milestones 3,2
    refused "the multistep schedule needs milestones" "$convoy" train lenet5 --data digits --schedule multistep
    refused "no-run: no such run" "$convoy" train --resume no-run
    refused ".: not a run" "$convoy" train --resume .
    refused "--resume goes on from a checkpoint" "$convoy" train --resume . --weights w.safetensors
    refused "convoy eval needs a run" "$convoy" eval
    refused "convoy bench needs a model" "$convoy" bench
    refused "--iterations: expected" "$convoy" bench lenet5 --iterations 0
fi

finish
