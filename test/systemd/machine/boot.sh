#!/bin/sh
# The first process of a host in namespaces of its own, until systemd takes its place: boot.sh ROOT TREE POOL. TREE is its
# /opt/trivet, POOL the image of an XFS. Mounts and processes end with the namespaces.
set -eu
mount --make-rprivate /
cd "$1"
mount --bind . .
cd "$1"
mount --bind "$2" opt/trivet
mount -o loop "$3" srv/trivet
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm old
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . old
umount -l old
rmdir old
# As at a boot: services get their credentials by mounts that spread.
mount --make-rshared /
exec env -i container=trivet /lib/systemd/systemd --show-status=0
