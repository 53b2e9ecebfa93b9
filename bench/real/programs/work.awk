# Words and fields of text: counted, joined, replaced, sorted.
{
    for (field = 1; field <= NF; field++) {
        count[$field]++
        lines[$field] = lines[$field] " " FNR
    }
    shown = $0
    gsub(/[aeiou]+/, "(&)", shown)
    kept[FNR % 20000] = shown substr($0, 1 + FNR % 7)
    parts += split($0, words, /[ab]/)
}
END {
    order = asorti(count, names)
    for (place = 1; place <= order; place++) {
        long = lines[names[place]]
        print names[place], count[names[place]], length(long), toupper(substr(long, 1, 40))
    }
    for (row in kept) {
        sum += length(kept[row])
    }
    print parts, sum
}
