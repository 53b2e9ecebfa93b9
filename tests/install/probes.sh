#!/usr/bin/env bash
# A program with probes of its own can be linked with the archive, by each linker here, and tracers find the probes of both: all
# notes name the same base, the section that holds it.
#
#   tests/install/probes.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=${1:?usage: probes.sh SOURCE_FOLDER BUILD_FOLDER}
build=${2:?usage: probes.sh SOURCE_FOLDER BUILD_FOLDER}
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.c" <<'program'
#include <hakmem/hakmem.h>
#include <stdlib.h>

#include "base/probe.h"

int main(void)
{
    void *volatile block = malloc(10);
    HAK_PROBE1("program", "allocated", 10);
    const bool ours = hak_owns(block);
    free(block);
    return !ours;
}
program
"$compiler" -O2 -c "$work/program.c" -o "$work/program.o" -I"$source/include" -I"$source/src"

expect_one_base() {
    local notes section
    notes=$(readelf -nW "$work/program")
    section=$(readelf -SW "$work/program" | awk '/ \.stapsdt\.base /{ sub(/.*PROGBITS */, ""); print $1 }')
    for provider in program hakmem; do
        [[ $notes == *"Provider: $provider"* ]] || { echo "$1: no probe of $provider" >&2; exit 1; }
    done
    [ "$(grep -o 'Base: [0-9a-fx]*' <<<"$notes" | sort -u)" = "Base: 0x$section" ] ||
        { echo "$1: the notes' bases are not the section's address, $section" >&2; exit 1; }
}

for linker in bfd gold lld mold; do
    command -v "ld.$linker" >/dev/null || continue
    for kind in "" -static; do
        "$compiler" -fuse-ld="$linker" $kind "$work/program.o" "$build/libhakmem.a" -pthread -o "$work/program"
        "$work/program" || { echo "ld.$linker $kind: malloc is not hakmem's" >&2; exit 1; }
        expect_one_base "ld.$linker $kind"
        tried=1
    done
done
[ -n "${tried:-}" ] || { echo "no linker" >&2; exit 77; }
