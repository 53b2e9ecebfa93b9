#!/usr/bin/env bash
# perl: hashes, sorting, regular expressions, growing strings, recursion.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need perl
export PERL_HASH_SEED=0
prove perl -e 1

cat >"$work/program.pl" <<'PERL'
use strict; use warnings;
my (%count, @list, $text);
my $state = 12345;
sub number { $state = ($state * 1103515245 + 12345) % 2147483648; return $state; }
for my $i (1 .. 120000) {
    my $word = join '', map { chr(97 + (number() >> 16) % 26) } 1 .. 3 + $i % 3;
    $count{$word}++;
    push @list, { word => $word, at => $i, more => [1 .. $i % 5] };
    $text .= "$word ";
}
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
print "$_ $count{$_}\n" for @top;
my $matches = () = $text =~ /\b(\w)\w*\1\b/g;
print "$matches\n";
(my $other = $text) =~ s/([aeiou]+)/<\U$1>/g;
print length($other), " ", unpack('%32C*', $other), "\n";
@list = sort { $a->{word} cmp $b->{word} || $a->{at} <=> $b->{at} } @list;
print join(',', map { "$_->{word}:$_->{at}" } @list[0 .. 20]), "\n";
sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
print fib(20), "\n";
my @lines = split /(?<=e)/, $text;
print scalar(@lines), "\n";
delete @count{ (sort keys %count)[0 .. 3000] };
print scalar(keys %count), "\n";
my $pid = fork // die; if (!$pid) { my @x = map { "x" x $_ } 1 .. 2000; exit 7 } waitpid $pid, 0; print $? >> 8, "\n";
PERL
both program perl "$work/program.pl"
