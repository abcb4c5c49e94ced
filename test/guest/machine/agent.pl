#!/usr/bin/perl
# Runs the commands that come in on the virtio port, each line "ID SECONDS HEX", by bash, side by side, and answers "ID EXIT-CODE
# HEX-OF-STDOUT HEX-OF-STDERR". In perl, of which Debian has the base: each process costs an emulated processor a twentieth of a
# second, and a command of this has one.
use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock);
use POSIX ();

$ENV{PATH} = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
$ENV{HOME} = '/root';
$ENV{LC_ALL} = 'C.UTF-8';
# Collects the children by itself.
$SIG{CHLD} = 'IGNORE';
sysopen(my $port, '/dev/virtio-ports/trivet', O_RDWR) or die "the port: $!\n";

sub scratch {
    my ($name) = @_;
    sysopen(my $file, $name, O_RDWR | O_CREAT | O_TRUNC) or die "$name: $!\n";
    unlink $name;
    return $file;
}

sub read_hex {
    my ($file) = @_;
    sysseek($file, 0, 0);
    sysread($file, my $bytes, -s $file);
    return unpack('H*', $bytes // '');
}

sub answer {
    my ($line) = @_;
    sysopen(my $lock, '/run/trivet-port', O_RDWR | O_CREAT) or die "the lock: $!\n";
    flock($lock, LOCK_EX);
    for (my $sent = 0; $sent < length $line;) { $sent += syswrite($port, $line, length($line) - $sent, $sent) // die "the port: $!\n" }
}

sub run {
    my ($id, $seconds, $command) = @_;
    local $SIG{CHLD} = 'DEFAULT';
    my ($out, $err) = map { scratch("/run/command.$$.$_") } qw(out err);
    my $child = fork // die "fork: $!\n";
    if ($child == 0) {
        POSIX::setpgid(0, 0);
        open(STDIN, '<', '/dev/null');
        open(STDOUT, '>&', $out);
        open(STDERR, '>&', $err);
        { exec('bash', '-c', $command) }
        POSIX::_exit(127);
    }
    # As timeout does.
    my $late = 0;
    local $SIG{ALRM} = sub { kill($late++ ? 'KILL' : 'TERM', -$child); alarm 2 };
    alarm $seconds;
    1 until waitpid($child, 0) == $child;
    my $code = $late ? 124 : $? & 127 ? 128 + ($? & 127) : $? >> 8;
    alarm 0;
    answer("$id $code " . read_hex($out) . ' ' . read_hex($err) . "\n");
}

my $heard = '';
while (1) {
    # Nothing: nobody is at the other end yet.
    select(undef, undef, undef, 0.1) unless sysread($port, $heard, 65536, length $heard);
    while ($heard =~ s/^(\d+) (\d+) ([0-9a-f]*)\n//) {
        my ($id, $seconds, $command) = ($1, $2, pack('H*', $3));
        next if fork // die "fork: $!\n";
        run($id, $seconds, $command);
        POSIX::_exit(0);
    }
}
