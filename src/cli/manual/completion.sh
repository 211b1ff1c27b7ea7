# Bash splits words at ':' and '='; "resnet50:size=32" and "--batch=8" are put together again, in words. An empty word,
# or an option, behind a separator is one of its own.
_convoy_join_words() {
    local i word joins=
    words=("${COMP_WORDS[0]}")
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 1 && -n $word && -z ${word//[:=]/} ]]; then
            words[-1]+=$word
            joins=yes
        elif [[ -n $joins && -n $word && $word != -* ]]; then
            words[-1]+=$word
            joins=
        else
            words+=("$word")
            joins=
        fi
    done
}

# _convoy_add WORD...: offer the words that begin as the current one
_convoy_add() {
    local word
    for word in "$@"; do
        if [[ $word == "$cur"* ]]; then
            COMPREPLY+=("$before$word")
        fi
    done
}

# _convoy_add_paths -f|-d [ENDING...]: offer files (with one of these endings, if any are given) and folders, or folders
_convoy_add_paths() {
    local path ending kind=$1
    shift
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        if [[ $# -eq 0 || -d ${path/#'~/'/"$HOME/"} ]]; then
            COMPREPLY+=("$before$path")
        else
            for ending in "$@"; do
                if [[ $path == *"$ending" ]]; then
                    COMPREPLY+=("$before$path")
                fi
            done
        fi
    done < <(compgen "$kind" -- "$cur")
}

# A zoo name, perhaps with options as in resnet50:size=32,classes=10, or a model file.
_convoy_add_model() {
    local name=${cur%%:*} given last option
    if [[ $cur != *:* ]]; then
        _convoy_add $_convoy_models
        _convoy_add_paths -f .yaml .yml
        return
    fi
    given=${cur#*:}
    last=${given##*,}
    given=${given%"$last"}
    if [[ $last == *=* ]]; then
        for option in $(_convoy_model_values "$name" "${last%%=*}"); do
            _convoy_add "$name:$given${last%%=*}=$option"
        done
        return
    fi
    for option in $(_convoy_model_options "$name"); do
        if [[ ",$given" != *",$option="* ]]; then
            _convoy_add "$name:$given$option="
        fi
    done
}

# _convoy_add_list FRONT WORD...: behind FRONT stands a list with commas, of which the last word is offered; a word is
# there once, one that ends in '=' with its value
_convoy_add_list() {
    local word key given front=$1
    shift
    given=${cur#"$front"}
    given=,${given%"${given##*,}"}
    for word in "$@"; do
        key=,$word
        if [[ $word != *= ]]; then
            key+=,
        fi
        if [[ $given != *"$key"* ]]; then
            _convoy_add "$front${given:1}$word"
        fi
    done
}

# A name, or axes of a mesh; what else there is to say comes behind.
_convoy_add_strategy() {
    local last=${cur##*,}
    case $last in
        channel-cut=*) _convoy_add "${cur%"$last"}channel-cut="{alternate,filter,channel} ;;
        pipeline=*) _convoy_add "${cur%"$last"}pipeline="{1f1b,gpipe} ;;
        *=*) ;;
        *)
            if [[ $cur != *,* ]]; then
                _convoy_add auto serial data spatial filter channel alternating pipeline
                _convoy_add "${_convoy_axes[@]/%/=}"
            elif [[ $cur != auto,* ]]; then
                _convoy_add_list '' "${_convoy_axes[@]/%/=}" channel-cut= micro-batches= pipeline=
            fi
            ;;
    esac
}

# What a study varies, and of values the names; the others are numbers.
_convoy_add_varied() {
    if [[ $cur != *=* ]]; then
        _convoy_add "${_convoy_varied[@]/%/=}"
    elif [[ $cur == precision=* ]]; then
        _convoy_add_list precision= $_convoy_precisions
    fi
}

# _convoy_offer ALTERNATIVES: what stands for each of them, as help writes it: capitals for a kind, a word for itself
_convoy_offer() {
    local alternative alternatives
    IFS='|' read -ra alternatives <<<"$1"
    for alternative in "${alternatives[@]}"; do
        case $alternative in
            MODEL) _convoy_add_model ;;
            NAME) _convoy_add $_convoy_data ;;
            KIND) _convoy_add $_convoy_kinds ;;
            BACKEND) _convoy_add $_convoy_backends ;;
            MACHINE)
                _convoy_add $_convoy_machines
                _convoy_add_paths -f .yaml .yml
                ;;
            STRATEGY) _convoy_add_strategy ;;
            AXES) _convoy_add_list '' none "${_convoy_axes[@]}" ;;
            NAME=VALUES) _convoy_add_varied ;;
            RUN | DIR) _convoy_add_paths -d ;;
            FILE | PATH) _convoy_add_paths -f ;;
            *[!a-z0-9-]*) ;; # a number, a list: nobody can guess
            *) _convoy_add "$alternative" ;;
        esac
    done
}

# The options of a command; the names that other programs give them where no main one fits.
_convoy_offer_options() {
    _convoy_add $(_convoy_options "$1")
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _convoy_add $(_convoy_aliases "$1")
    fi
}

# Find what the word under the cursor is: the operands before it are counted, values of options passed over.
_convoy_complete() {
    local i word option='' operands=()
    for ((i = 2; i < ${#words[@]} - 1; i++)); do
        word=${words[i]}
        if [[ -n $option ]]; then
            option=
        elif [[ $word == -* ]]; then
            if [[ $word != --*=* ]] && _convoy_argument "${words[1]}" "$word" >/dev/null; then
                option=$word
            fi
        else
            operands+=("$word")
        fi
    done
    if [[ -n $option ]]; then
        _convoy_offer "$(_convoy_argument "${words[1]}" "$option")"
    elif [[ $cur == --*=* ]]; then
        option=${cur%%=*}
        before=$option=
        cur=${cur#*=}
        _convoy_offer "$(_convoy_argument "${words[1]}" "$option")"
    elif [[ $cur == -* ]]; then
        _convoy_offer_options "${words[1]}"
    else
        local expected=($(_convoy_operands "${words[1]}"))
        if [[ ${#operands[@]} -lt ${#expected[@]} ]]; then
            _convoy_offer "${expected[${#operands[@]}]}"
        elif [[ -z $cur ]]; then
            _convoy_offer_options "${words[1]}"
        fi
    fi
}

_convoy() {
    local words word cur before='' typed i
    _convoy_join_words
    typed=${words[-1]}
    cur=$typed
    COMPREPLY=()
    if [[ ${#words[@]} -le 2 ]]; then
        if [[ $cur == -* ]]; then
            _convoy_add --help --version
        else
            _convoy_add $_convoy_commands
        fi
    elif [[ ${words[1]} == help ]]; then
        if [[ ${#words[@]} -eq 3 ]]; then
            _convoy_add $_convoy_commands
        fi
    else
        _convoy_complete
    fi
    # Bash puts a reply in place of its own last word, so what it split off in front is taken away again.
    word=${COMP_WORDS[COMP_CWORD]}
    if [[ -z ${word//[:=]/} ]]; then
        word=
    fi
    typed=${typed%"$word"}
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$typed"}
        if [[ ${COMPREPLY[i]} == *[:=] ]]; then
            compopt -o nospace 2>/dev/null
        fi
    done
}

complete -F _convoy convoy
