/**
 * The login phase of an initiator (RFC 7143, sections 6 and 13; CHAP after RFC 1994 with MD5, the one algorithm that
 * every target knows).
 *
 * Security stage first: with credentials CHAP is offered alone, so that no target can talk us out of it. Then the
 * operational stage, with the simplest of everything: one connection, no digests, no unsolicited data.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  decodeKeys,
  encode,
  encodeKeys,
  flagsOf,
  IMMEDIATE,
  makeHeader,
  Opcode,
  opcodeOf,
  type Pdu,
} from './iscsi-pdu.js';

export interface ChapLogin {
  user: string;
  password: string;
}

export interface LoginOptions {
  initiator: string;
  target: string;
  chap?: ChapLogin;
}

export interface LoginResult {
  /** Longest data segment that the target takes. */
  targetSegmentBytes: number;
  maxBurstBytes: number;
  /** Next StatSN that is expected of the target. */
  expStatSn: number;
  maxCmdSn: number;
  cmdSn: number;
}

/** The target refused; `statusClass` 2 is the initiator's fault: 0x0201 wrong credentials, 0x0203 no such target for us. */
export class LoginRefused extends Error {
  constructor(
    readonly statusClass: number,
    readonly statusDetail: number,
  ) {
    super(`login refused, status ${statusClass.toString(16)}/${statusDetail.toString(16)}`);
  }
}

const SECURITY = 0;
const OPERATIONAL = 1;
const FULL_FEATURE = 3;
const TRANSIT = 0x80;
const RECEIVE_SEGMENT_BYTES = 262_144;

/** `exchange` sends one unit and resolves to the target's next one. */
export async function login(options: LoginOptions, exchange: (pdu: Buffer) => Promise<Pdu>): Promise<LoginResult> {
  // A random session identifier: the same one again would take over the other session (RFC 7143, 6.3.5).
  const isid = Buffer.concat([Buffer.from([0x80]), randomBytes(5)]);
  let expStatSn = 0;
  const cmdSn = 1;
  const turn = async (stage: number, next: number, keys: Record<string, string>): Promise<Pdu> => {
    const data = encodeKeys(keys);
    const header = makeHeader(Opcode.login | IMMEDIATE, TRANSIT | (stage << 2) | next, 1, data.length);
    isid.copy(header, 8);
    header.writeUInt32BE(cmdSn, 24);
    header.writeUInt32BE(expStatSn, 28);
    const reply = await exchange(encode(header, data));
    if (opcodeOf(reply) !== Opcode.loginResponse) throw new Error(`unit ${opcodeOf(reply)} in the login phase`);
    const statusClass = reply.header.readUInt8(36);
    if (statusClass !== 0) throw new LoginRefused(statusClass, reply.header.readUInt8(37));
    expStatSn = (reply.header.readUInt32BE(24) + 1) >>> 0;
    return reply;
  };

  const { chap } = options;
  let reply = await turn(SECURITY, OPERATIONAL, {
    InitiatorName: options.initiator,
    TargetName: options.target,
    SessionType: 'Normal',
    AuthMethod: chap ? 'CHAP' : 'None',
  });
  if (chap) {
    reply = await turn(SECURITY, OPERATIONAL, { CHAP_A: '5' });
    reply = await turn(SECURITY, OPERATIONAL, { CHAP_N: chap.user, CHAP_R: chapResponse(reply, chap.password) });
  }
  if (nextStage(reply) !== OPERATIONAL) throw new Error('the target stays in the security stage');
  const answered = new Map<string, string>();
  for (let turns = 0; nextStage(reply) !== FULL_FEATURE; turns++) {
    if (turns === 8) throw new Error('the target does not end the login phase');
    reply = await turn(OPERATIONAL, FULL_FEATURE, turns === 0 ? PARAMETERS : {});
    for (const [key, value] of decodeKeys(reply.data)) answered.set(key, value);
  }
  return {
    targetSegmentBytes: Number(answered.get('MaxRecvDataSegmentLength') ?? 8192),
    maxBurstBytes: Number(answered.get('MaxBurstLength') ?? 262_144),
    expStatSn,
    maxCmdSn: reply.header.readUInt32BE(32),
    cmdSn,
  };
}

const PARAMETERS = {
  HeaderDigest: 'None',
  DataDigest: 'None',
  MaxConnections: '1',
  InitialR2T: 'Yes',
  ImmediateData: 'No',
  MaxRecvDataSegmentLength: String(RECEIVE_SEGMENT_BYTES),
  MaxBurstLength: '262144',
  FirstBurstLength: '65536',
  DefaultTime2Wait: '0',
  DefaultTime2Retain: '0',
  MaxOutstandingR2T: '1',
  ErrorRecoveryLevel: '0',
};

function nextStage(reply: Pdu): number | undefined {
  return flagsOf(reply) & TRANSIT ? flagsOf(reply) & 3 : undefined;
}

function chapResponse(reply: Pdu, password: string): string {
  const keys = decodeKeys(reply.data);
  const id = keys.get('CHAP_I');
  const challenge = keys.get('CHAP_C');
  if (id === undefined || challenge === undefined) throw new Error('no challenge from the target');
  const bytes = challenge.startsWith('0b')
    ? Buffer.from(challenge.slice(2), 'base64')
    : Buffer.from(challenge.replace(/^0x/i, ''), 'hex');
  const digest = createHash('md5')
    .update(Buffer.from([Number(id)]))
    .update(password)
    .update(bytes)
    .digest('hex');
  return `0x${digest}`;
}
