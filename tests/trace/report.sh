#!/usr/bin/env bash
# A report of results, a replay and a trace, opened in a browser: report.sh BUILD
set -euo pipefail
build=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$build/hakmem" record --stacks -o calls.hkt -- "$build/tests/trace_calls" 3 20000 1 2>/dev/null || true
"$build/hakmem" replay calls.hkt -n 3 --export replay.json >/dev/null
result=$(find "$root/bench/results" -name '*-full.json' | sort | tail -n 1)
"$build/hakmem" report "$result" replay.json calls.hkt --html report.html
# Files in a folder are found; those that are not ours are skipped.
echo '{"something": "else"}' >other.json
"$build/hakmem" report . --html folder.html
grep -q '"kind":"replay"' folder.html && grep -q '"kind":"trace"' folder.html
if "$build/hakmem" report other.json --html x.html 2>line; then
    echo "a file that is no result was taken" >&2
    exit 1
fi
grep -q 'other.json is neither a result nor a trace' line
node "$build/report/test/browser.mjs" report.html "$build/report/pictures"
