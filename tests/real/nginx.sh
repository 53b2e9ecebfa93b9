#!/usr/bin/env bash
# nginx: two workers serve files, compressed and proxied to themselves, are replaced by a reload, and shut down in order; in
# mode secure too.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need nginx curl
prove nginx -V

seq 20000 >"$work/text"
temporary=$(for kind in client_body proxy fastcgi uwsgi scgi; do
    echo "${kind}_temp_path $work/$kind;"
done)
user=$([ "$(id -u)" = 0 ] && echo "user root;" || true)
cat >"$work/settings" <<CONF
daemon off; worker_processes 2; pid $work/pid; error_log $work/errors notice; $user
events { worker_connections 64; }
http {
    access_log off; gzip on; gzip_types *; $temporary
    server {
        listen unix:$work/socket;
        location / { root $work; }
        location /again/ { proxy_pass http://unix:$work/socket:/; }
    }
}
CONF

ask() {
    curl -sS --compressed --unix-socket "$work/socket" "$@"
}

until_true() {
    local what=$1
    shift
    for _ in $(seq 200); do
        if "$@" 2>/dev/null; then
            return
        fi
        sleep 0.1
    done
    echo "broken: $what: $(tail -1 "$work/errors")" >&2
    exit 1
}

answers() {
    ask -o /dev/null http://host/text
}

has_reloaded() {
    grep -q 'gracefully shutting down' "$work/errors" && answers
}

trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

# serve <output> <variable=value …>: start a server with that environment and ask it.
serve() {
    local output=$1 code=0
    shift
    rm -f "$work/socket" "$work/errors"
    env "$@" nginx -p "$work" -c "$work/settings" 2>/dev/null &
    server=$!
    until_true "the server does not answer" answers
    for _ in $(seq 40); do
        ask http://host/text http://host/again/text | md5sum
    done >"$output"
    kill -HUP "$server"
    until_true "the server does not load its settings again" has_reloaded
    ask http://host/again/text | md5sum >>"$output"
    kill -QUIT "$server"
    wait "$server" || code=$?
    if [ $code != 0 ] || grep -q 'exited on signal' "$work/errors"; then
        echo "broken: the server ended with $code: $(grep -m1 signal "$work/errors")" >&2
        exit 1
    fi
}

serve "$work/without" HAKMEM_MODE=
serve "$work/with" LD_PRELOAD="$library"
same "nginx" "$work/without" "$work/with"
serve "$work/secure" LD_PRELOAD="$library" HAKMEM_MODE=secure
same "nginx in mode secure" "$work/without" "$work/secure"
