/**
 * What the node part of HPE's CSI driver asks of a volume, and the settings that it gives a node: facts of
 * hpe-storage/common-host-libs at 55e77af (2026-07), in data of our own.
 */

/** linux/iscsi.go, targetVendorPatterns: of what discovery answers, nothing else is ever logged into. */
const TARGET_VENDORS = ['com.nimblestorage', 'com.3pardata', 'org.truenas.ctl', 'org.freenas.ctl', 'com.hpe'];
const DISCOVERED = new RegExp(`^(.*):(\\d*),(\\d*) (iqn.*(?:${TARGET_VENDORS.join('|').replaceAll('.', '\\.')}):.*)$`);

export interface Discovered {
  address: string;
  port: string;
  target: string;
}

/** One line of `iscsiadm -m discovery`; undefined: the driver passes it over. */
export function discovered(line: string): Discovered | undefined {
  const [, address, port, , target] = DISCOVERED.exec(line) ?? [];
  return address === undefined || port === undefined || target === undefined ? undefined : { address, port, target };
}

/** tunelinux/config/multipath.conf.upstream: put into a node that has no multipath.conf; everything else is blacklisted. */
const DISKS: readonly { vendor: string; product: string; settings: Readonly<Record<string, string>> }[] = [
  {
    vendor: 'Nimble',
    product: 'Server',
    settings: {
      hardware_handler: '"1 alua"',
      path_checker: 'tur',
      rr_weight: 'uniform',
      rr_min_io_rq: '1',
      dev_loss_tmo: 'infinity',
      fast_io_fail_tmo: '5',
      no_path_retry: '30',
      path_selector: '"service-time 0"',
      path_grouping_policy: 'group_by_prio',
      prio: 'alua',
      failback: 'immediate',
    },
  },
  { vendor: '3PARdata', product: 'VV', settings: {} },
  ...['TrueNAS', 'FreeNAS'].map(vendor => ({
    vendor,
    product: 'iSCSI Disk',
    settings: {
      rr_weight: 'priorities',
      uid_attribute: 'ID_SERIAL',
      path_grouping_policy: 'group_by_prio',
      path_selector: '"queue-length 0"',
      ...(vendor === 'FreeNAS' ? { hardware_handler: '"1 alua"' } : {}),
    },
  })),
];

const section = (name: string, lines: readonly string[]): string => `${name} {\n${lines.join('\n')}\n}`;
const device = (vendor: string, product: string, settings: Readonly<Record<string, string>> = {}): string =>
  section('device', [
    `vendor "${vendor}"`,
    `product "${product}"`,
    ...Object.entries(settings).map(([name, value]) => `${name} ${value}`),
  ]);

export const MULTIPATH_CONF = [
  section('defaults', ['user_friendly_names yes', 'find_multipaths no', 'uxsock_timeout 300000']),
  section('blacklist', [
    'devnode "^(ram|raw|loop|fd|md|dm-|sr|scd|st)[0-9]*"',
    'devnode "^hd[a-z]"',
    device('.*', '.*'),
  ]),
  section('blacklist_exceptions', [
    'property "(ID_WWN|SCSI_IDENT_.*|ID_SERIAL)"',
    ...DISKS.map(({ vendor, product }) => device(vendor, product)),
  ]),
  section(
    'devices',
    DISKS.map(({ vendor, product, settings }) => device(vendor, product, settings)),
  ),
].join('\n');

/** tunelinux/config/config.json, which ConfigureIscsi writes into iscsid.conf. */
export const ISCSID_SETTINGS: Readonly<Record<string, string>> = {
  'node.startup': 'manual',
  'node.session.timeo.replacement_timeout': '10',
  'node.conn[0].timeo.login_timeout': '15',
  'node.conn[0].timeo.noop_out_timeout': '10',
  'node.session.cmds_max': '512',
  'node.session.queue_depth': '256',
  'node.session.nr_sessions': '1',
};
