#!/usr/bin/env bash
# A second build, of sources in another folder, outside them and at another time, makes the same library and archive as the first, bit for bit.
# Usage: reproducible.sh <source folder> <folder of the first build>
set -euo pipefail
source=$1
first=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/hakmem_reproducible.XXXXXX")
trap 'rm -rf "$work"' EXIT

# set_as NAME: with the value that it has in the first build
set_as() {
    echo "-D$1=$(sed -n "s/^$1:[A-Z]*=//p" "$first/CMakeCache.txt")"
}

sums() {
    (cd "$1" && sha256sum libhakmem.so libhakmem.a)
}

second=$work/there/further/down
mkdir -p "$second"
cp -r "$source/CMakeLists.txt" "$source/CMakePresets.json" "$source/cmake" "$source/src" "$source/include" "$second/"
cmake -S "$second" -B "$work/apart" -G Ninja "$(set_as CMAKE_C_COMPILER)" "$(set_as CMAKE_C_FLAGS)" \
    "$(set_as CMAKE_BUILD_TYPE)" "$(set_as HAKMEM_DEBUG)" -DHAKMEM_TESTS=OFF -DHAKMEM_BENCH=OFF -DHAKMEM_CLI=OFF >"$work/log" 2>&1 &&
    cmake --build "$work/apart" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
sums "$first" >"$work/first"
sums "$work/apart" >"$work/second"
if ! cmp -s "$work/first" "$work/second"; then
    echo "broken: two builds differ:" >&2
    diff "$work/first" "$work/second" >&2 || true
    exit 1
fi
cat "$work/first"
