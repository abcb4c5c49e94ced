#!/bin/sh
# Runs a Docker engine in the foreground whose mounts, processes and, unless it shares it, network end with it.
#   engine.sh FOLDER own|shared: images are in FOLDER/data, its socket is FOLDER/docker.sock. One engine at a time has a folder.
# `own`: a network with nothing in it but what the engine makes. `shared`: that of this machine, with nothing made in it.
set -eu
case $2 in
  own) net=--net flags= ;;
  shared) net= flags='--iptables=false --ip6tables=false --ip-forward=false --ip-masq=false' ;;
esac
# A shell that waits collects whoever loses its parent. What was killed left its socket and its pid.
# shellcheck disable=SC2016
inside='set -eu
  mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run
  [ "$2" = shared ] || ip link set lo up
  folder=$1 && shift 2 && rm -f "$folder/docker.pid" "$folder/docker.sock"
  dockerd --data-root "$folder/data" --exec-root /run/docker --pidfile "$folder/docker.pid" --host "unix://$folder/docker.sock" \
    --bridge none --cgroup-parent trivet-tests "$@" &
  trap "kill $!" TERM
  while kill -0 $! 2>/dev/null; do wait $! || :; done'
# shellcheck disable=SC2086
exec flock --no-fork "$1/lock" unshare --mount --pid --fork --kill-child $net sh -c "$inside" sh "$1" "$2" $flags
