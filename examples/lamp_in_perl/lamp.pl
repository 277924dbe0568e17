#!/usr/bin/perl
# The power of nodes that are lamps, each a file that holds `on` or `off`: a module in plain Perl.
#
# It knows nothing of haptera but docs/reference/frames.md. The files lie in the folder that its
# setting `folder` names, or else in the one that it is given.
use strict;
use warnings;
use B ();
use Encode qw(decode encode FB_CROAK);
use Time::HiRes qw(clock_gettime);

use constant { BOOTTIME => 7, FRAME_BYTES_MAX => 1 << 20, DEPTH_MAX => 64 };

# What it declares: nodes of platform `lamp`, one look, two steps.
my @own = (module => 'lamp', kind => 'node', context => 'parent',
           requires => [{ name => 'platform', values => ['lamp'] }]);
my %manifest = (
    name => 'lamp', version => '1', context => 'parent',
    settings => [{ name => 'folder', type => 'text' }],
    looks => [{ @own, name => 'look', at => 'power', outcomes => ['off', 'on'], every_ms => 5000 }],
    steps => [map { step($_) } 'on', 'off'],
);
my %parts = (look => { look => \&look }, step => { switch_on => \&change_to, switch_off => \&change_to });

open(my $link, '+<&=', $ENV{HAPTERA_LINK}) or die "no link: $!\n";
binmode $link;

# First `begin`; then calls, one after the other, for each is quickly done.
my $begin = receive() // exit 0;
op($begin) eq 'begin' or die "it begins with ", op($begin), "\n";
my $folder = $begin->{settings}{folder} // $begin->{run_dir} // die "no folder\n";
send_frame(op => 'ready', module => 'lamp', version => '1', manifest => \%manifest);
while (defined(my $frame = receive())) {
    if    (op($frame) eq 'ping')   { send_frame(op => 'pong') }
    elsif (op($frame) eq 'call')   { call($frame) }
    elsif (op($frame) eq 'cancel') { }    # whatever was asked before is done
    else                           { die "there is no ", op($frame), "\n" }
}
exit 0;

sub step {
    my ($to) = @_;
    my $change = { variable => 'power', sources => ['*'], target => $to };
    return { @own, name => "switch_$to", changes => [$change], within_ms => 5000, late_ms => 1000 };
}

# One call: refused where there is no such part, or where it is too late to begin.
sub call {
    my ($call) = @_;
    my $id = number($call->{id});
    my $part = $parts{ text($call->{work}) }{ text($call->{part}) };
    my $now  = int(clock_gettime(BOOTTIME) * 1e9);
    my $late = defined $call->{deadline_ns} && $now >= $call->{deadline_ns};
    return refuse($id, "there is no such part")          unless $part;
    return refuse($id, "its deadline had passed before") if $late;
    my $lamp = "$folder/" . text($call->{entity}{name});
    my @said = eval { $part->($lamp, $call->{part}) };
    if ($@) { send_frame(op => 'failed', id => $id, text => words($@), refused => \0) }
    else    { send_frame(@said, id => $id, @said > 2 ? (at_ns => $now) : ()) }
}

sub refuse {
    my ($id, $why) = @_;
    send_frame(op => 'failed', id => $id, text => $why, refused => \1);
}

