#!/bin/bash
# The layer checker sees each kind of breach, in the file and line where it stands, and lets what is allowed pass.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check_layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put FILE LINE…: write a file of the tree
put() {
    local file=$tree/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

# refuse WORDS FILE LINE…: with this file the checker must fail and say WORDS; the file is taken away again
refuse() {
    local words=$1
    shift
    put "$@"
    if bash "$check" "$tree" >"$tree/said"; then
        echo "passed: $*" >&2
        exit 1
    fi
    if ! grep -qF "$words" "$tree/said"; then
        echo "expected '$words', got:" >&2
        cat "$tree/said" >&2
        exit 1
    fi
    rm "$tree/$1"
}

put src/base/error.c '#include "base/error.h"' '#include <stdio.h>' '#include "convoy/status.h"'
put src/plan/plan.c '#include "model/model.h"' '#include "plan/plan.h"'
put src/backend/onednn/kernel.c '#include <dnnl.h>' '#include "backend/backend.h"' '#include "backend/onednn/kernel.h"'
put src/backend/registry.c '#if CVY_HAVE_ONEDNN' '#endif'
put src/cli/main.c '#include "runtime/state.h"' '#include <argp.h>'
put include/convoy/convoy.h '#include <stddef.h>' '#include "convoy/status.h"'
put examples/train.c '#include <stdio.h>' '#include "convoy/convoy.h"'
bash "$check" "$tree"

refuse 'src/op/op.c:2: "plan/plan.h": op (level 2) must not include plan (level 4)' \
    src/op/op.c '#include "tensor/tensor.h"' '#include "plan/plan.h"'
refuse 'model (level 3) must not include backend (level 3)' src/model/model.c '  #  include "backend/backend.h"'
refuse 'runtime (level 5) must not include oracle (level 5)' src/runtime/run.c '#include "oracle/oracle.h"'
refuse 'is private to backend/ref' src/backend/cpu/relu.c '#include "backend/ref/ref.h"'
refuse 'is private to backend/ref' src/runtime/run.c '#include "backend/ref/ref.h"'
refuse 'write folder/file.h' src/data/idx.c '#include "data.h"'
refuse 'the folder is in no row' src/attic/old.c '#include <stdio.h>'
refuse '<dnnl.h> belongs to src/backend/onednn/' src/backend/cpu/relu.c '#include <dnnl.h>'
refuse '<mpi.h> belongs to src/comm/mpi/' src/runtime/run.c '#include <mpi.h>'
refuse '<yaml.h> belongs to src/base/yaml.c' src/model/model.c '#include <yaml.h>'
refuse '<zlib.h> belongs to src/data/' src/base/file.c '#include <zlib.h>'
refuse '<omp.h> belongs to src/backend/ src/runtime/' src/plan/plan2.c '#include <omp.h>'
refuse '<curl/curl.h> is in no row' src/data/fetch.c '#include <curl/curl.h>'
refuse '"base/error.h" is not public' include/convoy/model.h '#include "base/error.h"'
refuse '<pthread.h> belongs to src/ examples/' include/convoy/model.h '#include <pthread.h>'
refuse '"runtime/state.h" is not public' examples/eval.c '#include "runtime/state.h"'
refuse 'outside the registries' src/plan/plan2.c '#ifdef CVY_HAVE_ONEDNN' '#endif'
refuse 'outside the registries' src/plan/plan2.c '#if defined(X) && CVY_HAVE_TRAIN' '#endif'
bash "$check" "$tree"
