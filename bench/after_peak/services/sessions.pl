# A service that keeps sessions, hashes of strings and lists: sessions.pl SOCKET.
# fill N: N sessions are made and kept; keep N: one in N stays, at random; clear: none stays.
use strict;
use warnings;
use IO::Socket::UNIX;

my %sessions;

sub session {
    my ($number) = @_;
    my @visits = map { "/page/" . ($number * $_ % 9973) } 1 .. $number % 30;
    return { name => "user $number", note => 'x' x (20 + $number * 104729 % 600), visits => \@visits };
}

sub obey {
    my ($command, $count) = @_;
    if ($command eq 'fill') {
        $sessions{$_} = session($_) for 1 .. $count;
    } elsif ($command eq 'keep') {
        # Primes that turn numbers into seemingly random ones.
        delete @sessions{ grep { $_ * 611953 % 1000003 % $count } keys %sessions };
    } elsif ($command eq 'clear') {
        %sessions = ();
    } elsif ($command ne 'end') {
        return 'unknown';
    }
    return 'done';
}

my $listener = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die "$ARGV[0]: $!";
my $command = '';
while ($command ne 'end') {
    my $link = $listener->accept or die "accept: $!";
    ($command, my @numbers) = split ' ', <$link>;
    print $link obey($command, @numbers), "\n";
    close $link;
}
