#!/usr/bin/env bash
# bench/scale/run measures, continues after it was stopped, and refuses a library that is no allocator. The figures
# are not judged.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "scale: $1" >&2
    exit 1
}

quick=(bench/scale/run --quick --only half-mib,at-work --export "$work/quick.json")
"${quick[@]}" --peers hakmem,glibc >/dev/null 2>&1 || fail "it has failed"
for operation in half-mib-pair threads-at-work; do
    [ "$(grep -c "\"$operation\"" "$work/quick.json")" = 4 ] || fail "not each of 4 points has $operation"
    grep -q '<polyline' "build/scale/pictures/scale-$operation.svg" || fail "no plot of $operation"
done

# After it was stopped behind its first points, it measures only the others when it is called again.
full=(bench/scale/run --runs 1 --only half-mib --peers hakmem,glibc --export "$work/full.json")
"${full[@]}" >/dev/null 2>&1 || fail "it has failed at all points"
cp "$work/full.json" "$work/whole.json"
sed -i -e '/"finished"/d' -e '/"x": 30000/d' "$work/full.json"
python3 - "$work/full.json" <<'END' # the last sample has no comma behind it
import re, sys
text = open(sys.argv[1]).read()
open(sys.argv[1], "w").write(re.sub(r",(\s*[\]}])", r"\1", text))
END
kept=$(grep -c '"x": 3,' "$work/full.json")
before=$(grep '"x": 3,' "$work/full.json" | head -n 1 | tr -d ' ,')
"${full[@]}" >/dev/null 2>&1 || fail "it has failed when it went on"
after=$(grep '"x": 3,' "$work/full.json" | head -n 1 | tr -d ' ,')
[ "$kept" = 2 ] && [ "$before" = "$after" ] || fail "it has measured again what it had"
[ "$(grep -c '"x": 30000' "$work/full.json")" = 2 ] || fail "it has not gone on"

if "${quick[@]}" --peers none="$(ldconfig -p | sed -n 's/.*libm\.so\.6.* => //p' | head -n 1)" >/dev/null 2>"$work/said"; then
    fail "it has measured a library that is no allocator"
fi
grep -q 'got its memory from' "$work/said" || fail "it does not say whose malloc it was: $(cat "$work/said")"
