#!/usr/bin/perl
# The init of both images: says over HTTP which image answers on which node, and starts jobs.
use strict;
use warnings;
use IO::Socket::INET;

$SIG{CHLD} = 'IGNORE';
$SIG{TERM} = sub { exit 0 };
open my $file, '<', '/etc/image' or die "no /etc/image: $!";
chomp(my $image = <$file>);
my $server = IO::Socket::INET->new(
    LocalAddr => $ENV{HAPTERA_ADDRESS}, LocalPort => 8090, Listen => 64, ReuseAddr => 1
) or die "cannot listen: $!";
while (1) {
    my $client = $server->accept or next;
    my $asked = <$client> // '';
    # A job holds the node's gate for as long as it lives: no flip comes while it runs.
    if ($asked =~ m{^POST /jobs/(\d+) } && !fork) {
        close $server;
        close $client;
        exec 'flock', '-s', '-n', $ENV{HAPTERA_JOBS}, 'sleep', $1 or exit 1;
    }
    print $client "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n$image on $ENV{HAPTERA_NODE}\n";
    close $client;
}
