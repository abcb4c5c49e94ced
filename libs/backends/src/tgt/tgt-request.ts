/**
 * tgtd's management protocol, as tgt 1.0.85 speaks it on its UNIX socket.
 *
 * One connection carries one request and one reply, then tgtd closes it. Numbers are in the machine's byte order, which
 * is little-endian wherever we run. A request is 120 bytes and parameters:
 *
 *     0  mode        4  op          8  driver, 64 bytes, padded with zeros      72  length of all, parameters included
 *    76  tid        80  sid (8)    88  lun (8)        96  cid     100  host     104  device type, 0 is a disk
 *   108  direction of an account, 0 is incoming      112  unused  116  force
 *
 * Parameters are text, `name=value` joined by commas and ended by one zero byte; there is no escape, so no value may
 * hold a comma. Fields without meaning to a request carry -1 in tid and lun. The reply is 8 bytes, error number and
 * length of all, and after them the text of a `show`, ended by a zero byte. An error has no text.
 *
 * Speaking it here instead of calling tgtadm keeps CHAP secrets out of every argv and environment (invariant T5), and
 * tells errors by number. tgtd takes requests only from its own user and group, and logs no account.
 */
const REQUEST_BYTES = 120;
const REPLY_BYTES = 8;
/** tgtd hangs up on more. */
const MAX_PARAMETER_BYTES = 8192;

const MODE = { system: 0, target: 1, unit: 2, portal: 3, connection: 6, account: 7 } as const;
const OP = { new: 0, delete: 1, show: 2, bind: 3, unbind: 4, update: 5, stat: 6 } as const;

export interface TgtRequest {
  mode: keyof typeof MODE;
  op: keyof typeof OP;
  tid?: number;
  sid?: number;
  cid?: number;
  lun?: number;
  parameters?: string;
}

type Pairs = readonly (readonly [name: string, value: string])[];

const request =
  (mode: TgtRequest['mode'], op: TgtRequest['op']) =>
  (rest: Omit<TgtRequest, 'mode' | 'op'> = {}): TgtRequest => ({ mode, op, ...rest });

export const showSystem = request('system', 'show');
/** Ends tgtd; refused while targets exist. */
export const deleteSystem = request('system', 'delete');
/** All targets with units, sessions, accounts and initiators. */
export const showTargets = request('target', 'show');
/** Counters of all units and sessions. */
export const statSystem = request('system', 'stat');
export const newTarget = (tid: number, iqn: string) =>
  request('target', 'new')({ tid, parameters: join([['targetname', iqn]]) });
/**
 * Refused while it has sessions. Its force is not for us: with a command under way it stops half-way, and with a
 * session that cannot be freed at once tgtd exits.
 */
export const deleteTarget = (tid: number) => request('target', 'delete')({ tid });
export const bindInitiator = (tid: number, iqn: string) =>
  request('target', 'bind')({ tid, parameters: join([['initiator-name', iqn]]) });
export const unbindInitiator = (tid: number, iqn: string) =>
  request('target', 'unbind')({ tid, parameters: join([['initiator-name', iqn]]) });
/** @param options of the type, in its own words */
export const newUnit = (tid: number, lun: number, path: string, type = 'rdwr', options?: string) =>
  request(
    'unit',
    'new',
  )({
    tid,
    lun,
    parameters: join([
      ['path', path],
      ['bstype', type],
      ...(options === undefined ? [] : [['bsopts', options] as const]),
    ]),
  });
/** In this order, and all of it between two commands of any session. Only the last value's error is reported. */
export const updateUnit = (tid: number, lun: number, values: Pairs) =>
  request('unit', 'update')({ tid, lun, parameters: `targetOps ${join(values)},` });
export const deleteUnit = (tid: number, lun: number) => request('unit', 'delete')({ tid, lun });
/** Names only. */
export const showAccounts = request('account', 'show');
export const newAccount = (user: string, password: string) =>
  request('account', 'new')({ parameters: `${join([['user', user]])},password=${checked(password)}` });
export const deleteAccount = (user: string) => request('account', 'delete')({ parameters: join([['user', user]]) });
export const bindAccount = (tid: number, user: string) =>
  request('account', 'bind')({ tid, parameters: join([['user', user]]) });
export const unbindAccount = (tid: number, user: string) =>
  request('account', 'unbind')({ tid, parameters: join([['user', user]]) });
export const showConnections = (tid: number) => request('connection', 'show')({ tid });
export const deleteConnection = (tid: number, sid: number, cid: number) =>
  request('connection', 'delete')({ tid, sid, cid });
export const showPortals = request('portal', 'show');
/** `address:port`. */
export const newPortal = (portal: string) =>
  request('portal', 'new')({ parameters: `portalOps ${join([['portal', portal]])},` });
export const deletePortal = (portal: string) =>
  request('portal', 'delete')({ parameters: `portalOps ${join([['portal', portal]])},` });

/** Throws RangeError for what the protocol cannot carry; callers check their input before. */
export function encodeRequest({ mode, op, tid = -1, sid = 0, cid = 0, lun, parameters }: TgtRequest): Buffer {
  const text = parameters === undefined ? Buffer.alloc(0) : Buffer.from(`${checked(parameters)}\0`);
  if (text.length > MAX_PARAMETER_BYTES) throw new RangeError(`${text.length} bytes of parameters`);
  const bytes = Buffer.alloc(REQUEST_BYTES + text.length);
  bytes.writeUInt32LE(MODE[mode], 0);
  bytes.writeUInt32LE(OP[op], 4);
  bytes.write('iscsi', 8, 'latin1');
  bytes.writeUInt32LE(bytes.length, 72);
  bytes.writeInt32LE(tid, 76);
  bytes.writeBigUInt64LE(BigInt(sid), 80);
  bytes.writeBigInt64LE(BigInt(lun ?? -1), 88);
  bytes.writeUInt32LE(cid, 96);
  text.copy(bytes, REQUEST_BYTES);
  return bytes;
}

/** Undefined until all of it is there. */
export function decodeReply(bytes: Buffer): { error: number; text: string } | undefined {
  if (bytes.length < REPLY_BYTES) return undefined;
  const error = bytes.readUInt32LE(0);
  const length = bytes.readUInt32LE(4);
  if (bytes.length < length) return undefined;
  const end = bytes[length - 1] === 0 ? length - 1 : length;
  return { error, text: length > REPLY_BYTES ? bytes.toString('utf8', REPLY_BYTES, end) : '' };
}

/** For messages: never the parameters, which may hold a password. */
export const describeRequest = ({ mode, op, tid }: TgtRequest): string =>
  `${op} ${mode}${tid === undefined ? '' : ` ${tid}`}`;

function join(values: Pairs): string {
  return values
    .map(([name, value]) => {
      if (value.includes(',')) throw new RangeError(`a comma in ${name}`);
      return `${name}=${checked(value)}`;
    })
    .join(',');
}

function checked(value: string): string {
  if (value.includes('\0')) throw new RangeError('a zero byte in a parameter');
  return value;
}
