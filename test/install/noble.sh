#!/bin/sh
# Makes a bare Ubuntu 24.04 in FOLDER by debootstrap. Debian 12 has neither its keys nor its recipe: the keys are those of Debian 13, and the
# recipe, which all releases of Ubuntu share, is named.
#   noble.sh FOLDER
set -eu
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$apt/sources.list"
: >"$apt/status"
apt() {
  apt-get -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
    -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@"
}
apt -o APT::Update::Error-Mode=any update
(cd "$apt" && apt download ubuntu-keyring ubuntu-archive-keyring && for package in *.deb; do dpkg-deb -x "$package" keys; done)
debootstrap --variant=minbase --include=ca-certificates --components=main,universe \
  --keyring="$apt/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" noble "$1" http://archive.ubuntu.com/ubuntu gutsy
