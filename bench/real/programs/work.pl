# Words, hashes of arrays, sorting, regular expressions and long strings. Usage: work.pl SIZE
use strict;
use warnings;

my $size = shift // 100000;
my $state = 12345;

sub next_number {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return $state >> 8;
}

my (%places, %pairs, @lines);
my $previous = "";
for my $number (1 .. $size) {
    my $word = join "", map { chr(97 + next_number() % 26) } 1 .. 2 + next_number() % 3;
    push @{ $places{$word} }, $number;
    $pairs{"$previous $word"}++;
    $previous = $word;
    push @lines, "$number: $word " . "x" x (next_number() % 60) if $number % 3 == 0;
}

my $text = join "\n", @lines;
my $replaced = 0;
for my $round (1 .. 3) {
    $replaced += ($text =~ s/(\d+): (\w+)/$2=$1/g) || 0;
    $replaced += ($text =~ s/(\w+)=(\d+)/$2: $1/g) || 0;
}

my @fields = map { [ split /[: ]+/ ] } split /\n/, $text;
@fields = sort { $a->[1] cmp $b->[1] || $a->[0] <=> $b->[0] } @fields;
my %records = map { $_->[0] => { word => $_->[1], tail => $_->[2] // "" } } @fields;

my $sum = 0;
for my $word (sort keys %places) {
    $sum = ($sum * 31 + @{ $places{$word} } * length $word) % 1000000007;
}
for my $key (sort { $a <=> $b } keys %records) {
    $sum = ($sum * 31 + length($records{$key}{word}) + length $records{$key}{tail}) % 1000000007;
}
my $top = join ",", (sort { $pairs{$b} <=> $pairs{$a} || $a cmp $b } keys %pairs)[0 .. 9];
print "$replaced $sum $top\n";
