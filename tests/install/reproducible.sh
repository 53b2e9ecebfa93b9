#!/usr/bin/env bash
# Two builds in different folders, at different times, make the same library and archive, bit for bit.
# Usage: reproducible.sh <source folder> <C compiler>
set -euo pipefail
source=$1
compiler=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/hakmem_reproducible.XXXXXX")
trap 'rm -rf "$work"' EXIT

build() {
    mkdir -p "$work/$1"
    cp -r "$source/CMakeLists.txt" "$source/CMakePresets.json" "$source/cmake" "$source/src" "$source/include" "$work/$1/"
    cmake -S "$work/$1" -B "$work/$1/build" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
        -DHAKMEM_TESTS=OFF -DHAKMEM_BENCH=OFF -DHAKMEM_CLI=OFF >"$work/log" 2>&1 &&
        cmake --build "$work/$1/build" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    (cd "$work/$1/build" && sha256sum libhakmem.so libhakmem.a)
}

build here >"$work/first"
sleep 1.1 # a time in whole seconds would differ
build there/further/down >"$work/second"
if ! cmp -s "$work/first" "$work/second"; then
    echo "broken: two builds differ:" >&2
    diff "$work/first" "$work/second" >&2 || true
    exit 1
fi
cat "$work/first"
