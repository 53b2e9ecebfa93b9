#!/usr/bin/env bash
# Programs that people use are recorded completely, and their traces replayed: real_programs.sh BUILD
set -euo pipefail
hakmem=$(realpath "$1/hakmem")
work=$(mktemp -d)
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

# name, least events, command …: the program's output must be the same as without the recorder.
check() {
    local name=$1 least=$2
    shift 2
    "$@" >"$name.plain" 2>/dev/null
    "$hakmem" record -o "$name.hkt" -- "$@" >"$name.recorded" 2>"$name.log"
    cmp "$name.plain" "$name.recorded"
    replayed "$name" "$least"
}

replayed() {
    local name=$1 least=$2 events
    events=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])' \
        < <("$hakmem" trace info --json "$name.hkt"))
    if [ "$events" -lt "$least" ]; then
        echo "$name: only $events events" >&2
        exit 1
    fi
    "$hakmem" replay "$name.hkt" -n 1 >"$name.table" # exits with 1 if an allocator is refused
    echo "$name: $events events"
}

python=$(python3 -c 'import sys; print(sys.executable)') # not a wrapper script
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
check python 100000 "$python" -c 'import json; print(len(json.dumps([{"a": i, "b": [str(i)] * 3} for i in range(9000)])))'
if command -v sqlite3 >/dev/null; then
    check sqlite 50000 sqlite3 :memory: "create table t(a, b); with recursive c(x) as (select 1 union all
        select x + 1 from c where x < 20000) insert into t select x, hex(x) from c; create index i on t(b);
        select count(*), sum(length(b)) from t where b > '3';"
fi
if command -v gcc >/dev/null; then
    echo '#include <stdio.h>
int main(void) { puts("x"); return 0; }' >program.c
    check gcc 5000 gcc -O2 -c -o /dev/null program.c
fi
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
    socket=$work/redis.sock
    "$hakmem" record -o redis.hkt -- redis-server --port 0 --unixsocket "$socket" --save '' \
        --appendonly no >redis.out 2>redis.log &
    server=$!
    for _ in $(seq 100); do
        [ -S "$socket" ] && break
        sleep 0.1
    done
    redis-benchmark -s "$socket" -q -n 20000 -t set,lpush -r 1000 >/dev/null
    redis-cli -s "$socket" shutdown nosave || true
    wait "$server" || true
    server=""
    replayed redis 10000
fi
