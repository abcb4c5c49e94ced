# Read by scripts that make a Debian which QEMU boots: vmlinuz, initrd.img and disk.img in $folder. $root is its tree meanwhile.
# They need root, and a mount namespace of their own, which takes debootstrap's mounts away with it however they end.
root=$folder/root

# bootstrap RELEASE PACKAGES
bootstrap() {
  # What this host's apt reaches, so can debootstrap.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $1" 'Component: main' 2>/dev/null | head -n 1)
  debootstrap --arch=amd64 --variant=minbase --include="linux-image-amd64,initramfs-tools,kmod,udev,iproute2,e2fsprogs,xfsprogs,$2" \
    "$1" "$root" ${mirror:+"$mirror"}
  install -m 755 "$machine/agent.pl" "$root/sbin/trivet-agent"
  echo node > "$root/etc/hostname"
}

# to_disk SIZE
to_disk() {
  # Only what leads to the root disk: a large archive takes an emulated processor seconds to unpack.
  printf 'virtio_pci\nvirtio_blk\next4\n' >> "$root/etc/initramfs-tools/modules"
  printf 'MODULES=list\nCOMPRESS=gzip\nBUSYBOX=n\n' > "$root/etc/initramfs-tools/conf.d/trivet"
  chroot "$root" update-initramfs -u -k all
  cp "$root"/boot/vmlinuz-* "$folder/vmlinuz"
  cp "$root"/boot/initrd.img-* "$folder/initrd.img"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/boot/*
  mke2fs -q -t ext4 -d "$root" "$folder/disk.img" "$1"
  rm -rf "$root"
}
