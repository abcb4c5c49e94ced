import { expect, it } from 'vitest';
import { newTargetIdentity } from '#storage/publications/target-identity';

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
