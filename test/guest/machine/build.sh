#!/bin/sh
# Makes the guest of the tests: build.sh FOLDER.
set -eu
folder=$1
machine=$(dirname "$0")
. "$machine/debian.sh"
bootstrap bookworm open-iscsi,multipath-tools,sg3-utils
install -m 755 "$machine/init.sh" "$root/sbin/trivet-init"
to_disk 2G
