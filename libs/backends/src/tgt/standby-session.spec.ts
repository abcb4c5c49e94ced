import { describe, expect, it } from 'vitest';
import {
  decodeKeys,
  encodeKeys,
  flagsOf,
  IMMEDIATE,
  makeHeader,
  NO_TAG,
  Opcode,
  type Pdu,
  PduReader,
} from '#backends/tgt/iscsi-pdu';
import { StandbySession } from '#backends/tgt/standby-session';

const PORTAL = '192.0.2.12:3260';
const SERVED_AT = '192.0.2.11:3260';
const TARGETS = Array.from({ length: 40 }, (_, n) => `iqn.2026-01.dev.trivet:${n}`);
const TRANSIT = 0x80;
const OPERATIONAL = 1;
const FULL_FEATURE = 3;

const session = () => new StandbySession(PORTAL, { servedAt: async () => SERVED_AT, targetsOf: async () => TARGETS });

function request(opcode: number, flags: number, keys: Record<string, string>, transferTag = NO_TAG): Pdu {
  const data = encodeKeys(keys);
  const header = makeHeader(opcode, flags, 7, data.length);
  header.writeUInt32BE(transferTag, 20);
  return { header, data };
}

async function answer(to: StandbySession, pdu: Pdu): Promise<Pdu & { ends: boolean }> {
  const reply = await to.answer(pdu);
  const reader = new PduReader();
  reader.push(reply!.unit);
  return { ...reader.next()!, ends: reply!.ends };
}

const login = (stage: number, next: number, keys: Record<string, string>): Pdu =>
  request(Opcode.login | IMMEDIATE, TRANSIT | (stage << 2) | next, keys);
const discovery = { InitiatorName: 'iqn.2026-01.example:host', SessionType: 'Discovery' };
const statusOf = (pdu: Pdu): number => pdu.header.readUInt16BE(36);

describe('a standby session', () => {
  it('sends a normal session on, in the stage that it is in, by an address without a group', async () => {
    const asked = { InitiatorName: discovery.InitiatorName, TargetName: TARGETS[0]!, AuthMethod: 'CHAP' };
    const moved = await answer(session(), login(OPERATIONAL, FULL_FEATURE, asked));
    expect([statusOf(moved), flagsOf(moved), moved.ends]).toEqual([0x0101, OPERATIONAL << 2, true]);
    expect(decodeKeys(moved.data)).toEqual(new Map([['TargetAddress', SERVED_AT]]));
  });

  it('answers each key of a login that asks something', async () => {
    const asked = { ...discovery, HeaderDigest: 'CRC32C,None', MaxConnections: '1', 'X-ours': 'yes' };
    const { data } = await answer(session(), login(OPERATIONAL, FULL_FEATURE, asked));
    expect(Object.fromEntries(decodeKeys(data))).toMatchObject({
      HeaderDigest: 'None',
      MaxConnections: 'Irrelevant',
      'X-ours': 'NotUnderstood',
    });
  });

  it('tells its targets in pieces that the initiator takes', async () => {
    const one = session();
    await answer(one, login(OPERATIONAL, FULL_FEATURE, { ...discovery, MaxRecvDataSegmentLength: '512' }));
    const pieces: Buffer[] = [];
    let piece = await answer(one, request(Opcode.text, 0x80, { SendTargets: 'All' }));
    for (; piece.header.readUInt32BE(20) !== NO_TAG; piece = await answer(one, request(Opcode.text, 0x80, {}, 1))) {
      expect(flagsOf(piece)).toBe(0x40);
      expect(piece.data.length).toBe(512);
      pieces.push(piece.data);
    }
    expect(pieces.length).toBeGreaterThan(4);
    expect(flagsOf(piece)).toBe(0x80);
    pieces.push(piece.data);
    const told = Buffer.concat(pieces).toString().split('\0').slice(0, -1);
    expect(told).toEqual(TARGETS.flatMap(name => [`TargetName=${name}`, `TargetAddress=${PORTAL},1`]));
  });

  it.each([
    ['a secret alone', { ...discovery, AuthMethod: 'CHAP' }, 0x0201],
    ['no name', { SessionType: 'Discovery' }, 0x0207],
  ])('refuses a login with %s', async (_, asked, status) => {
    const refused = await answer(session(), login(0, OPERATIONAL, asked));
    expect([statusOf(refused), refused.ends]).toEqual([status, true]);
  });

  it('has nothing for who is not logged in, and no units', async () => {
    const [one, other] = [session(), session()];
    expect(await one.answer(request(Opcode.text, 0x80, { SendTargets: 'All' }))).toBeUndefined();
    await answer(other, login(OPERATIONAL, FULL_FEATURE, discovery));
    expect(await other.answer(request(Opcode.command, 0x80, {}))).toBeUndefined();
  });
});
