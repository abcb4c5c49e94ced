#!/bin/bash
# Runs a single-node Ceph with radosgw in the foreground: makes it at the first start, starts it from its data later, and
# leaves the keys of an administrator for the Admin Ops API in RGW_KEYS. Ends when one of the daemons ends, or on SIGTERM.
set -euo pipefail
umask 077

data=${RGW_DATA:-/var/lib/rgw}
keys=${RGW_KEYS:-/run/rgw-keys}
keys_owner=${RGW_KEYS_OWNER:-10001:10001}
listen=${RGW_LISTEN:-0.0.0.0:7480}
mon_port=${RGW_MON_PORT:-3300}
gigabytes=${RGW_GIGABYTES:-50}
conf=$data/ceph.conf
export CEPH_CONF=$conf

log() { echo "start-rgw: $*" >&2; }
fail() { log "$*"; exit 1; }

# wait_for SECONDS WHAT COMMAND...: repeats the command until it succeeds.
wait_for() {
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@" > /dev/null 2>&1; do
    ((left-- > 0)) || fail "$what did not come up"
    sleep 0.2
  done
}

write_conf() {
  cat > "$conf" <<CONF
[global]
fsid = $(cat "$data/fsid")
mon host = [v2:127.0.0.1:$mon_port/0]
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
run dir = $data/run
admin socket = $data/run/\$cluster-\$name.asok
pid file = $data/run/\$name.pid
log file = /dev/null
log to stderr = true
err to stderr = true
crash dir = $data/crash
keyring = $data/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon max pg per osd = 1000
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
osd memory target = 939524096
[mon.a]
mon data = $data/mon
[osd.0]
osd data = $data/osd
keyring = $data/osd/keyring
osd objectstore = bluestore
bluestore block size = $((gigabytes * 1024 * 1024 * 1024))
bluestore block create = true
# A killed radosgw still counts as a watcher, and every change of metadata waits for its answer: 30 s by default.
osd client watch timeout = 6
[client.rgw.a]
keyring = $data/rgw/keyring
rgw data = $data/rgw
rgw frontends = beast endpoint=$listen tcp_nodelay=1
rgw enable apis = s3, admin
rgw thread pool size = 64
debug rgw = 0/5
rgw enable usage log = true
# Says that it still watches well within that time.
objecter tick interval = 1
CONF
}

make_mon() {
  local caps=(--cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' --cap mds 'allow *')
  ceph-authtool --create-keyring "$data/keyring" --gen-key -n client.admin "${caps[@]}" > /dev/null
  ceph-authtool --create-keyring "$data/mon.keyring" --gen-key -n mon. --cap mon 'allow *' > /dev/null
  ceph-authtool "$data/mon.keyring" --import-keyring "$data/keyring" > /dev/null
  monmaptool --create --fsid "$(cat "$data/fsid")" --addv a "[v2:127.0.0.1:$mon_port]" "$data/monmap" > /dev/null
  ceph-mon --mkfs -i a --monmap "$data/monmap" --keyring "$data/mon.keyring"
  rm "$data/mon.keyring"
}

# The osd's secret goes through files and pipes, never through an argument list.
make_osd() {
  local uuid
  uuid=$(cat /proc/sys/kernel/random/uuid)
  ceph-authtool --create-keyring "$data/osd/keyring" --gen-key -n osd.0 > /dev/null
  printf '{"cephx_secret": "%s"}' "$(ceph-authtool "$data/osd/keyring" -p -n osd.0)" | ceph osd new "$uuid" -i - > /dev/null
  ceph-osd -i 0 --mkfs --osd-uuid "$uuid"
  ceph auth get-or-create client.rgw.a mon 'allow rw' osd 'allow rwx' > "$data/rgw/keyring"
}

# radosgw chooses the keys itself and prints them as JSON, one member a line.
make_administrator() {
  local user
  user=$(radosgw-admin user info --uid=trivet-admin 2> /dev/null) \
    || user=$(radosgw-admin user create --uid=trivet-admin --display-name='Trivet administration' \
      --caps='users=*;buckets=*;metadata=*;usage=*')
  write_key access-key access_key "$user"
  write_key secret-key secret_key "$user"
}

write_key() {
  local value
  value=$(sed -n "s/^ *\"$2\": \"\(.*\)\",\{0,1\}\$/\1/p" <<< "$3" | head -n 1)
  [ -n "$value" ] || fail "radosgw-admin printed no $2"
  printf '%s\n' "${value//\\\//\/}" > "$keys/$1.new"
  chown "$keys_owner" "$keys/$1.new"
  chmod 0400 "$keys/$1.new"
  mv "$keys/$1.new" "$keys/$1"
}

osd_is_up() {
  ceph --connect-timeout 2 osd stat -f json | grep -q '"num_up_osds":1'
}

daemons=()
start() {
  "$@" &
  daemons+=($!)
}

# In the reverse order: radosgw lets its requests end while the osd is still there.
stop() {
  trap '' TERM INT
  rm -f "$data/run/ready"
  local i
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
    kill -TERM "${daemons[i]}" 2> /dev/null || true
    wait "${daemons[i]}" 2> /dev/null || true
  done
}

# A cluster whose making was interrupted never served anything, and is made anew.
mkdir -p "$data"
[ -e "$data/made" ] || find "$data" -mindepth 1 -delete
mkdir -p "$data"/{mon,osd,rgw,run,crash} "$keys"
[ -s "$data/fsid" ] || cat /proc/sys/kernel/random/uuid > "$data/fsid"
rm -f "$data"/run/*
chown "$keys_owner" "$keys"
chmod 0500 "$keys"
write_conf

trap 'stop; exit 0' TERM INT
trap 'stop' EXIT

[ -e "$data/made" ] || make_mon
start ceph-mon -f -i a
wait_for 60 'the mon' ceph --connect-timeout 2 mon stat
[ -e "$data/made" ] || make_osd
start ceph-osd -f -i 0
wait_for 120 'the osd' osd_is_up
start radosgw -f -n client.rgw.a
wait_for 180 'radosgw' curl --silent --fail --output /dev/null "http://127.0.0.1:${listen##*:}/"
make_administrator
touch "$data/made" "$data/run/ready"
log "S3 and the Admin Ops API are served on $listen; the administrator's keys are in $keys"

wait -n "${daemons[@]}" || true
fail 'a daemon has ended'
