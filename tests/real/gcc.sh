#!/usr/bin/env bash
# gcc on a large generated file: the compiler, the assembler and the linker all
# run under the library, and their output is the same to the byte.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need gcc
prove "$(gcc -print-prog-name=cc1)" --version
prove "$(command -v "$(gcc -print-prog-name=as)")" --version

{
    echo '#include <stdio.h>'
    for ((i = 0; i < 100; i++)); do
        echo "struct s$i { int a[$((i % 7 + 1))]; struct s$i *next; double d; };"
        echo "static double f$i(struct s$i *s, int n) {"
        echo "    double sum = $i;"
        echo "    for (int i = 0; i < n; i++) {"
        echo "        switch (i % 9) {"
        for ((j = 0; j < 9; j++)); do
            echo "        case $j: sum += s->a[i % $((i % 7 + 1))] * (i + $j) + s->d / ($j + 1.5); break;"
        done
        echo "        }"
        echo "        if (s->next && sum > $((i * 3))) s = s->next;"
        echo "    }"
        echo "    return sum;"
        echo "}"
    done
    echo 'int main(void) { double t = 0;'
    for ((i = 0; i < 100; i++)); do
        echo "    { struct s$i s = {{$i}, 0, $i.5}; t += f$i(&s, $((i + 10))); }"
    done
    echo '    printf("%.3f\n", t); return 0; }'
} >"$work/large.c"
cd "$work"
for how in without with; do
    run=env
    [ $how = with ] && run=under
    $run gcc -O2 -g -c large.c -o large.o
    mv large.o "$how.o"
    $run gcc "$how.o" -o "$how.program" -Wl,--build-id=none
    "./$how.program" >"$how.out"
done
same "the object file" without.o with.o
same "the program's output" without.out with.out
