/** Where a single-node cluster lives and listens. */
export interface CephPlace {
  fsid: string;
  /** Data of the daemons. */
  folder: string;
  /** Sockets: short, see Home.run. */
  run: string;
  log: string;
  monPort: number;
  monV1Port: number;
  rgwPort: number;
  /** memstore keeps everything in memory and is for tests. */
  store: 'bluestore' | 'memstore';
  osdBytes: number;
}

const GIB = 1024 ** 3;

/**
 * One mon, one osd, one radosgw; no mgr, which nothing here needs and which costs 300 MB. Verified with Ceph 16.2 of
 * Debian 12. Ports of the osd come from Ceph's own default range, where it looks for free ones itself.
 */
export function cephConfiguration(place: CephPlace): string {
  const { folder, run, log } = place;
  return `[global]
fsid = ${place.fsid}
mon host = ${monAddress(place)}
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
ms bind port min = 6800
ms bind port max = 7568
run dir = ${run}
admin socket = ${run}/$cluster-$name.asok
pid file = ${run}/$name.pid
log file = ${log}/$cluster-$name.log
log to stderr = false
crash dir = ${folder}/crash
keyring = ${folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon max pg per osd = 1000
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail warn = 2
mon data avail crit = 1
# Beside its log, the mon writes that of the cluster to /var/log/ceph, wherever the others are.
mon cluster log to file = false
# Every pool and every snapshot is a change of the map: with the defaults each waits for a second or two, for others that one monitor has
# nobody to tell of. With 50 ms a snapshot of an image took 105 ms, with 1 ms 55.
paxos propose interval = 0.001
paxos min wait = 0.001
osd memory target = ${place.store === 'memstore' ? GIB : 896 * 1024 * 1024}
[mon.a]
mon data = ${folder}/mon
keyring = ${folder}/mon/keyring
[osd.0]
osd data = ${folder}/osd
keyring = ${folder}/osd/keyring
osd objectstore = ${place.store}
bluestore block size = ${place.osdBytes}
bluestore block create = true
bluestore fsck on mount = false
# A killed radosgw still counts as a watcher, and every change of metadata waits for its answer: 30 s by default.
osd client watch timeout = 6
memstore device bytes = ${place.osdBytes}
[client.rgw.a]
keyring = ${folder}/rgw/keyring
rgw data = ${folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:${place.rgwPort} tcp_nodelay=1
rgw enable apis = s3, admin
rgw thread pool size = 64
rgw dns name = 127.0.0.1
rgw enable usage log = true
# Says that it still watches well within that time.
objecter tick interval = 1
`;
}

export const monAddress = (place: CephPlace): string =>
  `[v2:127.0.0.1:${place.monPort}/0,v1:127.0.0.1:${place.monV1Port}/0]`;

/** What radosgw would create one after the other at its start and at the first bucket and object. */
export const RGW_POOLS = [
  '.rgw.root',
  'default.rgw.log',
  'default.rgw.control',
  'default.rgw.meta',
  'default.rgw.buckets.index',
  'default.rgw.buckets.data',
  'default.rgw.buckets.non-ec',
] as const;
