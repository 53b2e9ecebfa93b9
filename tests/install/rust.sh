#!/usr/bin/env bash
# The Rust crate: with the library that was built before and with one that it builds itself; `hakmem verify`
# confirms that a program with it uses hakmem. A package of the crate has the C sources.
#
#   tests/install/rust.sh BUILD_FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?usage: rust.sh BUILD_FOLDER}")
unset HAKMEM_LIB_DIR
log=$(mktemp)
trap 'rm -f "$log"' EXIT

crate() {
    cargo "$@" --locked --quiet --manifest-path "$root/rust/Cargo.toml" \
        --target-dir "$build/cargo-rust" >"$log" 2>&1
}

crate test || { cat "$log" >&2; exit 1; }
HAKMEM_CHECK=1 crate test --test whole_program || { cat "$log" >&2; exit 1; }
crate build --example count_words || { cat "$log" >&2; exit 1; }
program=$build/cargo-rust/debug/examples/count_words
words=$(printf 'one two two\n' | "$program" 2>"$log")
[ "$words" = "$(printf '%6d two\n%6d one' 2 1)" ]
grep -q '"live_bytes":' "$log"
"$build/hakmem" verify "$program" >"$log"
grep -q 'uses hakmem, which is linked into it' "$log"

HAKMEM_LIB_DIR=$build crate build --example count_words || { cat "$log" >&2; exit 1; }
if HAKMEM_LIB_DIR=/nowhere crate build; then
    echo "a folder without the library was taken" >&2
    exit 1
fi
grep -q 'hakmem: HAKMEM_LIB_DIR=/nowhere has no libhakmem.a' "$log"

crate package --list --allow-dirty || { cat "$log" >&2; exit 1; }
for file in c/src/hakmem.c c/src/front/alloc.c c/include/hakmem/hakmem.h LICENSE; do
    grep -qx "$file" "$log"
done
