# real.sh -- what the scripts in tests/real share. Sourced, with the script's arguments.
#
# Each runs a program that people use, without the library and with it, and
# compares its output. Usage: <script>.sh [path of libhakmem.so]; without an
# argument the path is in HAKMEM_LIB. Exit: 0 the same, 1 not, 77 no such program
# here, 2 usage.
# shellcheck shell=bash
set -euo pipefail

library=$(realpath -e "${1:-${HAKMEM_LIB:-/no/library/given}}" 2>/dev/null) || {
    echo "usage: $0 <path of libhakmem.so>" >&2
    exit 2
}
work=$(mktemp -d "${TMPDIR:-/tmp}/hakmem_real.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C TZ=UTC
unset LD_PRELOAD

need() {
    local program
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "$program is not installed"
            exit 77
        fi
    done
}

under() {
    env LD_PRELOAD="$library" "$@"
}

# The loader says which malloc a program's calls go to; ask the loader, and trust nothing else.
prove() {
    rm -f "$work"/bindings.*
    env LD_PRELOAD="$library" LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$work/bindings" \
        "$@" </dev/null >/dev/null 2>&1 || true
    local name
    for name in malloc free realloc; do
        if ! grep -qs "to $library \[0\]: normal symbol \`$name'" "$work"/bindings.*; then
            echo "broken: $1 does not get $name from $library" >&2
            exit 1
        fi
    done
    rm -f "$work"/bindings.*
}

# same <what> <file without> <file with>
same() {
    if [ ! -s "$2" ]; then
        echo "broken: $1 gave nothing without the library: the test itself is wrong" >&2
        exit 1
    fi
    if ! cmp -s "$2" "$3"; then
        echo "broken: $1 differs under the library:" >&2
        diff "$2" "$3" 2>&1 | head -5 | cut -c1-200 >&2
        exit 1
    fi
}

# both <name> <command ...>: run it without and with the library; same output and exit code.
both() {
    local name=$1
    shift
    local without=0 with=0
    "$@" >"$work/$name.without" 2>&1 || without=$?
    under "$@" >"$work/$name.with" 2>&1 || with=$?
    if [ $without != $with ]; then
        echo "broken: $name: exit code $without without the library, $with with it" >&2
        tail -2 "$work/$name.with" >&2
        exit 1
    fi
    same "$name" "$work/$name.without" "$work/$name.with"
}
