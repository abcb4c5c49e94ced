/**
 * What a portal without disks answers (RFC 7143): of a pool that another storage host serves. It takes the first login of a
 * connection, and nothing that needs a secret:
 *
 *   a normal session     the target has moved for now, to the portal of whoever serves the pool (11.13.5, 0101): an initiator goes there at
 *                        once, and comes back here whenever it loses that connection. 0301, to be tried again, while nobody serves it
 *   a discovery session  the targets that this initiator has, each at this portal: so that it has a session through each portal, and
 *                        one of them finds the pool wherever it goes
 */
import {
  decodeKeys,
  encode,
  encodePairs,
  FINAL,
  flagsOf,
  makeHeader,
  NO_TAG,
  Opcode,
  opcodeOf,
  type Pdu,
  taskTagOf,
} from '#backends/tgt/iscsi-pdu';

export interface StandbyGuide {
  /** Where the pool is served now, as `address:port`; undefined: nowhere, or nobody knows. */
  servedAt(): Promise<string | undefined>;
  /** The names of an initiator's targets. */
  targetsOf(initiator: string): Promise<readonly string[]>;
}

export interface Reply {
  unit: Buffer;
  /** Nothing follows: hang up. */
  ends: boolean;
}

const TRANSIT = 0x80;
const CONTINUES = 0x40;
const OPERATIONAL = 1;
const FULL_FEATURE = 3;
const MOVED_FOR_NOW = 0x0101;
const AUTHENTICATION_FAILED = 0x0201;
const MISSING_PARAMETER = 0x0207;
const UNAVAILABLE = 0x0301;
const GROUP = 1;
/** Until an initiator says what it takes (13.12). */
const DEFAULT_SEGMENT_BYTES = 8192;
/** However much an initiator takes at once. */
const MAX_SEGMENT_BYTES = 65_536;
const ANSWERS: Readonly<Record<string, string>> = {
  HeaderDigest: 'None',
  DataDigest: 'None',
  ErrorRecoveryLevel: '0',
  DefaultTime2Wait: '2',
  DefaultTime2Retain: '0',
};
/** Of which a declaration is no question (6.2). */
const DECLARED = new Set([
  'InitiatorName',
  'InitiatorAlias',
  'SessionType',
  'TargetName',
  'AuthMethod',
  'MaxRecvDataSegmentLength',
]);
/** Of normal sessions alone. */
const IRRELEVANT = new Set([
  'MaxConnections',
  'InitialR2T',
  'ImmediateData',
  'MaxBurstLength',
  'FirstBurstLength',
  'MaxOutstandingR2T',
  'DataPDUInOrder',
  'DataSequenceInOrder',
]);

export class StandbySession {
  #initiator = '';
  #isLoggedIn = false;
  #hasIntroduced = false;
  #segmentBytes = DEFAULT_SEGMENT_BYTES;
  #statSn = 1;
  /** Of an answer that is longer than what the initiator takes at once. */
  #rest: Buffer = Buffer.alloc(0);

  /** @param portal as initiators write it that came to it */
  constructor(
    private readonly portal: string,
    private readonly guide: StandbyGuide,
  ) {}

