#!/bin/bash
# The completion as bash calls it: words in COMP_WORDS, split at ':' and '='. Argument 1 is the program.
script=$(realpath "$(dirname "$1")")/manual/completions/convoy
. "$(dirname "$0")/setup.sh"

[ -r "$script" ] || { fail "no $script"; finish; }
bash -n "$script" || fail "the script is no bash"
. "$script"
complete -p convoy 2>/dev/null | grep -q -- '-F _convoy convoy' || fail "convoy has no completion: $(complete -p)"

# offers WORDS LINE...: where the last word of a line is completed exactly WORDS are offered, in any order
offers() {
    local expected found
    expected=$(printf '%s\n' $1 | sort)
    shift
    found=$(offered "$@")
    [ "$expected" = "$found" ] || fail "[$*]: expected $(echo $expected), found $(echo $found)"
}

offered() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _convoy convoy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>&1
    printf '%s\n' "${COMPREPLY[@]}" | sort
}

# offers_also WORD LINE...: WORD is among what is offered
offers_also() {
    local word=$1
    shift
    offered "$@" | grep -qxF -- "$word" || fail "[$*]: expected $word among $(offered "$@" | tr '\n' ' ')"
}

mkdir -p data/mnist home/models runs
touch net.yaml notes.txt weights.safetensors "data/a b.yaml"

# Commands, as help lists them, but not those that this build lacks.
commands=$("$convoy" help | awk '/^  [a-z]/ && !/not in this build/ && $1 != "convoy" { print $1 }')
offers "$commands" convoy ""
offers "model" convoy mo
offers "--help --version" convoy --
offers "$commands" convoy help ""
offers "" convoy help model ""
offers "" convoy nonsense ""

# Options, as help lists them.
for command in $commands; do
    [ "$command" = help ] && continue
    options=$("$convoy" "$command" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p')
    [ "$(echo "$options" | wc -l)" -ge 3 ] || fail "$command --help lists $options"
    offers "$options" convoy "$command" --
done
offers "--batch" convoy model --ba
offers "--batch-size" convoy model --batch-
offers "--list" convoy model lenet5 --li

# Every value of an option is offered, but for numbers, lists of them, and words that are the user's own.
for command in $commands; do
    [ "$command" = help ] && continue
    "$convoy" "$command" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\) \([^ ]\+\).*/\2 \3/p' | sort -u >values
    while read -r option value; do
        case $value in
            N | N\[/rank\] | X | X\[,X...\] | N\|LIST | LIST | SIZE | PRICE | TIME | COMMAND | WORD) continue ;;
        esac
        [ -n "$(offered convoy "$command" "$option" "")" ] || fail "$command $option $value: nothing is offered"
    done <values
done
rm values

# Models, and their options one after the other.
offers "lenet5" convoy model len
offers "cifar10-quick" convoy model --batch 3 cif
offers "lenet5" convoy model --batch = 3 len
offers "size= channels= classes=" convoy model lenet5 :
offers "size=" convoy model lenet5 : s
offers "32,classes= 32,channels=" convoy model lenet5 : size = 32,
offers "[32,48],classes=" convoy model lenet5 : size = "[32,48],cl"
offers "1.5 1" convoy model resnet50 : version =
offers "10,version=" convoy model resnet50 : classes = 10,v
offers "resnet50:version=" convoy model resnet50:v
offers "" convoy model nonsense :
offers "--model" convoy model lenet5 : --mo

# Files: of models those that are YAML, and folders on the way to one.
offers "net.yaml" convoy model n
offers "data" convoy model da
[ "$(offered convoy model data/a)" = "data/a b.yaml" ] || fail "a blank in a name: $(offered convoy model data/a)"
offers "net.yaml notes.txt" convoy model --config n
offers_also net.yaml convoy model --model ""
HOME=$PWD/home offers "~/models" convoy model "~/"

# Machines and strategies.
offers "dgx1-p100 dgx1-v100" convoy plan lenet5 --machine dgx1
offers "pipeline" convoy why lenet5 --strategy pi
offers "serial spatial stage= sample=" convoy why lenet5 --strategy s
offers "8,stage= 8,depth= 8,height= 8,width= 8,channel= 8,channel-cut= 8,micro-batches= 8,pipeline=" \
    convoy why lenet5 --strategy sample = 8,
offers "" convoy slurm --partition ""
offers "8,channel= 8,channel-cut=" convoy why lenet5 --strategy sample = 8,ch
offers "filter" convoy why lenet5 --strategy channel,channel-cut = f
offers "1f1b gpipe" convoy why lenet5 --strategy stage = 4,pipeline =
offers "" convoy why lenet5 --strategy auto,
offers "" convoy why lenet5 --strategy sample =
offers "height,width" convoy plan lenet5 --norm-axes height,w
offers "" convoy plan lenet5 --norm-axes height,h
offers "batch= arithmetic= memory-bandwidth= link-bandwidth= link-latency= memory= precision=" \
    convoy sweep lenet5 --vary ""
offers "link-bandwidth= link-latency=" convoy report lenet5 --vary link
offers "link-bandwidth=" convoy sweep lenet5 --vary = link-b
offers "" convoy sweep lenet5 --vary link-bandwidth =
offers "fp64 fp32 tf32 fp16 bf16" convoy sweep lenet5 --vary precision =
offers "fp32,fp16" convoy sweep lenet5 --vary precision = fp32,fp1
offers "fp32,fp64 fp32,tf32 fp32,fp16 fp32,bf16" convoy sweep lenet5 --vary precision = fp32,
offers "fp64 fp32 tf32 fp16 bf16" convoy fits lenet5 --precision ""

if "$convoy" train --help >/dev/null 2>&1; then
    rules="sgd momentum nesterov adamw adam lars lamb"
    offers "$rules" convoy train lenet5 --optimizer ""
    offers "$rules" convoy train lenet5 --opt =
    offers "momentum" convoy train lenet5 --optimizer mo
    offers "adam adamw" convoy train lenet5 --optimizer = ada
    offers "--optimizer=adam --optimizer=adamw" convoy train lenet5 --optimizer=ada
    offers "fp32 fp64" convoy bench lenet5 --precision ""
    offers "cpu" convoy bench lenet5 --backend c
    offers "cifar10 cifar100" convoy train lenet5 --data-kind cif
    offers "data digits" convoy train lenet5 --data d
    offers "data/mnist" convoy train lenet5 -d data/
    offers "data/mnist" convoy train lenet5 --data = data/
    offers "weights.safetensors" convoy train lenet5 --weights w
    offers "runs" convoy train --resume r
    offers "" convoy train lenet5 --epochs ""
    offers "" convoy train lenet5 --batch ""
    offers "check" convoy data ""
    offers "data home runs" convoy data check ""
    offers_also lenet5 convoy eval ""
    offers_also runs convoy eval ""
fi

finish
