#!/usr/bin/env bash
# What `make install` installs can be used: by CMake and by pkg-config, shared and as an archive,
# and from another place than the one it was installed for.
#
#   tests/install/consumers.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: consumers.sh BUILD_FOLDER}
command -v pkg-config >/dev/null || exit 77

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root/stage cmake --install "$build" >/dev/null
prefix=$(dirname "$(find "$root/stage" -type d -name include)")
libraries=$(dirname "$(find "$prefix" -name libhakmem.a)")

expect_soname() {
    [[ $(readelf -d "$libraries/libhakmem.so") =~ SONAME[^$'\n']*\[libhakmem\.so\.1\] ]] ||
        { echo "the soname is not libhakmem.so.1" >&2; exit 1; }
}

# The C API's pages: one for each function, even if it is only a line that leads to its group's.
expect_api_pages() {
    local name page=$prefix/share/man/man3
    for name in hakmem $(grep -oE '\bhak_[a-z_]+\(' "$prefix/include/hakmem/hakmem.h" | tr -d '('); do
        [ -s "$page/$name.3" ] || { echo "man 3 $name is not installed" >&2; exit 1; }
        read -r request target <"$page/$name.3"
        [ "$request" != .so ] || grep -q "\b$name\b" "$prefix/share/man/$target" ||
            { echo "man 3 $name leads to $target, which does not name it" >&2; exit 1; }
    done
}

# The command line's pages and completions; without cargo there are none.
expect_pages() {
    [ -x "$prefix/bin/hakmem" ] || return 0
    local file
    for file in man/man1/hakmem.1 man/man1/hakmem-compare.1 bash-completion/completions/hakmem \
        zsh/site-functions/_hakmem fish/vendor_completions.d/hakmem.fish; do
        [ -s "$prefix/share/$file" ] || { echo "share/$file is not installed" >&2; exit 1; }
    done
}

# All files below docs/ or contrib/ that an installed text names are installed too.
expect_documents() {
    local name named
    named=$({ cat "$prefix"/include/hakmem/*.h "$prefix"/share/doc/hakmem/docs/options.md
        find "$prefix/share/man" -type f -exec cat {} + 2>/dev/null
        "$prefix/bin/hakmem" options --explain 2>/dev/null || true; } |
        grep -oE '\b(docs|contrib)/[a-z/-]+\.[a-z]+' | sort -u)
    [ -n "$named" ] || { echo "no document is named" >&2; exit 1; }
    for name in $named; do
        [ -s "$prefix/share/doc/hakmem/$name" ] ||
            { echo "$name is named, and not installed" >&2; exit 1; }
    done
    "$here/../../tools/check_links.py" "$prefix/share/doc/hakmem" >"$root/log" || { cat "$root/log" >&2; exit 1; }
}

# The Makefile passes a prefix on as it is; cmake and ninja only say what they were called with.
expect_prefix() {
    local tool
    mkdir "$root/said"
    for tool in cmake ninja; do
        printf '#!/bin/sh\nprintf "%%s\\n" "$@" >&2\n' >"$root/said/$tool"
        chmod +x "$root/said/$tool"
    done
    PATH=$root/said:$PATH make -s -C "$here/../.." configure PREFIX="/a prefix" 2>"$root/log"
    grep -qxF -- "-DCMAKE_INSTALL_PREFIX=/a prefix" "$root/log" || { cat "$root/log" >&2; exit 1; }
}

by_cmake() {
    cmake -S "$here" -B "$root/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$root/log" 2>&1 &&
        cmake --build "$root/cmake" >>"$root/log" 2>&1 || { cat "$root/log" >&2; exit 1; }
    "$root/cmake/consumer_shared" libhakmem.so.1
    "$root/cmake/consumer_static" consumer_static
}

by_pkg_config() {
    export PKG_CONFIG_PATH=$libraries/pkgconfig
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs hakmem)"
    cc -D_GNU_SOURCE "$here/consumer.c" -o "$root/by_name" "${flags[@]}"
    LD_LIBRARY_PATH=$libraries "$root/by_name" libhakmem.so.1
    cc -D_GNU_SOURCE "$here/consumer.c" -o "$root/by_path" "${flags[@]}" \
        "$(pkg-config --variable=rpath hakmem)"
    "$root/by_path" libhakmem.so.1
    [[ $(pkg-config --variable=archive hakmem) != *//* ]] ||
        { echo "the archive's path has two slashes" >&2; exit 1; }

    read -ra flags <<<"$(pkg-config --cflags hakmem)"
    cc -D_GNU_SOURCE "${flags[@]}" "$here/consumer.c" -o "$root/by_archive" \
        "$(pkg-config --variable=archive hakmem)" -pthread
    "$root/by_archive" by_archive
}

# A program that calls nothing of malloc's family itself, as where only its libraries do: with the flags of docs/install.md.
without_a_call() {
    local flags out
    printf '#include <stdio.h>\nint main(void) { return fopen("/dev/null", "r") == NULL; }\n' >"$root/silent.c"
    for flags in "-Wl,--as-needed -Wl,--no-as-needed -L$libraries -lhakmem -Wl,-rpath,$libraries" \
        "-Wl,-u,malloc $libraries/libhakmem.a -pthread"; do
        cc "$root/silent.c" -o "$root/silent" $flags
        out=$(HAKMEM_STATS=1 "$root/silent" 2>&1)
        [[ $out == *live_bytes* ]] || { echo "hakmem is not used, in spite of $flags" >&2; exit 1; }
    done
}

# In a plugin that contains the archive hak_malloc is hakmem's, and malloc and strdup are both the program's.
in_a_plugin() {
    cat >"$root/plugin.c" <<'plugin'
#include <hakmem/hakmem.h>
#include <stdlib.h>
#include <string.h>
int work(void)
{
    char *copy = strdup("copy"), *block = malloc(9), *own = hak_malloc(9);
    const int right = hak_owns(own) && !hak_owns(copy) && !hak_owns(block);
    free(copy);
    free(block);
    hak_free(own);
    return right;
}
plugin
    cat >"$root/host.c" <<'host'
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
    free(malloc(1));
    void *plugin = dlopen(arguments[count - 1], RTLD_NOW);
    int (*work)(void) = plugin == NULL ? NULL : (int (*)(void))dlsym(plugin, "work");
    return work == NULL || !work() || dlclose(plugin) != 0;
}
host
    cc -shared -fPIC "$root/plugin.c" -o "$root/plugin.so" -I"$prefix/include" "$libraries/libhakmem.a" -pthread
    cc "$root/host.c" -o "$root/host"
    "$root/host" "$root/plugin.so" || { echo "the archive in a plugin does not work" >&2; exit 1; }
}

expect_soname
expect_api_pages
expect_pages
expect_documents
expect_prefix
by_cmake
by_pkg_config
without_a_call
in_a_plugin
