#!/usr/bin/env bash
# sqlite3, which handles NULL from malloc: whichever of its allocations is refused, it
# answers correctly or says that memory is exhausted, and the same each time.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need sqlite3
prove sqlite3 -version

question="create table t(a, b); insert into t values (1, 'x'), (2, 'y'); select sum(a), max(b) from t;"

# With -init it does not look up its user's home folder: glibc 2.36's getpwuid does not handle NULL.
# ask <number>: its answer, and which allocation was refused.
ask() {
    local status=0
    env LD_PRELOAD="$library" HAKMEM_FAIL_AT="$1" HAKMEM_TRACE_FAILURES=1 \
        sqlite3 -batch -init /dev/null :memory: "$question" >"$work/answer" 2>"$work/errors" || status=$?
    echo "exit code $status" >>"$work/answer"
    grep '^hakmem: refused .*: Injected$' "$work/errors" | cut -d, -f1 >"$work/refused" || true
    grep -v '^hakmem: refused .*: Injected$' "$work/errors" >>"$work/answer" || true
}

broken() {
    echo "broken: with allocation $1 refused: $2" >&2
    cat "$work/answer" "$work/errors" >&2
    exit 1
}

number=1
short=0
while true; do
    ask "$number"
    if ! [ -s "$work/refused" ]; then
        break # there are no more allocations
    fi
    [ "$(wc -l <"$work/refused")" -eq 1 ] || broken "$number" "not one refusal"
    if grep -qi 'out of memory\|cannot open\|exit code [17]$' "$work/answer"; then
        short=$((short + 1))
    else
        printf '3|y\nexit code 0\n' | cmp -s - "$work/answer" || broken "$number" "another answer"
    fi
    if [ $((number % 10)) -eq 0 ]; then
        cat "$work/answer" "$work/refused" >"$work/first"
        ask "$number"
        cat "$work/answer" "$work/refused" | cmp -s - "$work/first" || broken "$number" "not the same twice"
    fi
    number=$((number + 1 + number / 50))
done
[ "$number" -gt 200 ] || broken "$number" "so few allocations?"
[ "$short" -gt 20 ] || broken "$number" "nothing was short"
echo "$short of the sweep's refusals were noticed; the last allocation is before number $number"
