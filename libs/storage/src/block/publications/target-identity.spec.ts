import { expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { newTargetIdentity } from '#storage/block/publications/target-identity';

const VOLUME = '0190aaaa-bbbb-7ccc-8ddd-000000000001';

/**
 * What HPE's driver takes from `iscsiadm -m discovery` (hpe-storage/csi-driver, common-host-libs/linux/iscsi.go: targetVendorPatterns
 * and iscsiadmPattern, by release). A target in no such line is never logged into.
 */
const TAKEN: Readonly<Record<string, string>> = {
  '1.4 to 2.2': 'com.nimblestorage|com.3pardata|org.truenas.ctl',
  '2.3 to 2.5.0': 'com.nimblestorage|com.3pardata|org.truenas.ctl|org.freenas.ctl',
  '2.5.2 to 3.2': 'com.nimblestorage|com.3pardata|org.truenas.ctl|org.freenas.ctl|com.hpe',
};

const { name } = newTargetIdentity(VOLUME, { vendor: 'A', product: 'B' });

it.each(Object.entries(TAKEN))('the driver %s finds a target by its name', (_, vendors) => {
  const line = new RegExp(`^(.*):(\\d*),(\\d*) (?<target>iqn.*(${vendors}):.*)$`, 'm');
  const discovered = (target: string) => line.exec(`192.0.2.10:3260,1 ${target}\n`)?.groups?.target;
  expect(discovered(name)).toBe(name);
  expect(discovered(`iqn.2026-01.dev.trivet:${VOLUME}`)).toBeUndefined();
});

it('is a name of RFC 3720, of ours, and of this volume', () => {
  expect(name).toMatch(/^iqn\.2026-01\.dev\.trivet:com\.hpe:[a-z0-9:.-]+$/);
  expect(name.endsWith(`:${VOLUME}`)).toBe(true);
  expect(name.length).toBeLessThanOrEqual(223);
});

/**
 * What the driver's template of multipath.conf lets through (hpe-storage/csi-driver, common-host-libs/tunelinux/config/multipath.conf.upstream, the
 * same in 2.4 to 3.2); all other disks are blacklisted there, and the driver takes only disks under multipath. Regular expressions, as
 * multipath matches them, on what INQUIRY says without the blanks at its end.
 */
const EXCEPTIONS = [
  { vendor: /Nimble/, product: /Server/ },
  { vendor: /3PARdata/, product: /VV/ },
  { vendor: /TrueNAS/, product: /iSCSI Disk/ },
  { vendor: /FreeNAS/, product: /iSCSI Disk/ },
];

it('is a disk by default that a node with nothing but the driver takes', () => {
  const takes = (text: string | undefined) => {
    const given = text === undefined ? {} : { TRIVET_SCSI_IDENTITY: text };
    const identity = newTargetIdentity(VOLUME, loadConfig([], given).TRIVET_SCSI_IDENTITY);
    return EXCEPTIONS.some(({ vendor, product }) => vendor.test(identity.vendor) && product.test(identity.product));
  };
  expect(takes(undefined)).toBe(true);
  expect(takes('TrueNAS/iSCSI Disk')).toBe(true);
  expect(takes('TRIVET/VOLUME')).toBe(false);
});