  /** Undefined: it may only be hung up on. */
  async answer(pdu: Pdu): Promise<Reply | undefined> {
    switch (opcodeOf(pdu)) {
      case Opcode.login:
        return this.#isLoggedIn ? undefined : this.#login(pdu);
      case Opcode.text:
        return this.#isLoggedIn ? this.#text(pdu) : undefined;
      case Opcode.logout:
        return this.#isLoggedIn
          ? { unit: encode(this.#header(pdu, Opcode.logoutResponse, FINAL, 0)), ends: true }
          : undefined;
      default:
        return undefined;
    }
  }

  async #login(pdu: Pdu): Promise<Reply> {
    const keys = decodeKeys(pdu.data);
    if (!this.#hasIntroduced) {
      const [initiator, type = 'Normal'] = [keys.get('InitiatorName'), keys.get('SessionType')];
      if (!initiator) return this.#refuse(pdu, MISSING_PARAMETER);
      if (type !== 'Discovery') return this.#redirect(pdu);
      this.#initiator = initiator;
      this.#hasIntroduced = true;
    }
    const offered = keys.get('AuthMethod');
    if (offered !== undefined && !offered.split(',').includes('None')) return this.#refuse(pdu, AUTHENTICATION_FAILED);
    const answers = [...keys.keys()].flatMap(key => answerTo(key));
    if (offered !== undefined) answers.push(['AuthMethod', 'None'], ['TargetPortalGroupTag', String(GROUP)]);
    const stage = (flagsOf(pdu) >> 2) & 3;
    if (stage === OPERATIONAL) answers.push(['MaxRecvDataSegmentLength', String(DEFAULT_SEGMENT_BYTES)]);
    this.#segmentBytes = segmentOf(keys.get('MaxRecvDataSegmentLength')) ?? this.#segmentBytes;
    const next = flagsOf(pdu) & TRANSIT ? flagsOf(pdu) & 3 : undefined;
    this.#isLoggedIn = next === FULL_FEATURE;
    const flags = (stage << 2) | (next === undefined ? 0 : TRANSIT | next);
    return { unit: this.#loginResponse(pdu, flags, 0, answers), ends: false };
  }

  async #redirect(pdu: Pdu): Promise<Reply> {
    const portal = await this.guide.servedAt();
    if (portal === undefined || portal === this.portal) return this.#refuse(pdu, UNAVAILABLE);
    return this.#refuse(pdu, MOVED_FOR_NOW, [['TargetAddress', portal]]);
  }

  #refuse(pdu: Pdu, status: number, answers: [string, string][] = []): Reply {
    // The stage is the initiator's own: open-iscsi reads no keys of another one.
    return { unit: this.#loginResponse(pdu, flagsOf(pdu) & 0x0c, status, answers), ends: true };
  }

  #loginResponse(pdu: Pdu, flags: number, status: number, answers: readonly [string, string][]): Buffer {
    const data = encodePairs(answers);
    const header = this.#header(pdu, Opcode.loginResponse, flags, data.length);
    pdu.header.copy(header, 8, 8, 14);
    // The session's number is the target's to give, with its last answer.
    header.writeUInt16BE(this.#isLoggedIn ? 1 : 0, 14);
    header.writeUInt16BE(status, 36);
    return encode(header, data);
  }

  async #text(pdu: Pdu): Promise<Reply> {
    const asked = decodeKeys(pdu.data).get('SendTargets');
    if (asked !== undefined) {
      const all = await this.guide.targetsOf(this.#initiator);
      const pairs = all
        .filter(name => asked === 'All' || asked === name)
        .flatMap((name): [string, string][] => [
          ['TargetName', name],
          ['TargetAddress', `${this.portal},${GROUP}`],
        ]);
      this.#rest = encodePairs(pairs);
    }
    const data = this.#rest.subarray(0, this.#segmentBytes);
    this.#rest = this.#rest.subarray(data.length);
    const isWhole = this.#rest.length === 0;
    const header = this.#header(pdu, Opcode.textResponse, isWhole ? FINAL : CONTINUES, data.length);
    header.writeUInt32BE(isWhole ? NO_TAG : 1, 20);
    return { unit: encode(header, data), ends: false };
  }

  #header(pdu: Pdu, opcode: number, flags: number, dataBytes: number): Buffer {
    const header = makeHeader(opcode, flags, taskTagOf(pdu), dataBytes);
    const cmdSn = pdu.header.readUInt32BE(24);
    // Requests of a login are immediate, and count nothing.
    const expected = pdu.header.readUInt8(0) & 0x40 ? cmdSn : (cmdSn + 1) >>> 0;
    header.writeUInt32BE(this.#statSn++, 24);
    header.writeUInt32BE(expected, 28);
    header.writeUInt32BE((expected + 1) >>> 0, 32);
    return header;
  }
}

function answerTo(key: string): [string, string][] {
  if (DECLARED.has(key)) return [];
  return [[key, ANSWERS[key] ?? (IRRELEVANT.has(key) ? 'Irrelevant' : 'NotUnderstood')]];
}

function segmentOf(text: string | undefined): number | undefined {
  const bytes = Number(text);
  return Number.isInteger(bytes) && bytes >= 512 && bytes < 2 ** 24 ? Math.min(bytes, MAX_SEGMENT_BYTES) : undefined;
}
