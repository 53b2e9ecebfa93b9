<?php
// The page that php-fpm runs: strings of 600 to 5,000 bytes.
$number = (int) $_SERVER["QUERY_STRING"];
$made = [];
for ($n = 0; $n < 2000; $n++) {
    $made[] = str_repeat(chr(65 + $n % 26), 600 + ($n * $number) % 4400);
}
echo md5(implode($made));
