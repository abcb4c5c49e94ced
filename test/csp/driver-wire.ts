/** What goes over the driver's wire, and what it makes of the answers (docs/callers.md#calls-of-the-hpe-csi-driver). */
import { request } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface DriverReply {
  status: number;
  /** What the errors body said, if the driver would have read one. */
  problem: string | undefined;
  value: unknown;
}

/** The members of a volume that the driver decodes, by Go type. */
export interface DriverVolume {
  id: string;
  name: string;
  size: number;
  description: string;
  published: boolean;
  base_snapshot_id: string;
  volume_group_id: string;
  config: Record<string, string | number | boolean>;
}

export interface DriverSnapshot {
  id: string;
  name: string;
  volume_id: string;
  volume_name: string;
  size: number;
  creation_time: number;
  ready_to_use: boolean;
  in_use: boolean;
}

export interface DriverPublication {
  access_protocol: string;
  discovery_ips: string[];
  lun_id: number;
  serial_number: string;
  target_names: string[];
  chap_user?: string;
  chap_password?: string;
}

type GoType = 'string' | 'number' | 'boolean' | 'strings' | 'map';

export const VOLUME: Record<keyof DriverVolume, GoType> & Record<'lun_id' | 'target_port', GoType> = {
  id: 'string',
  name: 'string',
  size: 'number',
  description: 'string',
  published: 'boolean',
  base_snapshot_id: 'string',
  volume_group_id: 'string',
  config: 'map',
  lun_id: 'string',
  target_port: 'string',
};
export const SNAPSHOT: Record<keyof DriverSnapshot, GoType> = {
  id: 'string',
  name: 'string',
  volume_id: 'string',
  volume_name: 'string',
  size: 'number',
  creation_time: 'number',
  ready_to_use: 'boolean',
  in_use: 'boolean',
};
export const PUBLICATION: Record<keyof DriverPublication, GoType> = {
  access_protocol: 'string',
  discovery_ips: 'strings',
  lun_id: 'number',
  serial_number: 'string',
  target_names: 'strings',
  chap_user: 'string',
  chap_password: 'string',
};
export const TOKEN = { session_token: 'string' } as const;

const ZERO: Record<GoType, unknown> = { string: '', number: 0, boolean: false, strings: [], map: {} };
const isType = (value: unknown, type: GoType): boolean => {
  if (type === 'strings') return Array.isArray(value) && value.every(entry => typeof entry === 'string');
  if (type === 'map') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return type === 'number' ? Number.isInteger(value) : typeof value === type;
};

/** A struct decodes up to its first wrong member, and what is not there is zero: with a 200 nobody notices. */
export function decode<T>(value: unknown, shape: Record<string, GoType>): T {
  const given = isType(value, 'map') ? (value as Record<string, unknown>) : {};
  const out: Record<string, unknown> = {};
  for (const [key, type] of Object.entries(shape)) {
    const member = given[key];
    out[key] = member !== undefined && isType(member, type) ? member : structuredClone(ZERO[type]);
  }
  return out as T;
}

export const decodeList = <T>(value: unknown, shape: Record<string, GoType>): T[] =>
  Array.isArray(value) ? value.map(entry => decode<T>(entry, shape)) : [];

/** One call on a connection of its own, with a JSON content type whether or not there is a body. */
export function send(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<DriverReply> {
  const url = new URL(base);
  const payload = body && JSON.stringify(body);
  const options = {
    hostname: url.hostname,
    port: url.port,
    path: (url.pathname === '/' ? '' : url.pathname) + path,
    method,
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      connection: 'close',
      'accept-encoding': 'gzip',
      'user-agent': 'Go-http-client/1.1',
      ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
      ...headers,
    },
    agent: false as const,
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const call = (url.protocol === 'https:' ? tlsRequest : request)(options);
    call.once('error', reject);
    call.once('response', reply => {
      const chunks: Buffer[] = [];
      reply.on('data', (chunk: Buffer) => chunks.push(chunk));
      reply.once('error', reject);
      reply.once('end', () => resolve(read(reply.statusCode!, Buffer.concat(chunks).toString())));
    });
    call.end(payload);
  });
}

/** Bodies of 502, 503 and 504 are thrown away; every other failure is read as a list of errors. */
function read(status: number, text: string): DriverReply {
  if ([200, 201, 204].includes(status)) return { status, problem: undefined, value: parsed(text) };
  if ([502, 503, 504].includes(status)) return { status, problem: `status ${status}`, value: undefined };
  const body = parsed(text) as { errors?: { code?: unknown; message?: unknown }[] } | undefined;
  const [error] = Array.isArray(body?.errors) ? body.errors : [];
  if (error) return { status, problem: `Error code (${error.code}) and message (${error.message})`, value: undefined };
  return { status, problem: status === 401 ? undefined : `status ${status}`, value: undefined };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
