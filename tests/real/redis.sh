#!/usr/bin/env bash
# redis-server: the same data in, the same digest out, also after it has forked
# to save, and loaded the data again; then redis-benchmark with 20 clients.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need redis-server redis-cli redis-benchmark
prove redis-server --version

socket=$work/redis.sock
ask() {
    redis-cli -s "$socket" "$@"
}

start() {
    mkdir -p "$work/data"
    rm -rf "$work"/data/*
    (cd "$work/data" && exec env "$@" redis-server --port 0 --unixsocket "$socket" --save "" \
        --enable-debug-command yes --daemonize no --loglevel warning --active-expire-effort 1) \
        >"$work/log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        [ "$(ask ping 2>/dev/null)" = PONG ] && return
        sleep 0.1
    done
    echo "broken: the server does not answer: $(tail -1 "$work/log")" >&2
    exit 1
}

stop() {
    ask shutdown nosave >/dev/null 2>&1 || true
    local code=0
    wait "$server" || code=$?
    if [ $code != 0 ]; then
        echo "broken: the server ended with $code: $(tail -1 "$work/log")" >&2
        exit 1
    fi
}
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

for ((i = 0; i < 20000; i++)); do
    echo "SET key:$i $(printf '%*s' $((i % 300)) '')$i"
    ((i % 2)) && echo "RPUSH list:$((i % 50)) element-$i"
    ((i % 3)) && echo "HSET hash:$((i % 200)) field-$i value-$i"
    ((i % 4)) && echo "ZADD zset:$((i % 20)) $((i * 7919 % 10007)) member-$i"
    ((i % 5)) && echo "DEL key:$((i / 2))"
    ((i % 7)) && echo "APPEND text:$((i % 10)) more-of-$i-"
done >"$work/commands" || true

for how in without with; do
    if [ $how = with ]; then
        start "LD_PRELOAD=$library"
        grep -q "$library" "/proc/$server/maps"
    else
        start
    fi
    ask --pipe <"$work/commands" >"$work/$how.out" 2>&1
    ask debug digest >>"$work/$how.out"
    ask bgsave >/dev/null
    ask debug reload >>"$work/$how.out" # saves in the process, empties, loads
    ask debug digest >>"$work/$how.out"
    ask lrange list:7 0 20 >>"$work/$how.out"
    ask zrange zset:3 0 20 withscores >>"$work/$how.out"
    if [ $how = with ]; then
        redis-benchmark -s "$socket" -c 20 -n 20000 -P 4 -d 200 -r 5000 -q \
            -t set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100,mset >"$work/benchmark" 2>&1
        grep -q "requests per second" "$work/benchmark"
        ask flushall >/dev/null
        ask memory purge >/dev/null
        ask ping >/dev/null
    fi
    stop
done
sed -i '/^Last reply/d' "$work/without.out" "$work/with.out" # a random token of redis-cli's
same "the data in redis" "$work/without.out" "$work/with.out"
