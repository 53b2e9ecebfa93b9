#!/usr/bin/env bash
# The command line looks into musl processes, preloaded and static; and says in one line why a musl program
# cannot be run under a library for glibc: musl_processes.sh BUILD, where BUILD/musl is the build of the preset musl
set -euo pipefail
build=$(realpath "$1")
include=$(dirname "$0")/../../include
library=$build/musl/libhakmem.so.1
command -v musl-gcc >/dev/null && [ -e "$library" ] || { echo "no build for musl" >&2; exit 77; }
work=$(mktemp -d)
running=()
trap '[ ${#running[@]} -eq 0 ] || kill "${running[@]}"; rm -rf "$work"' EXIT
cat >"$work/program.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    static char *volatile blocks[1000];
    for (int i = 0; i < 1000; i++) {
        blocks[i] = malloc(1000);
    }
    puts("ready");
    fflush(stdout);
    return (int)sleep(600);
}
EOF
musl-gcc -I"$include" -o "$work/preloaded" "$work/program.c"
musl-gcc -I"$include" -static -o "$work/static" "$work/program.c" "$build/musl/libhakmem.a"
failed=0

# says LINE COMMAND…: its output contains LINE
says() {
    local line=$1 said
    shift
    said=$("$@" 2>&1) || true
    if [[ $said != *"$line"* ]]; then
        printf "'%s' is not in what %s said:\n%s\n" "$line" "$*" "$said" >&2
        failed=1
    fi
}

for name in preloaded static; do
    preload=$library
    [ $name = preloaded ] || preload=
    LD_PRELOAD=$preload "$work/$name" >"$work/$name.out" &
    process=$!
    running+=($process)
    until grep -qs ready "$work/$name.out"; do sleep 0.05; done
    says "which is         hakmem" "$build/hakmem" verify $process
    says "hakmem 1." "$build/hakmem" stats $process
    says "live in" "$build/hakmem" map $process
    says "resident" "$build/hakmem" top -n 1 $process
done
says "is linked with another C library" "$build/hakmem" run -- "$work/preloaded"
says "is statically linked with hakmem inside" "$build/hakmem" run -- "$work/static"
exit $failed
