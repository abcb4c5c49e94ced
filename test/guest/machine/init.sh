#!/bin/bash
# The guest's first process: no service starts here, the test starts them.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
for file_system in proc:/proc sysfs:/sys devtmpfs:/dev tmpfs:/run; do
  mountpoint -q "${file_system#*:}" || mount -t "${file_system%:*}" none "${file_system#*:}"
done
mkdir -p /dev/pts /run/lock
hostname node
modprobe -a virtio_console virtio_net iscsi_tcp dm_multipath
/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add --subsystem-match=block --subsystem-match=virtio-ports --subsystem-match=misc
udevadm settle
exec /sbin/trivet-agent
