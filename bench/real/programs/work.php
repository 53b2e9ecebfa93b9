<?php
// Arrays, strings and objects as a page makes them. Argument: how many pages.
final class Item
{
    public function __construct(public string $name, public int $price, public array $tags) {}
}

$state = 13;
function below(int $limit): int
{
    global $state;
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    return ($state >> 8) % $limit;
}

$total = 0;
$cache = [];
for ($page = 0; $page < (int) $argv[1]; $page++) {
    $items = [];
    for ($number = 0; $number < 800; $number++) {
        $tags = [];
        for ($tag = below(6); $tag >= 0; $tag--) {
            $tags['t' . below(50)] = str_repeat('x', below(40));
        }
        $items[] = new Item('item ' . below(900), below(10000), $tags);
    }
    usort($items, fn ($one, $other) => [$one->price, $one->name] <=> [$other->price, $other->name]);
    $rows = array_map(fn ($item) => sprintf('<li class="%s">%s: %d</li>',
        implode(' ', array_keys($item->tags)), htmlspecialchars($item->name), $item->price), $items);
    $text = '<ul>' . implode("\n", $rows) . '</ul>';
    $words = array_count_values(preg_split('/\W+/', $text));
    ksort($words);
    $cache[below(100)] = [$text, json_decode(json_encode($items), true)];
    $total += crc32($text) + count($words);
}
echo $total, ' ', count($cache), "\n";
