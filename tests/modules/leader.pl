#!/usr/bin/perl
# Writes down each frame of its replica's socket, and acts once each time that it comes to lead.
use strict;
use warnings;
use IO::Handle;
use Socket;

socket(my $door, AF_UNIX, SOCK_STREAM, 0) or die "no socket: $!\n";
connect($door, pack_sockaddr_un('leader.sock')) or die "leader.sock: $!\n";
$door->autoflush(1);
open(my $said, '>>', 'said') or die "said: $!\n";
$said->autoflush(1);
my $id = 0;
while (my $line = <$door>) {
    print {$said} $line;
    if ($line =~ /"op":"leads"/) {
        $id++;
        print {$door} qq({"op": "act", "id": $id}\n);
    }
    # Here it would act, under the epoch that stands in the line, which it sends along.
    print {$door} qq({"op": "done", "id": $id}\n) if $line =~ /"op":"acting"/;
}
