#!/usr/bin/env bash
# php: loads its extensions with RTLD_DEEPBIND; arrays, texts and JSON, with its own allocator and without.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need php
prove php --version

cat >"$work/work.php" <<'PHP'
<?php
$rows = [];
for ($i = 0; $i < 100000; $i++) {
    $rows["key$i"] = [$i, str_repeat("x", $i % 50), sqrt($i)];
}
ksort($rows);
$text = json_encode($rows);
echo md5($text), " ", count(json_decode($text, true)), " ";
echo preg_replace('/x+/', 'y', substr($text, 0, 2000)), "\n";
foreach (get_loaded_extensions() as $name) {
    echo $name, " ", count(get_extension_funcs($name) ?: []), "\n";
}
PHP
both own php "$work/work.php"
export USE_ZEND_ALLOC=0
both ours php "$work/work.php"
grep -q '^json ' "$work/ours.with"
