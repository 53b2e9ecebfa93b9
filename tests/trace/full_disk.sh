#!/usr/bin/env bash
# A full disk gives one message and exit code 1, and no partial file is left: full_disk.sh BUILD
#
# Exit code 77: no small disk can be mounted here.
set -euo pipefail
build=$(realpath "$1")
if [ -z "${HAK_SMALL_DISK:-}" ]; then
    unshare --map-root-user --mount true 2>/dev/null || { echo "skipped: no mounts here"; exit 77; }
    HAK_SMALL_DISK=1 exec unshare --map-root-user --mount bash "$0" "$build"
fi

work=$(mktemp -d)
trap 'cd /; umount "$work/small" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/small"
mount -t tmpfs -o size=1m none "$work/small" || { echo "skipped: no mounts here"; exit 77; }
cd "$work/small"
hakmem=$build/hakmem

# line, command …: it exits with 1 and prints the line last.
fails() {
    local line=$1 status=0
    shift
    "$@" >"$work/output" 2>"$work/errors" || status=$?
    if [ $status -ne 1 ] || ! tail -n 1 "$work/errors" | grep -qF "hakmem: $line"; then
        echo "$*: exit code $status, and not '$line' but:" >&2
        cat "$work/errors" >&2
        exit 1
    fi
}

fails "no space left for trace.hkt; the trace is complete up to there" \
    "$hakmem" record -- "$build/tests/trace_calls" 2 200000 1
"$hakmem" trace info trace.hkt >"$work/info"
grep -q 'where the disk was full' "$work/info"
mv trace.hkt "$work/trace.hkt"
fails "cannot write events.parquet: the disk is full" "$hakmem" trace export --parquet events.parquet "$work/trace.hkt"
TMPDIR=$PWD fails "cannot write the plan of the replay to $PWD: No space left on device" \
    "$hakmem" replay "$work/trace.hkt" -n 1
[ -z "$(ls)" ] || { echo "left behind: $(ls)" >&2; exit 1; }

dd if=/dev/zero of=filled bs=4096 2>/dev/null || true
# The result is kept in another folder, which the message names.
keeps() {
    fails "cannot write result.json: No space left on device (os error 28); it is kept in $work/hakmem-kept-" "$@"
    grep -q '"format"' "$work"/hakmem-kept-*
    rm "$work"/hakmem-kept-*
}
export TMPDIR=$work
keeps "$hakmem" replay "$work/trace.hkt" -n 1 -a glibc --export result.json
grep -q '^glibc' "$work/output" # the table is printed nevertheless
keeps "$hakmem" compare -n 1 -a glibc --export result.json -- true
grep -q '^glibc' "$work/output"
keeps "$hakmem" bench --quick -w tiny-16 -n 1 -a glibc --export result.json
[ "$(ls)" = filled ] || { echo "left behind: $(ls)" >&2; exit 1; }
echo "six commands, one line each"
