import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { canonicalPortal } from '#backends/tgt/portals';
import { identityOf, scsiIdOf, serialNumberIn, serialNumberOf } from '#backends/tgt/unit-identity';

const VOLUME = '0190aaaa-bbbb-7ccc-8ddd-000000000001';

describe('the identity of a unit', () => {
  it('is the NAA that tgt makes of its SCSI id', () => {
    // Both read from page 0x83 of tgtd 1.0.85; the second is its default for target 6.
    expect(serialNumberOf('IET     0001234567890abcdef123456789')).toBe('60000001234567890abcdef123456789');
    expect(serialNumberOf('IET     00060001')).toBe('60000000000000000e00000000060001');
  });

  it('never changes for a volume: hosts know their disks by it', () => {
    expect(scsiIdOf(VOLUME)).toBe('TRIVET  000130769120dd8b2ff456100d40');
    expect(serialNumberOf(scsiIdOf(VOLUME))).toBe('6000000130769120dd8b2ff456100d40');
  });

  it('fits into what tgt keeps, without a vendor’s company id', () => {
    for (let count = 0; count < 100; count++) {
      const id = randomUUID();
      for (const [name, value] of identityOf(id, { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' })) {
        expect(value).not.toContain(',');
        expect(value.length, name).toBeLessThanOrEqual(36);
      }
      expect(scsiIdOf(id)).toHaveLength(36);
      expect(serialNumberOf(scsiIdOf(id))).toMatch(/^6000000[0-9a-f]{25}$/);
    }
  });

  it('is read from page 0x83', () => {
    const page =
      '0083004802010024545249564554202030303031333037363931323064643862326666343536313030643430' +
      '010300083000000700000001010300106000000130769120dd8b2ff456100d40';
    expect(serialNumberIn(Buffer.from(page, 'hex'))).toBe('6000000130769120dd8b2ff456100d40');
    expect(serialNumberIn(Buffer.from('00830000', 'hex'))).toBeUndefined();
  });
});

describe('a portal', () => {
  it('is spelled as tgtd does', () => {
    expect(canonicalPortal('127.0.0.1:3260')).toBe('127.0.0.1:3260');
    expect(canonicalPortal('[2001:DB8:0:0::1]:3260')).toBe('[2001:db8::1]:3260');
  });

  it.each(['localhost:3260', '127.0.0.1', '127.0.0.1:0', '127.0.0.1:70000', ':3260'])('is never %s', portal => {
    expect(() => canonicalPortal(portal)).toThrow(/expected address:port/);
  });
});
