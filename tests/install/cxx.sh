#!/usr/bin/env bash
# The installed header for C++ compiles without a warning in each standard that it supports, with each compiler here, also
# without exceptions and run-time types; and its functions do what it says, with the archive and the shared library.
#
#   tests/install/cxx.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: cxx.sh BUILD_FOLDER}
clang=$("$here/../../tools/setup" --print-clang)
compilers=()
for name in g++ "${clang/clang/clang++}"; do
    command -v "$name" >/dev/null && compilers+=("$name")
done
[ ${#compilers[@]} -gt 0 ] || { echo "no C++ compiler" >&2; exit 77; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root/stage cmake --install "$build" >/dev/null
header=$(find "$root/stage" -name hakmem.hpp)
archive=$(find "$root/stage" -name libhakmem.a)
flags=(-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror
    -I"${header%/hakmem/hakmem.hpp}")

for compiler in "${compilers[@]}"; do
    # The error says in the header's own words what it needs.
    ! "$compiler" -std=c++14 "${flags[@]}" -fsyntax-only "$here/heaps.cpp" 2>"$root/refused"
    grep -q 'hakmem.hpp needs C++17' "$root/refused"
    for standard in 17 20 23; do
        "$compiler" -std="c++$standard" "${flags[@]}" -c "$here/heaps.cpp" -o "$root/heaps.o"
        "$compiler" "$root/heaps.o" -o "$root/linked" "$archive" -pthread
        "$compiler" "$root/heaps.o" -o "$root/shared" -L"${archive%/*}" -lhakmem -Wl,-rpath,"${archive%/*}" -pthread
        "$root/shared"
        for variable in HAKMEM_CHECK=0 HAKMEM_CHECK=1 HAKMEM_MODE=secure; do
            env "$variable" "$root/linked" || { echo "$compiler, C++$standard, $variable" >&2; exit 1; }
        done
    done
    "$compiler" -std=c++17 "${flags[@]}" -fno-exceptions -fno-rtti -fsyntax-only -x c++ "$header"
done