sub look {
    my ($lamp) = @_;
    return (op => 'answered', value => 'off') unless -e $lamp;
    open(my $file, '<', $lamp) or die "$lamp: $!\n";
    return (op => 'answered', value => (<$file> // '') eq 'on' ? 'on' : 'off');
}

sub change_to {
    my ($lamp, $part) = @_;
    open(my $file, '>', $lamp) or die "$lamp: $!\n";
    print {$file} $part eq 'switch_on' ? 'on' : 'off';
    close($file) or die "$lamp: $!\n";
    return (op => 'ended');
}

sub words {
    my ($error) = @_;
    chomp $error;
    return substr($error, 0, 120);
}

# What a key of a frame must hold. Whatever is not so ends the module: there is no half-broken link.
sub op     { my ($frame) = @_; return text($frame->{op}) }
sub text   { my ($value) = @_; return defined $value && !ref $value ? $value : die "a text is missing\n" }
sub number { my ($value) = @_; return text($value) =~ /\A\d+\z/ ? $value : die "a number is missing\n" }

# ---- Frames: four bytes of length, then a map in MessagePack.

sub receive {
    my $head = bytes(4) // return undef;
    my $size = unpack 'N', $head;
    die "a frame of $size bytes\n" if $size > FRAME_BYTES_MAX;
    my $data = bytes($size) // return undef;
    my $at = 0;
    my $frame = unpacked(\$data, \$at, 0);
    die "what came is no map\n" unless ref $frame eq 'HASH' && $at == $size;
    return $frame;
}

# So many bytes; undef where the link is closed.
sub bytes {
    my ($count) = @_;
    my $data = '';
    while (length $data < $count) {
        my $read = sysread($link, $data, $count - length $data, length $data);
        return undef unless $read;
    }
    return $data;
}

sub send_frame {
    my $data = packed({@_});
    $data = pack('N', length $data) . $data;
    while (length $data) {
        my $written = syswrite($link, $data) // exit 0;
        substr($data, 0, $written) = '';
    }
}

# ---- MessagePack: what frames hold of it; true and false are \1 and \0, as in other Perl modules.

sub packed {
    my ($value) = @_;
    return "\xc0" unless defined $value;
    return $$value ? "\xc3" : "\xc2" if ref $value eq 'SCALAR';
    return pack('CN', 0xdd, scalar @$value) . join('', map { packed($_) } @$value)
        if ref $value eq 'ARRAY';
    return pack('CN', 0xdf, scalar keys %$value)
        . join('', map { packed($_) . packed($value->{$_}) } sort keys %$value)
        if ref $value eq 'HASH';
    return pack('Cq>', 0xd3, $value) if B::svref_2object(\$value)->FLAGS & (B::SVf_IOK | B::SVf_NOK);
    my $text = encode('UTF-8', $value);
    return pack('CN', 0xdb, length $text) . $text;
}

sub unpacked {
    my ($data, $at, $depth) = @_;
    die "too deep\n" if $depth > DEPTH_MAX;
    my $first = ord taken($data, $at, 1);
    return $first       if $first < 0x80;
    return $first - 256 if $first >= 0xe0;
    return map_of($data, $at, $first & 15, $depth)  if $first < 0x90;
    return list_of($data, $at, $first & 15, $depth) if $first < 0xa0;
    return string($data, $at, $first & 31)          if $first < 0xc0;
    return undef if $first == 0xc0;
    return $first & 1 if $first == 0xc2 || $first == 0xc3;
    my %scalar = (0xca => 'f>', 0xcb => 'd>', 0xcc => 'C', 0xcd => 'n', 0xce => 'N', 0xcf => 'Q>',
                  0xd0 => 'c', 0xd1 => 's>', 0xd2 => 'l>', 0xd3 => 'q>');
    return sized($data, $at, $scalar{$first}) if $scalar{$first};
    my %size = (0xc4 => 'C', 0xc5 => 'n', 0xc6 => 'N', 0xd9 => 'C', 0xda => 'n', 0xdb => 'N',
                0xdc => 'n', 0xdd => 'N', 0xde => 'n', 0xdf => 'N');
    my $form = $size{$first} // die sprintf("0x%02x is not in frames\n", $first);
    my $count = sized($data, $at, $form);
    return map_of($data, $at, $count, $depth)  if $first >= 0xde;
    return list_of($data, $at, $count, $depth) if $first >= 0xdc;
    return $first < 0xc8 ? taken($data, $at, $count) : string($data, $at, $count);
}

sub map_of {
    my ($data, $at, $count, $depth) = @_;
    my %map;
    for (1 .. $count) {
        my $key = text(unpacked($data, $at, $depth + 1));
        $map{$key} = unpacked($data, $at, $depth + 1);
    }
    return \%map;
}

sub list_of {
    my ($data, $at, $count, $depth) = @_;
    return [map { unpacked($data, $at, $depth + 1) } 1 .. $count];
}

sub string { return decode('UTF-8', taken(@_), FB_CROAK) }

sub sized {
    my ($data, $at, $form) = @_;
    return unpack $form, taken($data, $at, length pack($form, 0));
}

sub taken {
    my ($data, $at, $count) = @_;
    die "a frame that ends too early\n" if $$at + $count > length $$data;
    $$at += $count;
    return substr($$data, $$at - $count, $count);
}
