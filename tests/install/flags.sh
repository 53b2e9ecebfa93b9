#!/usr/bin/env bash
# Compiler flags that distributions and users put into CFLAGS, and what they or a project around hakmem may ask of CMake, make
# a library and an archive that can be linked. Link-time
# optimisation is one: the archive's single object hides names, which only works on machine code.
# Usage: flags.sh <source folder> <folder of the first build>
set -euo pipefail
source=$1
first=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/hakmem_flags.XXXXXX")
trap 'rm -rf "$work"' EXIT
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$first/CMakeCache.txt")
program=$source/tests/install/consumer.c

# build NAME FLAGS ARGUMENT...: with FLAGS as a packager gives them to the compiler and the linker
build() {
    local folder=$work/$1 flags=$2
    shift 2
    CFLAGS=$flags LDFLAGS=$flags cmake -S "$source" -B "$folder" -G Ninja "-DCMAKE_C_COMPILER=$compiler" \
        -DHAKMEM_TESTS=OFF -DHAKMEM_BENCH=OFF -DHAKMEM_CLI=OFF "$@" >"$work/log" 2>&1 &&
        cmake --build "$folder" >>"$work/log" 2>&1 || { tail -20 "$work/log" | cut -c 1-300 >&2; exit 1; }
}

# try NAME FLAGS: a program that is linked with those flags uses the archive, one without them the library
try() {
    local flags=(-D_GNU_SOURCE -rdynamic "-I$source/include")
    "$compiler" "${flags[@]}" $2 "$program" -o "$work/archived" "$work/$1/libhakmem.a" -pthread
    "$work/archived" archived
    "$compiler" "${flags[@]}" "$program" -o "$work/archived" "$work/$1/libhakmem.a" -pthread
    "$work/archived" archived
    "$compiler" "${flags[@]}" "$program" -o "$work/shared" -L"$work/$1" -lhakmem
    LD_LIBRARY_PATH=$work/$1 "$work/shared" libhakmem.so.1
}

link_time='-O2 -flto'
build flags "$link_time" -DCMAKE_BUILD_TYPE=None
try flags "$link_time"
build option -O2 -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_UNITY_BUILD=ON \
    "-DCMAKE_INSTALL_PREFIX=$work/usr" "-DCMAKE_INSTALL_LIBDIR=$work/usr/lib64"
try option "$link_time"

# pkg-config finds the headers and the library, though the one folder is relative to the prefix and the other absolute.
command -v pkg-config >/dev/null || exit 0
cmake --install "$work/option" >/dev/null
export PKG_CONFIG_PATH=$work/usr/lib64/pkgconfig
"$compiler" -D_GNU_SOURCE "$program" -o "$work/installed" $(pkg-config --cflags --libs hakmem) $(pkg-config --variable=rpath hakmem)
"$work/installed" libhakmem.so.1
