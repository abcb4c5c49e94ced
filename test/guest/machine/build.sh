#!/bin/sh
# Makes the guest of the tests: build.sh FOLDER. Leaves vmlinuz, initrd.img and disk.img there. Needs root, and a mount
# namespace of its own, which takes debootstrap's mounts away with it however this ends.
set -eu
folder=$1
here=$(dirname "$0")
release=bookworm
packages=linux-image-amd64,initramfs-tools,kmod,udev,open-iscsi,multipath-tools,sg3-utils,iproute2,e2fsprogs,xfsprogs

# What this host's apt reaches, so can debootstrap.
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" 'Component: main' 2>/dev/null | head -n 1)
root=$folder/root
debootstrap --arch=amd64 --variant=minbase --include="$packages" "$release" "$root" ${mirror:+"$mirror"}

install -m 755 "$here/init.sh" "$root/sbin/trivet-init"
echo node > "$root/etc/hostname"
# Only what leads to the root disk: a large archive takes an emulated processor seconds to unpack.
printf 'virtio_pci\nvirtio_blk\next4\n' >> "$root/etc/initramfs-tools/modules"
printf 'MODULES=list\nCOMPRESS=gzip\nBUSYBOX=n\n' > "$root/etc/initramfs-tools/conf.d/trivet"
chroot "$root" update-initramfs -u -k all
cp "$root"/boot/vmlinuz-* "$folder/vmlinuz"
cp "$root"/boot/initrd.img-* "$folder/initrd.img"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/boot/*
mke2fs -q -t ext4 -d "$root" "$folder/disk.img" 2G
rm -rf "$root"
