# Tries, as root in a system, to get at what is not the system's; one line for each: what, and how it ended.
# Arguments: files of haptera on this machine, as `file PATH`; doors, as `door URL`.
use strict;
use warnings;
use Fcntl qw(:flock :mode);
use POSIX qw(:errno_h);
use Socket;

sub told { my ($what, $is_done) = @_; print "$what: ", ($is_done ? 'DONE' : 'no'), "\n" }
sub ran { system("@_ >/tmp/said 2>&1") == 0 }

my (@files, @doors);
while (my ($sort, $value) = splice @ARGV, 0, 2) {
    push @{$sort eq 'file' ? \@files : \@doors}, $value;
}

# Files: by their names, and by way of whatever a process of this system has open.
told('find a file', grep { -e } @files);
my @ways = map { glob "/proc/[0-9]*/$_" } 'root', 'cwd', 'fd/*';
told('find a file by way of a process', grep { my $way = $_; -d $way && grep { -e "$way$_" || -e "$way/../../..$_" } @files } @ways);
told('write the kernel\'s settings', grep { open my $file, '>', $_ } '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/kernel/uevent_helper');
sub is_read { open my $file, '<', $_[0] or return 0; return sysread $file, my $got, 1 }
told('read the kernel\'s memory', grep { is_read($_) } '/proc/kcore', '/proc/keys');

# Processes: of this system alone.
told('see other processes', grep { open my $file, '<', $_; my $line = <$file> // ''; $line !~ m{intruder\.pl|^/run/haptera/init\0} && $line =~ /haptera|runc/ } glob '/proc/[0-9]*/cmdline');
told('see what others are told', grep { open my $file, '<', $_; my $line = <$file> // ''; $line =~ /HAPTERA_LAB|HAPTERA_TOKEN/ } glob '/proc/[0-9]*/environ');

# Mounts and devices, the second time as root of a user namespace of its own.
mkdir '/tmp/place';
for my $with ('', 'unshare --user --map-root-user --mount ') {
    my $as = $with ? ' in a user namespace' : '';
    told("mount $_$as", ran("${with}mount -t $_ $_ /tmp/place")) for qw(proc sysfs cgroup cgroup2 devtmpfs);
}
told('mount a folder elsewhere', ran('mount --bind / /tmp/place'));
told('make a read-only folder writable', ran('mount -o remount,bind,rw /run/haptera/jobs'));
told('enter another namespace', ran('nsenter --target 1 --user --mount true'));
open my $partitions, '<', '/proc/partitions' or die;
my @devices = map { /^\s*(\d+)\s+(\d+)\s/ ? "b $1 $2" : () } <$partitions>;
my ($opened, %stopped) = (0);
for my $device (@devices, 'c 1 1', 'c 1 11', 'c 10 237', 'c 10 232', 'c 10 229') {
    for my $folder ('/tmp', '/dev', '/dev/shm', '/run') {
        unlink "$folder/device";
        ran("mknod $folder/device $device") or next;
        if (open my $file, '<', "$folder/device") { $opened++ } else { $stopped{"$folder: $!"} = 1 }
        unlink "$folder/device";
    }
}
told('open a device', $opened);
print "a device is stopped in $_\n" for sort keys %stopped;

# Sockets: the kernel names those of the whole node, for the network is the node's.
open my $sockets, '<', '/proc/net/unix' or die;
my @sockets = map { /(\S*haptera\S*)$/ ? $1 : () } <$sockets>;
told('read the names of sockets', scalar @sockets);
my $reached = 0;
for my $path (@sockets) {
    socket(my $end, PF_UNIX, SOCK_STREAM, 0) or die;
    my $name = $path =~ s/^@/\0/r;
    $reached++ if length $name < 108 && connect $end, pack_sockaddr_un($name);
}
told('call a socket', $reached);
for my $door (@doors) {
    my $status = `curl --silent --insecure --max-time 10 --output /tmp/said --write-out '%{http_code}' $door`;
    print "ask at a door: $status\n";
}

# The gate: the one thing that answers.
my @inside = sort map { glob "$_/*" } '/run/haptera', '/run/haptera/jobs', '/run/haptera/jobs/open';
print "of haptera: @inside\n";
told('change the gate', (open my $made, '>', '/run/haptera/jobs/open/made') || unlink $ENV{HAPTERA_JOBS});
open my $gate, '<', $ENV{HAPTERA_JOBS} or die;
told('enter by the gate', flock $gate, LOCK_SH | LOCK_NB);
