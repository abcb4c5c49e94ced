/**
 * What a host takes for the identity of a disk (invariant I1).
 *
 * tgt makes two NAA designators in page 0x83: a local one of 8 bytes from (tid, lun), and an extended one of 16 bytes
 * from the unit's SCSI id, whose last 32 characters it reads as hex digits, anything else as 0, with 6 in front. Linux,
 * udev and multipath take the longer one, so that is the serial number. By default the SCSI id holds (tid, lun) as well;
 * ours follows from the volume's uuid, so that a volume keeps its identity whatever its tid, and no two are alike. The
 * company id in it is zero: no array of any vendor can have the same.
 */
import { createHash } from 'node:crypto';
import type { UnitIdentity } from '#backends/exporter';

/** Of the SCSI id, which is also the T10 designator in page 0x83, whatever vendor the unit names. */
const VENDOR = 'TRIVET';
const VENDOR_BYTES = 8;
/** tgt keeps 36 characters of SCSI id and of serial number. */
const ID_CHARACTERS = 36;
const ID_DIGITS = ID_CHARACTERS - VENDOR_BYTES;
/** The vendor's last four letters fall into the digits; three of ours complete the company id. */
const COMPANY = '000';

export function scsiIdOf(volumeId: string): string {
  const digits = createHash('sha256').update(`trivet volume ${volumeId}`).digest('hex');
  return VENDOR.padEnd(VENDOR_BYTES) + COMPANY + digits.slice(0, ID_DIGITS - COMPANY.length);
}

/** The extended NAA that tgt makes of a SCSI id: 32 hex digits, lower case. */
export function serialNumberOf(scsiId: string): string {
  const digits = [...scsiId].map(letter => (/[0-9a-f]/i.test(letter) ? letter.toLowerCase() : '0')).join('');
  return `6${digits.padStart(32, '0').slice(-31)}`;
}

/**
 * What `update` gives a new unit. tgt right-aligns page 0x80 in 36 characters; HPE's driver reads the first 32 of them, and
 * looks for the serial number of page 0x83 there: so that one is filled up with blanks.
 */
export const identityOf = (volumeId: string, { vendor, product, unitSerial }: UnitIdentity): [string, string][] => [
  ['vendor_id', vendor],
  ['product_id', product],
  ['scsi_id', scsiIdOf(volumeId)],
  [
    'scsi_sn',
    unitSerial === 'uuid' ? volumeId.replaceAll('-', '') : serialNumberOf(scsiIdOf(volumeId)).padEnd(ID_CHARACTERS),
  ],
];

/** The extended NAA in page 0x83 as a host reads it (SPC-3, 7.6.3); undefined when there is none. */
export function serialNumberIn(page: Buffer): string | undefined {
  for (let at = 4; at + 4 <= page.length; ) {
    const length = page.readUInt8(at + 3);
    const value = page.subarray(at + 4, at + 4 + length);
    const isNaa = (page.readUInt8(at + 1) & 0xf) === 3;
    if (isNaa && length === 16) return value.toString('hex');
    at += 4 + length;
  }
  return undefined;
}
