#!/bin/bash
# The guest's first process: no service starts here, the test starts them. Runs the commands that come in on the virtio
# port, each line "ID SECONDS BASE64", and answers "ID EXIT-CODE BASE64-OF-STDOUT BASE64-OF-STDERR".
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

run() {
  local id=$1 seconds=$2 command=$3 folder code
  folder=$(mktemp -d /run/command.XXXXXX)
  base64 -d <<< "$command" > "$folder/command"
  timeout -k 2 "$seconds" bash "$folder/command" < /dev/null > "$folder/out" 2> "$folder/err" 3>&-
  code=$?
  exec 4> /run/lock/port
  flock 4
  echo "$id $code $(base64 -w 0 "$folder/out") $(base64 -w 0 "$folder/err")" >&3
  rm -rf "$folder"
}

exec 3<> /dev/virtio-ports/trivet
while true; do
  while read -r id seconds command <&3; do run "$id" "$seconds" "$command" & done
  # Nobody is at the other end yet.
  sleep 0.1
done
