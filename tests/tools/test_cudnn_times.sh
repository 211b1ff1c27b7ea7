#!/bin/bash
# tools/cudnn-times is C that fits its libraries' interfaces, and its Makefile says where no toolkit is. The toolkit is
# not here: declarations of cuda-stubs stand for it, and nothing is run.
here=$(cd "$(dirname "$0")" && pwd)
tool=$here/../../tools/cudnn-times
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
for source in "$tool"/*.c; do
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$here/cuda-stubs" "$source" || fail "$source"
done
out=$(make -C "$tool" CUDA=/nowhere 2>&1) && fail "built without a toolkit: $out"
case $out in
*"no CUDA toolkit: /nowhere/include/cuda_runtime.h is not there"*) ;;
*) fail "no word of the missing toolkit: $out" ;;
esac
# What it writes is what an import reads.
header=$(grep -o 'kernel,pass,[a-z,]*' "$tool/main.c")
[ "$header" = "kernel,pass,n,c,h,w,f,kh,kw,stride,pad,g,bias,seconds,error" ] || fail "columns: $header"
