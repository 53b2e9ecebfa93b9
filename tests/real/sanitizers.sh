#!/usr/bin/env bash
# Programs built with a sanitizer need the sanitizer's own allocator: started with the library they work
# as without it, or say in one line why not.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need cc

cat >"$work/program.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    size_t sum = 0;
    for (size_t i = 1; i < 3000; i++) {
        char *block = calloc(1, i * 7);
        block = realloc(block, i * 11);
        memset(block, (int)i, i * 11);
        sum += (unsigned char)block[i];
        free(block);
    }
    printf("%zu\n", sum);
    return 0;
}
C
tried=0
for compiler in cc clang clang-19 clang-14; do
    command -v "$compiler" >/dev/null || continue
    for sanitizer in address undefined thread leak; do
        name=$compiler-$sanitizer
        "$compiler" -fsanitize=$sanitizer -g -o "$work/$name" "$work/program.c" 2>/dev/null || continue
        "$work/$name" >"$work/without" 2>&1 || continue # the sanitizer is missing here, with any malloc
        tried=$((tried + 1))
        status=0
        export HAKMEM_DECAY_MS=900 # options are read before the sanitizer's runtime is ready
        under timeout 60 "$work/$name" >"$work/with" 2>&1 || status=$?
        if [ $status -eq 0 ]; then
            same "$name" "$work/without" "$work/with"
        elif ! grep -q "runtime does not come first" "$work/with" || [ "$(wc -l <"$work/with")" -gt 1 ]; then
            echo "broken: $name ends with $status: $(head -3 "$work/with")" >&2
            exit 1
        fi
        unset HAKMEM_DECAY_MS
    done
done
[ $tried -gt 0 ] || { echo "no compiler with a sanitizer here"; exit 77; }
