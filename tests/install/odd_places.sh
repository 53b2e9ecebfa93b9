#!/usr/bin/env bash
# If something is missing that most programs have, the library works, and the command line says in one line what it lacks:
# odd_places.sh BUILD
set -euo pipefail
build=$(realpath "$1")
library=$build/libhakmem.so
unshare=(unshare --mount)
[ "$(id -u)" -eq 0 ] || unshare+=(--map-root-user)
"${unshare[@]}" true 2>/dev/null || { echo "no name spaces of mounts here" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect WHAT STATUS LINE COMMAND…: it exits with that status, and its output, stdout and stderr, is one line that contains LINE
expect() {
    local what=$1 wanted=$2 line=$3 status=0 said
    shift 3
    said=$("$@" 2>&1) || status=$?
    if [ $status -ne "$wanted" ] || [ "$(wc -l <<<"$said")" -ne 1 ] || [[ $said != *"$line"* ]]; then
        printf '%s: exit code %d, and it said:\n%s\n' "$what" $status "$said" >&2
        failed=1
    fi
}

without_proc() {
    "${unshare[@]}" sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"
}

# All writable places are on read-only file systems.
read_only() {
    "${unshare[@]}" sh -c 'for place in /tmp /dev/shm; do
            mount --bind $place $place && mount -o remount,ro,bind $place || exit
        done
        exec "$@"' sh "$@"
}

old_kernel() {
    python3 "$(dirname "$0")/old_kernel.py" "$@"
}

python='import threading
threads = [threading.Thread(target=lambda: [bytearray(n) for n in range(1000)]) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]; print("done")'
for mode in balanced secure; do
    with=(env "LD_PRELOAD=$library" "HAKMEM_MODE=$mode" python3 -c "$python")
    expect "no /proc, mode $mode" 0 done without_proc "${with[@]}"
    expect "read only, mode $mode" 0 done read_only "${with[@]}"
    expect "an old kernel, mode $mode" 0 done old_kernel "${with[@]}"
done
expect "an empty environment" 0 done env -i "LD_PRELOAD=$library" /bin/echo done

if [ -x "$build/hakmem" ]; then
    hakmem=$build/hakmem
    expect "run with an empty environment" 0 done env -i "$hakmem" run -- /bin/echo done
    expect "run, read only" 0 done read_only sh -c "'$hakmem' run -- /bin/echo done 2>/dev/null"
    expect "compare, read only" 1 "; TMPDIR names another folder" read_only "$hakmem" compare -n 1 -- /bin/true
    expect "run without /proc" 1 "Is /proc mounted?" without_proc "$hakmem" run -- /bin/echo done
    expect "run, an old kernel" 0 done old_kernel "$hakmem" run -- /bin/echo done
    expect "record, an old kernel" 1 "hakmem record needs Linux 3.17" old_kernel "$hakmem" record -o "$work/trace" -- /bin/true
    expect "stats without /proc" 1 "mount -t proc proc /proc" without_proc "$hakmem" stats 1
    # A library for another machine, beside a copy of the command: bytes 18 and 19 name the machine.
    cp "$hakmem" "$work/hakmem"
    cp -L "$library" "$work/libhakmem.so"
    printf '\xf3\0' | dd of="$work/libhakmem.so" bs=1 seek=18 conv=notrunc status=none
    expect "a library for another machine" 2 "is for another kind of machine" "$work/hakmem" run -- /bin/echo done
    expect "the same, preloaded by hand" 0 done sh -c "LD_PRELOAD='$work/libhakmem.so' /bin/echo done 2>/dev/null"
fi
exit $failed
