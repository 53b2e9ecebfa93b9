#!/usr/bin/env bash
# chromium without a window, with its sandboxes: a page's script builds the same content.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
browser=$(command -v chromium-headless-shell || command -v chromium || true)
[ -n "$browser" ] || { echo "no chromium is installed"; exit 77; }

cat >"$work/page.html" <<'HTML'
<!doctype html><title>t</title><ul id="list"></ul><script>
const list = document.getElementById("list");
for (let i = 0; i < 3000; i++) {
    const item = document.createElement("li");
    item.textContent = (i * 7919 % 10007) + "x".repeat(i % 40);
    list.appendChild(item);
}
document.title = [...document.querySelectorAll("li")].map(i => i.textContent.length).reduce((a, b) => a + b);
</script>
HTML
chmod -R a+rX "$work"
# Its sandboxes do not work for the superuser.
as=()
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null || { echo "no setpriv to give up the superuser's rights"; exit 77; }
    [ -r "$library" ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$library" ||
        { echo "the library cannot be read without the superuser's rights"; exit 77; }
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
show() {
    local home
    home=$(mktemp -d "$work/home.XXXXXX")
    chmod 777 "$home"
    "${as[@]}" env HOME="$home" "$@" timeout 60 "$browser" --headless --disable-gpu --user-data-dir="$home/data" \
        --dump-dom "file://$work/page.html" 2>"$work/errors"
}
if ! show >"$work/page.without"; then
    echo "chromium does not work here without the library: $(tail -1 "$work/errors")"
    exit 77
fi
show LD_PRELOAD="$library" >"$work/page.with" || {
    echo "broken: chromium ends with an error: $(tail -1 "$work/errors")" >&2
    exit 1
}
same page "$work/page.without" "$work/page.with"
